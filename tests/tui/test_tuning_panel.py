"""The tuning panel, operated by keyboard."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from cockpit.model import events as ev
from cockpit.model.knobs import Knob, ServerAction, Setting
from cockpit.tui.dialogs import prompt
from cockpit.tui.dialogs.prompt import ChoiceScreen, ConfirmScreen, FilterScreen, PromptScreen
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.runs.strip_lines import VerdictStrip
from cockpit.tui.tiny_screen import TinyScreen
from cockpit.tui.tuning.screen import TuningScreen
from cockpit.tui.tuning.widgets import History, KnobRow
from tests.tui.driving import main, press, running_app, text_of, until, wait_idle
from tests.tui.scenario import Scenario
from tests.tui.screens import until_notice
from tests.tui.scripted import ScriptedSource, ScriptedTuning


@asynccontextmanager
async def tuning_panel(
    until_second: float = 38.0, size: tuple[int, int] = (120, 40), actions: bool = False
) -> AsyncIterator[tuple[Pilot[object], ScriptedSource, ScriptedTuning]]:
    """Open the panel over the session, and wait for its first reading."""
    events = Scenario().events(until_second)
    if actions:
        restart = ServerAction(name="restart", host="web1", command="service apache2 restart")
        events[0] = replace(events[0], actions=(restart,))
    async with running_app(events, size=size) as (pilot, source):
        tuning = source.controls.tuning
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen) and status(pilot) == "")
        changes = len(source.session.state.changes)
        await until(pilot, lambda: pilot.app.screen.query_one(History).option_count == changes)
        yield pilot, source, tuning


def part(pilot: Pilot[object], name: str) -> str:
    """Return the text of a part of the panel."""
    return text_of(pilot.app.screen.query_one(f"#{name}", Static))


def status(pilot: Pilot[object]) -> str:
    return " ".join(part(pilot, "status").split())


def strip_text(pilot: Pilot[object]) -> str:
    """Return the text of the pane in which a change is shown until its verdict."""
    return text_of(main(pilot.app).query_one(VerdictStrip))


def history(pilot: Pilot[object]) -> str:
    """Return the lines of the history."""
    return "\n".join(str(option.prompt) for option in pilot.app.screen.query_one(History).options)


async def preview_and_apply(pilot: Pilot[object], *keys: str) -> None:
    """Type, preview the diff and apply it."""
    await press(pilot, *keys, "enter")
    await until(pilot, lambda: status(pilot).startswith("Enter again: apply"))
    await press(pilot, "enter")


def input_values(pilot: Pilot[object]) -> list[str]:
    return [field.value for field in pilot.app.screen.query(Input)]


async def test_opening_reads_values_and_shows_locations() -> None:
    async with tuning_panel() as (pilot, source, tuning):
        assert tuning.calls == [("refresh", {})]
        values = [text_of(row.query_one(".value", Static)).strip() for row in pilot.app.screen.query(KnobRow)]
        assert values == ["5", "10", "10"]
        details = part(pilot, "details")
        assert "web1:/etc/apache2/mods-available/mpm_prefork.conf" in details
        assert "MinSpareServers in <IfModule mpm_prefork_module>" in details
        assert details.startswith("minimum idle processes; ") and "allowed: a whole number" in details
        assert "test: apachectl -t · reload: apachectl graceful" in details
        source.push(ev.KnobRead(t=39.0, knob="MinSpareServers", host="web1", value=None, detail="no such file"))
        await until(pilot, lambda: "unreadable" in text_of(pilot.app.screen.query_one("KnobRow .value", Static)))
        await until(pilot, lambda: "could not be read: no such file" in part(pilot, "details"))
        assert pilot.app.screen.query(Input).first().placeholder == "no such file"
        await press(pilot, "down", "down")
        assert "allowed: 0 10 1000" in part(pilot, "details")


async def test_slash_filters_settings_where_it_cannot_start_a_value() -> None:
    async with tuning_panel() as (pilot, _, _):
        await press(pilot, "slash", *"maxspare")
        assert isinstance(pilot.app.screen, FilterScreen)
        panel = next(screen for screen in pilot.app.screen_stack if isinstance(screen, TuningScreen))
        assert [row.knob.name for row in panel.query(KnobRow) if row.display] == ["MaxSpareServers"]
        await press(pilot, "enter", "3", "1")
        assert panel.focused is panel.query(Input)[1] and input_values(pilot)[1] == "31"
        await press(pilot, "slash", "down")
        assert input_values(pilot)[1] == "31/", "a value is being typed"
        await press(pilot, "backspace", "backspace", "backspace", "slash", "enter")
        assert all(row.display for row in panel.query(KnobRow))


async def test_values_are_typed_selected_and_reread() -> None:
    async with tuning_panel() as (pilot, _, tuning):
        await press(pilot, "up", "space")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceScreen))
        options = pilot.app.screen.query_one(OptionList)
        labels = [str(option.prompt) for option in options.options]
        assert labels == ["0", "10  active", "1000"] and options.highlighted == 1
        await press(pilot, "down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        assert input_values(pilot)[2] == "1000"
        await press(pilot, "space", "escape")
        assert input_values(pilot)[2] == "1000"
        await press(pilot, "down", "x")
        await until(pilot, lambda: "takes a whole number of at least 1, not 'x'" in part(pilot, "plan"))
        await press(pilot, "backspace", "4", "ctrl+r")
        await until(pilot, lambda: tuning.calls == [("refresh", {}), ("refresh", {})])
        assert input_values(pilot) == ["4", "", "1000"]
    async with tuning_panel() as (pilot, _, tuning):
        await press(pilot, "enter")
        await until(pilot, lambda: "type new values" in status(pilot))
        await press(pilot, "5", "enter", "backspace")
        assert tuning.calls == [("refresh", {})], "5 is already active"
        for key in ("3", "0", "down", "4", "5", "down", "1", "down", "7"):
            pilot.app.post_message(Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: input_values(pilot) == ["7", "45", "1"])


async def test_values_are_previewed_then_applied_as_single_change() -> None:
    async with tuning_panel() as (pilot, source, tuning):
        await press(pilot, "ctrl+u")
        await until(pilot, lambda: status(pilot) == "not done: nothing to undo")
        tuning.calls.clear()
        tuning.refuse = "MinSpareServers: 'many' is not a whole number"
        await press(pilot, *"many", "enter")
        await until(pilot, lambda: status(pilot) == f"not done: {tuning.refuse}")
        assert input_values(pilot)[0] == "many"
        tuning.refuse, tuning.notes = "", "AH00513: WARNING: ServerLimit of 300 not allowed during restart"
        await press(pilot, *["backspace"] * 4, *"3", "enter")
        await until(pilot, lambda: status(pilot) == "Enter again: apply")
        await until(pilot, lambda: "! AH00513: WARNING: ServerLimit of 300" in part(pilot, "plan"))
        await press(pilot, *"0", "down", *"60")
        assert "+MinSpareServers" not in part(pilot, "plan"), "edited values are previewed again"
        assert "MinSpareServers 5 → 30, MaxSpareServers 10 → 60" in part(pilot, "plan")
        await press(pilot, "enter")
        await until(pilot, lambda: status(pilot) == "Enter again: apply")
        # The diff appears when the panel is laid out again.
        await until(pilot, lambda: "web1, cost: graceful" in part(pilot, "plan"))
        shown = part(pilot, "plan")
        assert "-MinSpareServers 5\n+MinSpareServers 30\n-MaxSpareServers 10\n+MaxSpareServers 60" in shown
        assert not source.session.state.changes
        await press(pilot, "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        await until_notice(pilot, f"active: MinSpareServers 5 → 30, MaxSpareServers 10 → 60; {tuning.notes}")
        both = {"MinSpareServers": "30", "MaxSpareServers": "60"}
        assert [name for name, _ in tuning.calls] == ["preview", "preview", "preview", "apply"]
        assert tuning.calls[2:] == [("preview", both), ("apply", both)]
        assert tuning.expected == {"MinSpareServers": "5", "MaxSpareServers": "10"}
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await until(pilot, lambda: input_values(pilot) == ["", "", ""])
        await until(pilot, lambda: "A MinSpareServers 5 → 30, MaxSpareServers 10 → 60" in history(pilot))
        await until(pilot, lambda: "active since" in history(pilot))
        assert [change.outcome for change in source.session.state.changes] == ["applied"]


async def test_guarded_change_waits_for_confirmation() -> None:
    async with tuning_panel() as (pilot, source, tuning):
        tuning.notes = "AH00513: ServerLimit of 300 not allowed"
        await press(pilot, "ctrl+g")
        assert "are rolled back after 60 s unless ^Y keeps them" in status(pilot)
        await preview_and_apply(pilot, *"30")
        await until(pilot, lambda: "unless kept" in strip_text(pilot))
        assert "✓ active" in strip_text(pilot) and "t, then ^Y: keep   ^U: undo" in strip_text(pilot)
        await press(pilot, "t")
        await until(pilot, lambda: "A is active, rolled back in" in status(pilot))
        assert "^Y: keep, ^U: undo" in status(pilot)
        await press(pilot, "ctrl+y")
        await until_notice(pilot, "active: MinSpareServers")
        assert source.session.state.changes[0].outcome == "applied"
        await until(pilot, lambda: "server: AH00513" in history(pilot))


async def test_change_is_undone_after_confirmation() -> None:
    async with tuning_panel(84.0) as (pilot, source, tuning):
        await press(pilot, "tab", "down", "down")
        assert "B MaxConnectionsPerChild 10 → 1000" in part(pilot, "plan")
        assert "requested at 00:01:09 on web1" in part(pilot, "plan")
        await press(pilot, "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        assert "-MaxConnectionsPerChild 1000" in text_of(pilot.app.screen.query_one(Static))
        assert "+MaxConnectionsPerChild 10" in text_of(pilot.app.screen.query_one(Static))
        await press(pilot, "escape")
        assert not any(name == "undo" for name, _ in tuning.calls)
        await press(pilot, "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await press(pilot, "enter")
        await until(pilot, lambda: status(pilot).startswith("B undone"))
        assert tuning.calls[-1] == ("undo", {"letter": "B"})
        await until(pilot, lambda: "undone by D" in history(pilot))
    async with tuning_panel(41.0) as (pilot, source, tuning):
        await press(pilot, "ctrl+u")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await press(pilot, "enter")
        await until(pilot, lambda: status(pilot).startswith("A undone: the previous"))
        assert tuning.calls[-1] == ("undo", {"letter": "A"})
        await until(pilot, lambda: source.session.state.knobs["MaxSpareServers"].value == "10")


async def test_undo_is_not_confirmed_by_keys_for_another_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    async with tuning_panel(41.0) as (pilot, _, tuning):
        monkeypatch.setattr(prompt, "UNSEEN", math.inf)
        await press(pilot, "ctrl+u", "enter", "y", "escape", "q")
        assert isinstance(pilot.app.screen, ConfirmScreen)
        await pilot.app.pop_screen()
        preview, prepared = tuning.preview_undo, asyncio.Event()

        async def slow_preview(letter: str = "") -> object:
            await prepared.wait()
            return await preview(letter)

        tuning.preview_undo = slow_preview  # type: ignore[method-assign,assignment]
        await press(pilot, "ctrl+u", "escape")
        prepared.set()
        await until_notice(pilot, "undo not confirmed: its screen was closed or covered; ^U: undo")
        assert pilot.app.screen is main(pilot.app)


async def test_rounds_are_confirmed_and_can_be_stopped() -> None:
    async with tuning_panel() as (pilot, _, tuning):
        await press(pilot, "ctrl+f")
        assert "No change to measure" in status(pilot)
        await press(pilot, *"30", "ctrl+f")
        await until(pilot, lambda: isinstance(pilot.app.screen, PromptScreen))
        await press(pilot, *"8 x 5s", "enter")
        await until(pilot, lambda: "a window must last 15 s or more" in status(pilot))
        assert [name for name, _ in tuning.calls] == ["refresh"]
        tuning.sibling = {"MinSpareServers": Knob(name="other", host="web2")}
        await press(pilot, "ctrl+f")
        await until(pilot, lambda: isinstance(pilot.app.screen, PromptScreen))
        screen = pilot.app.screen
        assert isinstance(screen, PromptScreen) and "MinSpareServers 5 → 30" in screen.question
        assert "12 rounds of 2 × 15 s: at most " in screen.question and "minimum detectable effect" in screen.question
        assert "With web2 at the same time: one server has the new values" in screen.question
        await press(pilot, *"8 x 20s", "enter")
        await until(pilot, lambda: "round 1 of 8: " in status(pilot))
        assert tuning.calls[-1] == ("compare_in_rounds", {"MinSpareServers": "30", "rounds": "8", "seconds": "20"})
        await press(pilot, "ctrl+f")
        await until(pilot, lambda: isinstance(pilot.app.screen, PromptScreen))
        await press(pilot, "enter")
        await until(pilot, lambda: "stopped after 0 rounds: the old values are active" in status(pilot))


async def preview_during_baseline(pilot: Pilot[object]) -> None:
    await press(pilot, *"30", "enter")
    await until(pilot, lambda: status(pilot).startswith("baseline 12 of 25 s. Enter: apply in 13 s;"))
    assert "without a verdict" in status(pilot)
    await press(pilot, "enter")


async def test_change_is_applied_after_baseline_wait_or_at_once() -> None:
    async with tuning_panel(20.0) as (pilot, source, tuning):
        await preview_during_baseline(pilot)
        await until(pilot, lambda: "applied in 13 s" in strip_text(pilot))
        assert tuning.calls[-1] == ("await_baseline", {})
        await press(pilot, "escape")
        await until_notice(pilot, "not applied")
        assert tuning.calls[-1] == ("release", {})
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        assert input_values(pilot)[0] == "30", "the typed values stay"
        await press(pilot, "enter")
        await until(pilot, lambda: status(pilot).startswith("baseline 12 of 25 s"))
        await press(pilot, "enter")
        await until(pilot, lambda: "applied in 13 s" in strip_text(pilot))
        source.push(*[event for event in Scenario().events(34.5) if event.t > source.session.state.t])
        await until(pilot, lambda: tuning.calls[-1] == ("apply", {"MinSpareServers": "30"}))
    async with tuning_panel(20.0) as (pilot, source, tuning):
        await preview_during_baseline(pilot)
        await until(pilot, lambda: "applied in" in strip_text(pilot))
        source.push(ev.RunEnded(t=source.session.state.t, run=1, reason="stopped"))
        await until_notice(pilot, "the load ended before")
        assert tuning.calls[-1] == ("release", {})
    async with tuning_panel(20.0) as (pilot, source, tuning):
        await preview_during_baseline(pilot)
        await until(pilot, lambda: "applied in" in strip_text(pilot))
        await press(pilot, "p", "enter", "p", "escape")
        assert tuning.calls[-1] == ("await_baseline", {}), "a host is on the whole screen, the change is not"
        await pilot.resize_terminal(60, 15)
        await until(pilot, lambda: "Enter: apply now" in text_of(main(pilot.app).query_one(TinyScreen)))
        await press(pilot, "enter")
        await until(pilot, lambda: [name for name, _ in tuning.calls][-2:] == ["await_baseline", "apply"])


async def test_panel_states_which_change_the_baseline_can_find() -> None:
    async with tuning_panel(34.5) as (pilot, _, _):
        await press(pilot, *"30")
        await until(pilot, lambda: "baseline 25 s finds rate ≥ " in part(pilot, "plan"))
        (line,) = [line for line in part(pilot, "plan").splitlines() if line.startswith("baseline")]
        assert "within 180 s after the change; 60 s would find ≥ " in line


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_panel_parts_are_visible_and_long_diff_scrolls(size: tuple[int, int]) -> None:
    async with tuning_panel(84.0, size=size, actions=True) as (pilot, source, tuning):
        await press(pilot, "tab", "tab", "down", "enter")
        await until(pilot, lambda: status(pilot) == "Enter again: run restart on web1")
        assert tuning.calls == [("refresh", {})]
        await press(pilot, "enter")
        await until(pilot, lambda: status(pilot) == "restart done")
        assert any(marker.kind == "action" for marker in source.session.state.markers)
        settings = tuple(Setting(knob=f"K{at}", old="1", new="2") for at in range(3))
        long = "".join(f"-K{at} 1\n+K{at} 2\n" for at in range(40))
        source.push(ev.ChangeBegun(t=85.0, change="D", host="web1", settings=settings, diff=long))
        await until(pilot, lambda: "D K0 1 → 2" in part(pilot, "plan"))
        screen = pilot.app.screen
        for name in ("#keys", "#history", "#actions", "#status", "#details"):
            region = screen.query_one(name).region
            assert region.height and region.bottom < size[1], name
        await press(pilot, "tab", "tab", "end")
        diff = screen.query_one("#diff")
        await until(pilot, lambda: diff.scroll_y == diff.max_scroll_y > 0)


async def test_change_under_way_excludes_others_and_continues_after_close() -> None:
    async with tuning_panel() as (pilot, source, tuning):
        tuning.gate.clear()
        await preview_and_apply(pilot, *"30")
        await until(pilot, lambda: "under way for" in strip_text(pilot))
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await until(pilot, lambda: "under way for" in history(pilot))
        await press(pilot, "ctrl+s")
        await until(pilot, lambda: "one action at a time" in status(pilot))
        await press(pilot, "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        tuning.gate.set()
        await until_notice(pilot, "active")
        await until(pilot, lambda: source.session.state.knobs["MinSpareServers"].value == "30")
        assert [name for name, _ in tuning.calls] == ["refresh", "preview", "apply", "refresh"]


async def test_keys_work_while_values_are_read() -> None:
    async with tuning_panel() as (pilot, _, tuning):
        tuning.reading.clear()
        await press(pilot, "ctrl+r")
        await until(pilot, lambda: status(pilot) == "reading the values …")
        await preview_and_apply(pilot, *"30")
        await until_notice(pilot, "active: ")
        tuning.reading.set()
        await wait_idle(pilot)


async def test_rolled_back_change_shows_reason_and_keeps_input() -> None:
    async with tuning_panel() as (pilot, _, tuning):
        await press(pilot, *"many", "enter")
        await until(pilot, lambda: status(pilot) == "Enter again: apply")
        tuning.refuse = "web1: apachectl -t: Syntax error on line 5"
        await press(pilot, "enter")
        await until_notice(pilot, f"not done: {tuning.refuse}; t: the typed values")
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        assert input_values(pilot)[0] == "many"
        await until(pilot, lambda: "rolled back: web1: apachectl -t" in history(pilot))


async def test_panel_is_read_only_without_tuning_and_opens_without_knobs() -> None:
    async with running_app(Scenario().events(76)) as (pilot, source):
        source.controls.tuning = None
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await wait_idle(pilot)
        assert not pilot.app.screen.query(Input)
        assert "read-only" in part(pilot, "keys")
        await press(pilot, "down", "enter", "ctrl+s", "ctrl+u", "ctrl+r")
        assert "MaxSpareServers in" in part(pilot, "details")
        await until(pilot, lambda: "A MinSpareServers 5 → 20" in history(pilot))
        await press(pilot, "tab", "down", "enter")
        assert "B MaxConnectionsPerChild" in part(pilot, "plan") and status(pilot) == ""
    async with running_app() as (pilot, _):
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await press(pilot, "down", "enter", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
