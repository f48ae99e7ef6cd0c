"""`x`: 15 s of load against the thresholds and a baseline, in a panel of one line per threshold."""

from __future__ import annotations

from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Static

from cockpit.model import events as ev
from cockpit.model.errors import UsageError
from cockpit.tui.runs.check import CheckScreen
from tests.tui.driving import driven, main, press, until
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedSource

EVENTS = Scenario().events()


def up_to(t: float, thresholds: tuple[str, ...] = ()) -> list[ev.AnyEvent]:
    first, *more = [event for event in EVENTS if event.t <= t]
    assert isinstance(first, ev.SessionStarted)
    return [replace(first, thresholds=thresholds), *more]


def panel(pilot: Pilot[object]) -> str:
    assert isinstance(pilot.app.screen, CheckScreen)
    return str(pilot.app.screen.query_one("#results", Static).content)


async def test_a_load_that_runs_is_checked_as_soon_as_it_has_15_seconds() -> None:
    async with driven(up_to(15.0, ("p99 < 60s", "rate > 1m"))) as (pilot, source):
        await press(pilot, "x")
        assert panel(pilot) == "5 s more of load …"
        source.push(*(event for event in EVENTS if 15.0 < event.t <= 25.0))
        await until(pilot, lambda: "of load ·" in panel(pilot))
        head, *lines = panel(pilot).splitlines()
        assert head.startswith("1 of 2 failed · segment 1, ") and head.endswith(" · no baseline of this load")
        assert lines[0].startswith("✓  p99 < 60s  found ") and lines[1].startswith("✗  rate > 1m  found ")
        assert source.controls.done == [], "the load goes on"
        await press(pilot, "escape")
        assert pilot.app.screen is main(pilot.app)


async def test_without_a_load_one_is_started_and_stopped() -> None:
    async with driven(up_to(40.0)) as (pilot, source):
        await press(pilot, "x")
        assert panel(pilot) == "15 s more of load …"
        assert toggled(source) == 1
        source.push(*(event for event in EVENTS if 40.0 < event.t <= 62.0))
        await until(pilot, lambda: "pass · segment 2, " in panel(pilot))
        await until(pilot, lambda: toggled(source) == 2)
        await press(pilot, "escape")
        assert toggled(source) == 2


async def test_closing_stops_a_load_that_the_check_started() -> None:
    async with driven(up_to(40.0)) as (pilot, source):
        await press(pilot, "x")
        source.push(*(event for event in EVENTS if 40.0 < event.t <= 50.0))
        await until(pilot, lambda: panel(pilot) == "10 s more of load …")
        await press(pilot, "escape")
        await until(pilot, lambda: toggled(source) == 2)


async def test_a_baseline_that_does_not_load_is_said() -> None:
    async with driven(up_to(30.0)) as (pilot, _):

        def gone(_plan: object) -> None:
            raise UsageError("spring: no such baseline")

        pilot.app.baseline_of = gone  # type: ignore[attr-defined]
        await press(pilot, "x")
        assert panel(pilot) == "spring: no such baseline"


def toggled(source: ScriptedSource) -> int:
    return source.controls.done.count(("toggle", ""))
