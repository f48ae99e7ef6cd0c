"""Changing knobs from the panel, by keyboard alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input, Static

from cockpit.model import events as ev
from cockpit.tui.screens.main import MainScreen
from cockpit.tui.screens.tuning import KnobRow, TuningScreen
from tests.tui.driving import at_rest, driven, press, text_of, until
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedSource, ScriptedTuning


@asynccontextmanager
async def opened(
    until_second: float = 38.0, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Pilot[object], ScriptedSource, ScriptedTuning]]:
    """The panel over the session, its first reading done."""
    async with driven(Scenario().events(until_second), size=size) as (pilot, source):
        tuning = source.controls.tuning
        assert isinstance(tuning, ScriptedTuning)
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen) and status(pilot) == "")
        yield pilot, source, tuning


def part(pilot: Pilot[object], name: str) -> str:
    """The text of one part of the panel."""
    return text_of(pilot.app.screen.query_one(f"#{name}", Static))


def status(pilot: Pilot[object]) -> str:
    return part(pilot, "status").strip()


def typed(pilot: Pilot[object]) -> list[str]:
    return [field.value for field in pilot.app.screen.query(Input)]


async def test_opening_reads_the_values_and_shows_where_they_stand() -> None:
    async with opened() as (pilot, _, tuning):
        assert tuning.calls == [("refresh", {})]
        values = [text_of(row.query_one(".value", Static)).strip() for row in pilot.app.screen.query(KnobRow)]
        assert values == ["5", "10", "10"]
        details = part(pilot, "details")
        assert "web1:/etc/apache2/mods-available/mpm_prefork.conf" in details
        assert "MinSpareServers in <IfModule mpm_prefork_module>" in details
        assert "one word" in details
        await press(pilot, "down", "down")
        assert "allowed: 0 10 1000" in part(pilot, "details")


async def test_several_values_are_applied_as_one_change() -> None:
    async with opened() as (pilot, source, tuning):
        await press(pilot, *"30", "down", *"60")
        assert "MinSpareServers 5 → 30, MaxSpareServers 10 → 60" in part(pilot, "plan")
        await press(pilot, "enter")
        await until(pilot, lambda: status(pilot).startswith("in force"))
        assert tuning.calls[1:] == [("apply", {"MinSpareServers": "30", "MaxSpareServers": "60"})]
        await until(pilot, lambda: typed(pilot) == ["", "", ""])
        await until(pilot, lambda: "A MinSpareServers 5 → 30, MaxSpareServers 10 → 60" in part(pilot, "changes"))
        assert "in force since" in part(pilot, "changes")
        assert [change.outcome for change in source.session.state.changes] == ["applied"]


async def test_what_is_typed_faster_than_the_panel_draws_lands_in_the_right_fields() -> None:
    async with opened() as (pilot, _, _tuning):
        keys = ("3", "0", "down", "4", "5", "down", "1", "down", "7")
        for key in keys:
            pilot.app.post_message(Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: typed(pilot) == ["7", "45", "1"])


async def test_while_a_change_is_under_way_the_panel_says_so_and_takes_no_other() -> None:
    async with opened() as (pilot, _, tuning):
        tuning.gate.clear()
        await press(pilot, *"30", "ctrl+s")
        await until(pilot, lambda: status(pilot) == "applying …")
        await until(pilot, lambda: "under way for" in part(pilot, "changes"))
        await press(pilot, "ctrl+s")
        await until(pilot, lambda: "one thing at a time" in status(pilot))
        tuning.gate.set()
        await until(pilot, lambda: status(pilot).startswith("in force"))
        assert [name for name, _ in tuning.calls] == ["refresh", "apply"]


async def test_a_change_that_was_put_back_says_why_and_keeps_what_was_typed() -> None:
    async with opened() as (pilot, _, tuning):
        tuning.refuse = "web1: apachectl -t: Syntax error on line 5"
        await press(pilot, *"many", "enter")
        await until(pilot, lambda: status(pilot) == f"not applied: {tuning.refuse}")
        assert typed(pilot)[0] == "many"
        await until(pilot, lambda: "undone: web1: apachectl -t" in part(pilot, "changes"))


async def test_undo_takes_the_last_change_back() -> None:
    async with opened(41.0) as (pilot, source, tuning):
        await press(pilot, "ctrl+z")
        await until(pilot, lambda: status(pilot) == "taken back")
        assert tuning.calls[-1] == ("undo", {})
        await until(pilot, lambda: source.session.state.knobs["MaxSpareServers"].value == "10")


async def test_undo_with_nothing_to_undo_says_so() -> None:
    async with opened() as (pilot, _, _tuning):
        await press(pilot, "ctrl+z")
        await until(pilot, lambda: status(pilot) == "not applied: nothing to undo")


async def test_enter_with_nothing_typed_changes_nothing() -> None:
    async with opened() as (pilot, _, tuning):
        await press(pilot, "enter")
        await until(pilot, lambda: "type a new value" in status(pilot))
        await press(pilot, "5", "enter")
        await at_rest(pilot)
        assert tuning.calls == [("refresh", {})], "5 is in force already"


async def test_reading_again_and_the_arrows_round_the_ends() -> None:
    async with opened() as (pilot, _, tuning):
        await press(pilot, "up", *"10", "down", "4", "ctrl+r")
        await until(pilot, lambda: len(tuning.calls) == 2)
        assert tuning.calls[-1] == ("refresh", {})
        assert typed(pilot) == ["4", "", "10"]


async def test_a_change_goes_on_when_the_panel_is_closed_and_its_end_is_told() -> None:
    async with opened() as (pilot, source, tuning):
        tuning.gate.clear()
        await press(pilot, *"30", "enter")
        await until(pilot, lambda: status(pilot) == "applying …")
        await press(pilot, "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        tuning.gate.set()
        await until(pilot, lambda: any("in force" in note.message for note in pilot.app._notifications))
        await until(pilot, lambda: source.session.state.knobs["MinSpareServers"].value == "30")


async def test_a_value_that_could_not_be_read_says_why() -> None:
    async with opened() as (pilot, source, _):
        source.push(ev.KnobRead(t=39.0, knob="MinSpareServers", host="web1", value=None, detail="no such file"))
        await until(pilot, lambda: "could not be read" in text_of(pilot.app.screen.query_one("KnobRow .value", Static)))
        await press(pilot, "down", "up")
        assert "no such file" in part(pilot, "details")


async def test_without_tuning_values_can_only_be_looked_at() -> None:
    async with driven(Scenario().events(76)) as (pilot, source):
        source.controls.tuning = None
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await at_rest(pilot)
        assert not pilot.app.screen.query(Input)
        assert "only be looked at" in part(pilot, "keys")
        await press(pilot, "down", "enter", "ctrl+s", "ctrl+z", "ctrl+r")
        assert "MaxSpareServers in" in part(pilot, "details")
        assert "A MinSpareServers 5 → 20" in part(pilot, "changes")


async def test_a_profile_without_knobs_says_how_to_get_some() -> None:
    async with driven() as (pilot, _):
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await press(pilot, "down", "enter", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
