"""Start and shutdown: the session ends and the recording is closed, whatever ends the app."""

from __future__ import annotations

import os
import pty
import select
import signal
import time

import pytest
from textual.pilot import Pilot

from cockpit.model.errors import TargetError
from tests.tui.driving import running_app, until
from tests.tui.scenario import Scenario
from tests.tui.scripted import scripted_app
from tests.waiting import DEADLINE

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


def run_on_terminal() -> None:
    """Run the app on this process's terminal, and end the process."""
    os.environ["TERM"] = "xterm-256color"
    status = 1
    try:
        app, source = scripted_app(EVENTS)
        app.run()
        os.write(1, f"interrupted={app.interrupted} closed={source.recorder.closed}".encode())
        status = 0
    finally:
        os._exit(status)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_closes_recording_and_restores_terminal(number: int) -> None:
    child, terminal = pty.fork()
    if child == 0:
        run_on_terminal()
    try:
        output = read_until(terminal, b"throughput")
        os.kill(child, number)
        output += read_until(terminal, b"closed=True")
        _, status = os.waitpid(child, 0)
    finally:
        # Closing the terminal ends a child that is still running.
        os.close(terminal)
    assert status == 0
    assert b"interrupted=True" in output
    assert output.index(b"\x1b[?1049h") < output.index(b"\x1b[?1049l") < output.index(b"interrupted=")


def read_until(terminal: int, expected: bytes) -> bytes:
    """Return the terminal output up to and including `expected`."""
    output = b""
    deadline = time.monotonic() + DEADLINE
    while expected not in output:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{expected!r} not received; the output ends with {output[-500:]!r}"
        output += os.read(terminal, 65536)
    return output
