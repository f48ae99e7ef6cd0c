"""Notices: where they stand, how long, and what takes them away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
from textual.pilot import Pilot
from textual.widgets._toast import Toast

from cockpit.model import events as ev
from cockpit.tui.footer import Footer
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.runs.table import Runs
from cockpit.tui.terminal.base_app import NOTICE
from tests.tui.driving import driven, main, press, settled, until
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedTuning, scripted_app

EVENTS = Scenario().events(60.0)


def told(pilot: Pilot[object]) -> list[str]:
    return [notice.message for notice in pilot.app._notifications]


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_a_notice_stands_below_the_top_line_and_leaves_verdicts_and_keys_alone(size: tuple[int, int]) -> None:
    app, source = scripted_app(EVENTS)
    async with app.run_test(size=size, notifications=True) as pilot:
        await settled(pilot, source, len(EVENTS))
        await press(pilot, "minus")
        await until(pilot, lambda: any(toast.region.area for toast in pilot.app.screen.query(Toast)))
        (toast,) = pilot.app.screen.query(Toast)
        assert toast.region.y == 1
        assert toast.region.right >= size[0] - 2
        for kind in (Runs, Footer):
            assert not toast.region.overlaps(main(pilot.app).query_one(kind).region)


async def test_of_one_matter_there_is_one_notice_and_a_short_one() -> None:
    async with driven() as (pilot, _):
        await press(pilot, "minus", "minus", "minus", "b", "c")
        await until(pilot, lambda: len(told(pilot)) == 1)
        assert "No segment to compare yet" in told(pilot)[0], "what c says came after what b said, and x after itself"
        assert all(notice.timeout <= NOTICE <= 4 for notice in pilot.app._notifications)


async def test_the_next_key_that_is_done_takes_a_notice_away() -> None:
    async with driven(EVENTS) as (pilot, source):
        for key in ("v", "space", "e"):
            await press(pilot, "minus")
            await until(pilot, lambda: len(told(pilot)) == 1)
            await press(pilot, key)
            await until(pilot, lambda: told(pilot) == [])
        assert ("toggle", "") in source.controls.done


async def test_a_key_that_fails_leaves_what_was_said_before() -> None:
    async with driven(EVENTS) as (pilot, _):
        await press(pilot, "minus")
        await until(pilot, lambda: len(told(pilot)) == 1)
        await press(pilot, "Z", "f9")
        assert len(told(pilot)) == 1


async def test_the_end_says_what_it_waits_for() -> None:
    app, source = scripted_app(EVENTS)
    let_go = asyncio.Event()
    closing = source.close

    async def slow() -> None:
        await let_go.wait()
        await closing()

    source.close = slow  # type: ignore[method-assign]
    async with app.run_test() as pilot:
        await settled(pilot, source, len(EVENTS))
        tuning = source.controls.tuning
        assert isinstance(tuning, ScriptedTuning)
        tuning.gate.clear()
        change: Awaitable[None] = tuning.apply({"MinSpareServers": "30"})
        under_way = asyncio.ensure_future(change)
        await until(pilot, lambda: isinstance(source.recorder.events[-1], ev.ChangeBegun))
        assert isinstance(pilot.app.screen, MainScreen)
        await press(pilot, "q")
        letter = source.session.state.changes[-1].letter
        await until(pilot, lambda: len(told(pilot)) == 1)
        assert told(pilot)[0].startswith("ending: waits for the end of the load and change ")
        assert f"change {letter} (" in told(pilot)[0]
        tuning.gate.set()
        await under_way
        let_go.set()
