"""Start and shutdown: the session ends and the recording is closed, whichever key or error ends the app."""

import pytest
from textual.pilot import Pilot

from cockpit.model.errors import TargetError
from tests.tui.driving import running_app, until
from tests.tui.scenario import Scenario
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
