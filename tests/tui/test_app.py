"""Start and shutdown: the session ends and the recording is closed, whichever key or error ends the app."""

import asyncio

import pytest
from textual.pilot import Pilot

from cockpit.model import events as ev
from cockpit.model.errors import TargetError
from cockpit.session.controls import LoadPhase, LoadStatus
from cockpit.tui.app import CockpitApp
from cockpit.tui.dialogs.prompt import ConfirmScreen
from cockpit.tui.footer import Footer
from cockpit.tui.terminal.appearance import Appearance
from cockpit.tui.tuning.screen import TuningScreen
from tests import waiting
from tests.tui.driving import main, press, running_app, text_of, until
from tests.tui.scenario import Scenario, plan
from tests.tui.screens import until_notice
from tests.tui.scripted import scripted_app

EVENTS = Scenario().events(20)


@pytest.mark.parametrize(
    ("dialog", "keys"),
    [("", "q space"), ("", "ctrl+q"), ("", "ctrl+c"), ("t", "ctrl+c"), ("question_mark", "ctrl+c"), ("m", "ctrl+c")],
)
async def test_quit_ends_session_and_closes_recording(dialog: str, keys: str) -> None:
    async with running_app(EVENTS) as (pilot, source):
        await pilot.press(*dialog.split())
        await until(pilot, lambda: len(pilot.app.screen_stack) == (2 if dialog else 1))
        await pilot.press(*keys.split())
        await until(pilot, lambda: not pilot.app.is_running)
    assert source.closed
    assert source.recorder.closed
    assert pilot.app.interrupted is (keys == "ctrl+c")  # type: ignore[attr-defined]
    assert source.controls.done == [], "no action starts during the shutdown"


async def test_quit_during_an_undo_asks_and_completes_it() -> None:
    async with running_app(Scenario().events(60)) as (pilot, source):
        tuning, close = source.controls.tuning, source.close
        preview, undo = tuning.preview_undo, tuning.undo
        prepared, undone = asyncio.Event(), asyncio.Event()

        async def slow_preview(letter: str = "") -> object:
            await prepared.wait()
            return await preview(letter)

        async def whole_undo(letter: str = "") -> None:
            await undo(letter)
            undone.set()

        async def close_after_changes() -> None:
            await undone.wait()
            await close()

        tuning.preview_undo, tuning.undo = slow_preview, whole_undo  # type: ignore[method-assign,assignment]
        source.close = close_after_changes  # type: ignore[method-assign]
        await press(pilot, "ctrl+u", "q")
        await until_notice(pilot, "an undo is being prepared; q again: quit")
        prepared.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        tuning.gate.clear()
        await press(pilot, "enter")
        await until(pilot, lambda: not source.session.state.changes[-1].outcome)
        letter = source.session.state.changes[-1].letter
        await press(pilot, "q")
        await until_notice(pilot, f"change {letter}, the undo of A, is under way and will be completed; q again: quit")
        assert not leaving(pilot)
        await press(pilot, "q", "q", "q")
        footer = main(pilot.app).query_one(Footer)
        await until(pilot, lambda: f"and change {letter} (" in text_of(footer))
        assert pilot.app.is_running
        tuning.gate.set()
        await until(pilot, lambda: not pilot.app.is_running)
    assert source.closed


async def test_work_of_the_user_ends_after_the_terminal_has_closed() -> None:
    app, source = scripted_app(Scenario().events(60))
    app.appearance = Appearance(outlive=True)
    tuning = source.controls.tuning
    tuning.gate.clear()

    async def hang_up(pilot: Pilot[object]) -> None:
        await until(pilot, lambda: source.session.revision > 0)
        await press(pilot, "ctrl+u")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await press(pilot, "enter")
        await until(pilot, lambda: not source.session.state.changes[-1].outcome)
        app.lost_terminal()

    running = asyncio.create_task(app.run_async(headless=True, size=(120, 40), auto_pilot=hang_up))
    await waiting.until(lambda: tuning.closed)
    source.push(*(event for event in Scenario().events() if isinstance(event, ev.RunEnded) and event.run == 2))
    tuning.gate.set()
    await running
    assert source.session.state.changes[-1].outcome == "applied" and source.recorder.closed


async def test_confirmed_change_and_check_end_after_the_terminal_has_closed() -> None:
    """The change waits for its baseline, the check for 15 s of load."""
    app, source = scripted_app(Scenario().events(20))
    app.appearance = Appearance(outlive=True)
    tuning = source.controls.tuning

    async def hang_up(pilot: Pilot[object]) -> None:
        await until(pilot, lambda: source.session.revision > 0)
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await press(pilot, *"30", "enter")
        await until(pilot, lambda: ("preview", {"MinSpareServers": "30"}) in tuning.calls)
        await press(pilot, "enter")
        await until(pilot, lambda: tuning.calls[-1][0] == "await_baseline")
        app.lost_terminal()

    running = asyncio.create_task(app.run_async(headless=True, size=(120, 40), auto_pilot=hang_up))
    await waiting.until(lambda: tuning.closed)
    now = source.session.state.t
    source.push(*(event for event in Scenario().events(36) if event.t > now and not isinstance(event, ev.RunEnded)))
    await waiting.until(lambda: tuning.calls[-1][0] == "apply")
    source.push(ev.RunEnded(t=source.session.state.t, run=1, reason="stopped"))
    await running
    assert source.session.state.changes[-1].outcome == "applied"


async def test_load_of_a_check_is_stopped_when_the_terminal_closes() -> None:
    app, source = scripted_app(EVENTS[:1])
    app.appearance = Appearance(outlive=True)

    async def hang_up(pilot: Pilot[object]) -> None:
        await until(pilot, lambda: source.session.revision > 0)
        source.controls.status = LoadStatus(plan(), LoadPhase.IDLE)
        await press(pilot, "x")
        source.controls.status = LoadStatus(plan(), LoadPhase.RUNNING)
        app.lost_terminal()

    await app.run_async(headless=True, size=(120, 40), auto_pilot=hang_up)
    assert source.controls.done == [("toggle", "")] * 2


async def test_second_signal_without_a_terminal_ends_stuck_work() -> None:
    app, source = scripted_app(Scenario().events(60))
    app.appearance = Appearance(outlive=True)
    close, stuck = source.close, asyncio.Event()

    async def close_after_work() -> None:
        await stuck.wait()
        await close()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stuck.set()

    async def hang_up(pilot: Pilot[object]) -> None:
        source.close = close_after_work  # type: ignore[method-assign]
        app.run_work(work())
        app.lost_terminal()

    running = asyncio.create_task(app.run_async(headless=True, size=(120, 40), auto_pilot=hang_up))
    await waiting.until(lambda: source.controls.tuning.closed)
    app._signalled()
    await waiting.until(lambda: app._session_task is not None and app._session_task.cancelling())
    assert not stuck.is_set()
    app._signalled()
    await running
    assert stuck.is_set() and app.interrupted


def leaving(pilot: Pilot[object]) -> bool:
    assert isinstance(pilot.app, CockpitApp)
    return pilot.app.leaving


async def test_session_error_is_raised_to_caller() -> None:
    app, source = scripted_app(EVENTS)

    async def fail(pilot: Pilot[object]) -> None:
        await until(pilot, lambda: source.session.revision > 0)
        source.fail(TargetError("web1:80: connection refused"))

    with pytest.raises(TargetError, match="connection refused"):
        await app.run_async(headless=True, size=(80, 24), auto_pilot=fail)
    assert source.recorder.closed


async def test_autostart_runs_action_once_and_external_shutdown_closes_recording() -> None:
    async with running_app(autostart="toggle") as (pilot, source):
        await until(pilot, lambda: source.controls.done == [("toggle", "")])
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert source.controls.done == [("toggle", "")]
    assert source.closed
    assert source.recorder.closed
