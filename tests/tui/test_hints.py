"""Hints keep up with what goes on: a change that is waited for, its verdict, a screen that lies on top."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.model import events as ev
from cockpit.session.controls import Mode
from cockpit.tui.hints import Hints, of_change, to_tune
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.status_lines import HintLine
from cockpit.tui.tuning.screen import TuningScreen
from tests.tui.driving import context_of, driven, main, press, settled, text_of, until
from tests.tui.scenario import Scenario
from tests.tui.scripted import scripted_app
from tests.tui.test_verdicts import changed_under_load

EVENTS = changed_under_load()


def until_second(t: float) -> list[ev.AnyEvent]:
    return [event for event in EVENTS if event.t <= t]


@pytest.mark.parametrize(
    ("t", "words"),
    [
        (58.0, ""),
        (60.0, "change A (requested): its segment starts when it is active"),
        (61.0, "change A (reloaded): its segment starts when it is active"),
        (200.0, "change A is better. c: all metrics with intervals"),
    ],
)
def test_a_change_is_followed_until_it_is_judged(t: float, words: str) -> None:
    assert of_change(context_of(until_second(t))) == words


def test_while_its_row_grows_it_says_how_much_longer() -> None:
    words = of_change(context_of(until_second(66.0)))
    assert words.startswith("change A: ")
    assert len(words) <= 56, "on 80 columns it stands whole"
    assert words.endswith(" s of load. c: all metrics")


def test_a_change_is_hinted_at_when_there_is_enough_to_compare_it_with() -> None:
    assert to_tune(context_of(until_second(20.0))).endswith(" s for enough load")
    assert len(to_tune(context_of(until_second(20.0)))) <= 56
    assert to_tune(context_of(until_second(55.0))).startswith("t: tuning panel")


def test_without_load_it_says_how_to_see_what_it_does() -> None:
    begun = [event for event in EVENTS if not isinstance(event, ev.RunStarted | ev.Tick | ev.RunEnded)]
    assert of_change(context_of(begun)) == "change A is active. space: start load to see its effect"


async def test_it_goes_before_other_hints_and_is_not_said_below_another_screen(tmp_path: Path) -> None:
    app, source = scripted_app(until_second(66.0))
    app.hints = Hints(tmp_path / "hints.json")
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, source, len(until_second(66.0)))
        line = main(app).query_one(HintLine)
        assert "verdict in about" in text_of(line)
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        assert not text_of(line).strip(), "its keys do nothing here"
        assert line.display, "and nothing moves below the panel"
        await press(pilot, "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        assert "verdict in about" in text_of(line)
        await press(pilot, "c", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        assert "change A" not in text_of(line)


def test_nobody_busy_with_a_change_is_told_of_the_hosts_details(tmp_path: Path) -> None:
    hints = Hints(tmp_path / "hints.json")
    for name in ("load", "tune", "compare"):
        hints.done(name)
    busy, before = (replace(context_of(Scenario().events(t)), mode=Mode.LIVE) for t in (54.0, 34.0))
    assert "d: next list" in hints.next(before)
    assert "d: next list" not in hints.next(busy)


async def test_without_hints_there_are_none_of_changes_either() -> None:
    async with driven(EVENTS) as (pilot, _):
        assert not main(pilot.app).query_one(HintLine).display
