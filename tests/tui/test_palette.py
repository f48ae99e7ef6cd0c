"""Command palette, help for the focused pane, tooltips and first-run hints."""

import re
from dataclasses import replace
from pathlib import Path

from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from cockpit.model import events as ev
from cockpit.session.controls import Mode
from cockpit.tui.dialogs.help import HelpScreen
from cockpit.tui.dialogs.prompt import PromptScreen
from cockpit.tui.draw_context import Detail
from cockpit.tui.hints import Hints, change_hint, tuning_hint
from cockpit.tui.hosts.panes import HostPanes
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.palette import Command, commands_of
from cockpit.tui.runs.table import Runs
from cockpit.tui.start.choices import Choice
from cockpit.tui.status_lines import HintLine
from cockpit.tui.tips import tip, word_at
from cockpit.tui.tuning.screen import TuningScreen
from tests.tui.driving import (
    context_of,
    main,
    press,
    reset_screen,
    running_app,
    text_of,
    until,
    wait_for_events,
    wait_idle,
)
from tests.tui.scenario import Scenario
from tests.tui.screens import rendered_text
from tests.tui.scripted import scripted_app
from tests.tui.test_start import exit_choice, running_start_app, start_choices
from tests.tui.test_verdicts import changed_under_load

EVENTS = Scenario(2).events(99)


def commands(pilot: Pilot[object]) -> dict[str, Command]:
    return {command.title: command for command in commands_of(pilot.app, pilot.app.screen)}


async def run_command(pilot: Pilot[object], letters: str) -> None:
    """Open the palette, type, and run the first command found."""
    await press(pilot, "ctrl+p")
    await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))
    await press(pilot, *letters)
    palette = pilot.app.screen
    await until(pilot, lambda: palette.query_one(OptionList).highlighted == 0)
    await press(pilot, "enter")
    await until(pilot, lambda: not isinstance(pilot.app.screen, CommandPalette))


async def test_palette_and_help_of_start_screen() -> None:
    async with running_start_app(start_choices()) as (pilot, app):
        await press(pilot, "question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await wait_idle(pilot)
        assert "write a profile" in rendered_text(app)
        await press(pilot, "escape")
        await run_command(pilot, "opensparese")
        choice = await exit_choice(pilot, app)
        assert choice is not None and choice.kind == "profile" and choice.what.endswith("spare-servers.toml")
    async with running_start_app(start_choices()) as (pilot, app):
        await run_command(pilot, "try it")
        assert await exit_choice(pilot, app) == Choice("demo")


async def test_help_starts_with_focused_pane_and_palette_runs_commands() -> None:
    async with running_app(EVENTS) as (pilot, source):
        assert not main(pilot.app).query_one(HintLine).display, "hints are disabled by default"
        for keys, first in (
            ((), "the runs table"),
            (("e", "left"), "the charts over time"),
            (("enter",), "processes of web1"),
            (("enter", "d"), "cores of web1"),
        ):
            await reset_screen(pilot)
            await press(pilot, *keys, "question_mark")
            await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
            await wait_idle(pilot)
            shown = rendered_text(pilot.app)
            assert f"in focus: {first}" in shown
            assert shown.index(first) < shown.index("everywhere") < shown.index("start/stop")
        await reset_screen(pilot)
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await press(pilot, "f1")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        await wait_idle(pilot)
        assert "rounds" in rendered_text(pilot.app)
        await press(pilot, "f1")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await reset_screen(pilot)
        found = commands(pilot)
        for action in source.controls.actions:
            assert action.label in found
        assert found["mark"].words == "m   asks: What happened?"
        assert found["freeze"].words == "f   Freeze the hosts, or continue"
        assert found["larger"].words.startswith("p   ")
        assert {"view latency as percentiles", "show web2", "web1: processes", "help", "quit"} <= set(found)
        assert "up" not in found, "cursor keys are not commands"
        for letters, kind in (("tune", TuningScreen), ("mark", PromptScreen)):
            await run_command(pilot, letters)
            await until(pilot, lambda kind=kind: isinstance(pilot.app.screen, kind))  # type: ignore[misc]
            await reset_screen(pilot)
        await run_command(pilot, "web2cores")
        await until(pilot, lambda: main(pilot.app).view.host == 1)
        assert main(pilot.app).view.details == {"web2": Detail("cores")}
        assert "▸ web2" in text_of(main(pilot.app).query_one(HostPanes))
        assert not any(title.startswith("jump to") for title in commands(pilot))
        jump = source.controls.actions[1]
        object.__setattr__(jump, "name", "jump")
        marker = source.session.state.markers[0]
        title = next(title for title in commands(pilot) if title.startswith("jump to A"))
        assert title.split()[3] != "A", "the letter appears once"
        commands(pilot)[title].run()
        await until(pilot, lambda: source.controls.done == [("mark", f"{marker.t:.1f}s")])


def test_tooltip_explains_word_at_cell() -> None:
    assert word_at("─ 日本 spawns 12", 7) == "spawns"
    assert word_at("─ 日本 born/s 12", 4) == "日本"
    assert word_at("a  b", 1) == ""
    lines = [(("#  change  ", "dim"), ("spawns", "dim"))]
    assert (tip("Runs", lines, 12, 0) or "").startswith("spawns: Processes spawned per second")
    assert (tip("Runs", lines, 3, 0) or "").startswith("One segment per run")
    assert tip("HintLine", [], 0, 0) is None


async def test_hover_shows_metric_tooltip() -> None:
    app, source = scripted_app(EVENTS)
    async with app.run_test(size=(120, 40), tooltips=True) as pilot:
        await wait_for_events(pilot, source, len(EVENTS))
        runs = main(app).query_one(Runs)
        head = text_of(runs).splitlines()[1]
        await pilot.hover(Runs, offset=(head.index("p99") + 1, 1))
        await until(pilot, lambda: "99% of the responses took at most" in rendered_text(pilot.app))


async def hint_text(pilot: Pilot[object]) -> str:
    line = main(pilot.app).query_one(HintLine)
    await wait_idle(pilot)
    return text_of(line) if line.display else ""


async def test_hint_disappears_permanently_after_use(tmp_path: Path) -> None:
    file = tmp_path / "state" / "hints.json"
    app, source = scripted_app()
    app.hints = Hints(file)
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_for_events(pilot, source)
        assert "space: start the load" in await hint_text(pilot)
        await press(pilot, "space")
        assert "?: help for" in await hint_text(pilot), "there is no segment to compare and no knob yet"
        source.push(*EVENTS)
        await wait_for_events(pilot, source, len(EVENTS))
        assert "t: tuning panel" in await hint_text(pilot)
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await press(pilot, "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        assert "d: next list" in await hint_text(pilot)
    restarted, source = scripted_app(EVENTS)
    restarted.hints = Hints(file)
    async with restarted.run_test(size=(120, 40)) as pilot:
        await wait_for_events(pilot, source, len(EVENTS))
        assert "d: next list" in await hint_text(pilot)
        await press(pilot, "d", "c", "escape", "question_mark", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        assert await hint_text(pilot) == ""


async def test_escape_hides_all_hints_permanently(tmp_path: Path) -> None:
    file = tmp_path / "hints.json"
    app, source = scripted_app(EVENTS)
    app.hints = Hints(file)
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_for_events(pilot, source, len(EVENTS))
        await press(pilot, "up", "escape")
        assert await hint_text(pilot), "the first Escape only cleared the selection"
        await press(pilot, "escape")
        assert await hint_text(pilot) == ""
        assert Hints(file).next(main(app).context()) == ""


def test_unreadable_hints_file_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "hints.json"
    for content in ("", "{", '{"a": 1}', "[3]"):
        file.write_text(content)
        assert Hints(file)._done == set()


CHANGED = changed_under_load()


def events_until(t: float) -> list[ev.AnyEvent]:
    return [event for event in CHANGED if event.t <= t]


def test_change_hint_lasts_until_verdict() -> None:
    for t, text in (
        (58.0, ""),
        (60.0, "change A (requested): its segment starts when it is active"),
        (61.0, "change A (reloaded): its segment starts when it is active"),
        (66.0, "change A: verdict in about N s of load. c: all metrics"),
        (200.0, "change A is better. c: all metrics with intervals"),
    ):
        hint = change_hint(context_of(events_until(t)))
        assert re.sub(r"\d+ s", "N s", hint) == text
        assert len(hint) <= 60, "fits 80 columns"
    early = tuning_hint(context_of(events_until(20.0)))
    assert early.endswith(" s for enough load") and len(early) <= 56
    assert tuning_hint(context_of(events_until(55.0))).startswith("t: tuning panel")
    begun = [event for event in CHANGED if not isinstance(event, ev.RunStarted | ev.Tick | ev.RunEnded)]
    assert change_hint(context_of(begun)) == "change A is active. space: start load to see its effect"


async def test_change_hint_has_priority_and_hides_below_dialogs(tmp_path: Path) -> None:
    app, source = scripted_app(events_until(66.0))
    app.hints = Hints(tmp_path / "hints.json")
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_for_events(pilot, source, len(events_until(66.0)))
        line = main(app).query_one(HintLine)
        assert "verdict in about" in text_of(line)
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        assert not text_of(line).strip(), "keys of the main screen do nothing here"
        assert line.display, "the layout below the panel does not change"
        await press(pilot, "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        assert "verdict in about" in text_of(line)
        await press(pilot, "c", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        assert "change A" not in text_of(line)


def test_host_details_hint_is_hidden_during_change(tmp_path: Path) -> None:
    hints = Hints(tmp_path / "hints.json")
    for name in ("load", "tune", "compare"):
        hints.done(name)
    busy, before = (replace(context_of(Scenario().events(t)), mode=Mode.LIVE) for t in (54.0, 34.0))
    assert "d: next list" in hints.next(before)
    assert "d: next list" not in hints.next(busy)
