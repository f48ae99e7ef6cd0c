"""Hints follow the session: a pending change, its verdict, a dialog on top."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.model import events as ev
from cockpit.session.controls import Mode
from cockpit.tui.hints import Hints, change_hint, tuning_hint
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.status_lines import HintLine
from cockpit.tui.tuning.screen import TuningScreen
from tests.tui.driving import context_of, main, press, running_app, text_of, until, wait_for_events
from tests.tui.scenario import Scenario
from tests.tui.scripted import scripted_app
from tests.tui.test_verdicts import changed_under_load

EVENTS = changed_under_load()


def events_until(t: float) -> list[ev.AnyEvent]:
    return [event for event in EVENTS if event.t <= t]


@pytest.mark.parametrize(
    ("t", "text"),
    [
        (58.0, ""),
        (60.0, "change A (requested): its segment starts when it is active"),
        (61.0, "change A (reloaded): its segment starts when it is active"),
        (66.0, "change A: verdict in about N s of load. c: all metrics"),
        (200.0, "change A is better. c: all metrics with intervals"),
    ],
)
def test_change_hint_lasts_until_verdict(t: float, text: str) -> None:
    hint = change_hint(context_of(events_until(t)))
    assert re.sub(r"\d+ s", "N s", hint) == text
    assert len(hint) <= 60, "fits 80 columns"


def test_tuning_is_suggested_after_sufficient_baseline() -> None:
    early = tuning_hint(context_of(events_until(20.0)))
    assert early.endswith(" s for enough load") and len(early) <= 56
    assert tuning_hint(context_of(events_until(55.0))).startswith("t: tuning panel")


def test_change_hint_without_load_suggests_starting_load() -> None:
    begun = [event for event in EVENTS if not isinstance(event, ev.RunStarted | ev.Tick | ev.RunEnded)]
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


async def test_disabled_hints_include_change_hints() -> None:
    async with running_app(EVENTS) as (pilot, _):
        assert not main(pilot.app).query_one(HintLine).display
