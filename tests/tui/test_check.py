"""`x`: 15 s of load are checked against thresholds and a baseline; the panel has one line per threshold."""

from __future__ import annotations

from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Static

from cockpit.model import events as ev
from cockpit.model.errors import UsageError
from cockpit.tui.runs.check import CheckScreen
from tests.tui.driving import main, press, running_app, until
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedSource

EVENTS = Scenario().events()


def events_until(t: float, thresholds: tuple[str, ...] = ()) -> list[ev.AnyEvent]:
    first, *more = [event for event in EVENTS if event.t <= t]
    assert isinstance(first, ev.SessionStarted)
    return [replace(first, thresholds=thresholds), *more]


def panel(pilot: Pilot[object]) -> str:
    assert isinstance(pilot.app.screen, CheckScreen)
    return str(pilot.app.screen.query_one("#results", Static).content)


async def test_running_load_is_checked_after_15_seconds() -> None:
    async with running_app(events_until(15.0, ("p99 < 60s", "rate > 1m"))) as (pilot, source):
        await press(pilot, "x")
        assert panel(pilot) == "waiting for 5 s of load …"
        source.push(*(event for event in EVENTS if 15.0 < event.t <= 25.0))
        await until(pilot, lambda: "of load ·" in panel(pilot))
        head, *lines = panel(pilot).splitlines()
        assert head.startswith("1 of 2 failed · segment 1, ") and head.endswith(" · no baseline for this load")
        assert lines[0].startswith("✓  p99 < 60s  found ") and lines[1].startswith("✗  rate > 1m  found ")
        assert source.controls.done == [], "the load continues"
        await press(pilot, "escape")
        assert pilot.app.screen is main(pilot.app)


async def test_check_without_load_starts_and_stops_load() -> None:
    async with running_app(events_until(40.0)) as (pilot, source):
        await press(pilot, "x")
        assert panel(pilot) == "waiting for 15 s of load …"
        assert toggle_count(source) == 1
        source.push(*(event for event in EVENTS if 40.0 < event.t <= 62.0))
        await until(pilot, lambda: "pass · segment 2, " in panel(pilot))
        await until(pilot, lambda: toggle_count(source) == 2)
        await press(pilot, "escape")
        assert toggle_count(source) == 2


async def test_closing_stops_load_started_by_check() -> None:
    async with running_app(events_until(40.0)) as (pilot, source):
        await press(pilot, "x")
        source.push(*(event for event in EVENTS if 40.0 < event.t <= 50.0))
        await until(pilot, lambda: panel(pilot) == "waiting for 10 s of load …")
        await press(pilot, "escape")
        await until(pilot, lambda: toggle_count(source) == 2)


async def test_unreadable_baseline_is_reported() -> None:
    async with running_app(events_until(30.0)) as (pilot, _):

        def unreadable(_plan: object) -> None:
            raise UsageError("spring: no such baseline")

        pilot.app.baseline_of = unreadable  # type: ignore[attr-defined]
        await press(pilot, "x")
        assert panel(pilot) == "spring: no such baseline"


def toggle_count(source: ScriptedSource) -> int:
    return source.controls.done.count(("toggle", ""))
