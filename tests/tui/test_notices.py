"""Notices: position, duration and dismissal."""

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
from tests.tui.driving import main, press, running_app, until, wait_for_events
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedTuning, scripted_app

EVENTS = Scenario().events(60.0)


def messages(pilot: Pilot[object]) -> list[str]:
    return [notice.message for notice in pilot.app._notifications]


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_notice_overlaps_neither_runs_table_nor_footer(size: tuple[int, int]) -> None:
    app, source = scripted_app(EVENTS)
    async with app.run_test(size=size, notifications=True) as pilot:
        await wait_for_events(pilot, source, len(EVENTS))
        await press(pilot, "minus")
        await until(pilot, lambda: any(toast.region.area for toast in pilot.app.screen.query(Toast)))
        (toast,) = pilot.app.screen.query(Toast)
        assert toast.region.y == 1
        assert toast.region.right >= size[0] - 2
        for kind in (Runs, Footer):
            assert not toast.region.overlaps(main(pilot.app).query_one(kind).region)


async def test_new_notice_replaces_earlier_notices() -> None:
    async with running_app() as (pilot, _):
        await press(pilot, "minus", "minus", "minus", "b", "c")
        await until(pilot, lambda: len(messages(pilot)) == 1)
        assert "No segment to compare yet" in messages(pilot)[0], "the notice of c replaced those of minus and b"
        assert all(notice.timeout <= NOTICE <= 4 for notice in pilot.app._notifications)


async def test_next_handled_key_dismisses_notice() -> None:
    async with running_app(EVENTS) as (pilot, source):
        for key in ("v", "space", "e"):
            await press(pilot, "minus")
            await until(pilot, lambda: len(messages(pilot)) == 1)
            await press(pilot, key)
            await until(pilot, lambda: messages(pilot) == [])
        assert ("toggle", "") in source.controls.done


async def test_unbound_key_keeps_notice() -> None:
    async with running_app(EVENTS) as (pilot, _):
        await press(pilot, "minus")
        await until(pilot, lambda: len(messages(pilot)) == 1)
        await press(pilot, "Z", "f9")
        assert len(messages(pilot)) == 1


async def test_shutdown_notice_names_pending_work() -> None:
    app, source = scripted_app(EVENTS)
    release = asyncio.Event()
    close = source.close

    async def slow_close() -> None:
        await release.wait()
        await close()

    source.close = slow_close  # type: ignore[method-assign]
    async with app.run_test() as pilot:
        await wait_for_events(pilot, source, len(EVENTS))
        tuning = source.controls.tuning
        assert isinstance(tuning, ScriptedTuning)
        tuning.gate.clear()
        change: Awaitable[None] = tuning.apply({"MinSpareServers": "30"})
        pending = asyncio.ensure_future(change)
        await until(pilot, lambda: isinstance(source.recorder.events[-1], ev.ChangeBegun))
        assert isinstance(pilot.app.screen, MainScreen)
        await press(pilot, "q")
        letter = source.session.state.changes[-1].letter
        await until(pilot, lambda: len(messages(pilot)) == 1)
        assert messages(pilot)[0].startswith("ending: waiting for the end of the load and change ")
        assert f"change {letter} (" in messages(pilot)[0]
        tuning.gate.set()
        await pending
        release.set()
