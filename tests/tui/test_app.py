"""Beginning and ending: whatever happens, the session is ended and the recording closed."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time

import pytest
from textual.pilot import Pilot

from cockpit.model.errors import TargetError
from tests.tui.driving import PATIENCE, driven, until
from tests.tui.scenario import Scenario
from tests.tui.scripted import scripted_app


@pytest.mark.parametrize(("key", "interrupted"), [("q", False), ("ctrl+q", False), ("ctrl+c", True)])
async def test_quitting_ends_the_session_and_closes_the_recording(key: str, interrupted: bool) -> None:
    async with driven(Scenario().events(20)) as (pilot, source):
        await pilot.press(key)
        await until(pilot, lambda: not pilot.app.is_running)
    assert source.closed
    assert source.recorder.closed
    assert pilot.app.interrupted is interrupted  # type: ignore[attr-defined]


@pytest.mark.parametrize("opening", ["t", "question_mark", "m"])
async def test_ctrl_c_ends_from_inside_a_dialog_too(opening: str) -> None:
    async with driven(Scenario().events(20)) as (pilot, source):
        await pilot.press(opening)
        await until(pilot, lambda: len(pilot.app.screen_stack) == 2)
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not pilot.app.is_running)
    assert source.recorder.closed


async def test_an_app_ended_from_outside_closes_the_recording() -> None:
    async with driven(Scenario().events(20)) as (_, source):
        pass
    assert source.closed
    assert source.recorder.closed


async def test_what_the_session_fails_with_is_raised_to_the_caller() -> None:
    app, source = scripted_app(Scenario().events(20))

    async def fail(pilot: Pilot[object]) -> None:
        await until(pilot, lambda: source.session.revision > 0)
        source.fail(TargetError("web1:80: connection refused"))

    with pytest.raises(TargetError, match="connection refused"):
        await app.run_async(headless=True, size=(80, 24), auto_pilot=fail)
    assert source.recorder.closed


async def test_autostart_runs_the_action_once_when_the_screen_is_up() -> None:
    async with driven(autostart="toggle") as (pilot, source):
        await until(pilot, lambda: source.controls.done == [("toggle", "")])
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert source.controls.done == [("toggle", "")]


async def test_nothing_is_begun_any_more_while_the_session_ends() -> None:
    async with driven(Scenario().events(20)) as (pilot, source):
        await pilot.press("q", "space")
        await until(pilot, lambda: not pilot.app.is_running)
    assert source.controls.done == []


IN_A_TERMINAL = """
from tests.tui.scenario import Scenario
from tests.tui.scripted import scripted_app
app, source = scripted_app(Scenario().events(20))
app.run()
print(f"interrupted={app.interrupted} closed={source.recorder.closed}", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_screen_with_the_recording_closed_and_the_terminal_as_before(number: int) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [sys.executable, "-c", IN_A_TERMINAL])
    try:
        output = read_until(terminal, b"throughput")
        os.kill(child, number)
        output += read_until(terminal, b"closed=True")
        _, status = os.waitpid(child, 0)
    finally:
        # A child that is still there loses its terminal, which ends it.
        os.close(terminal)
    assert status == 0
    assert b"interrupted=True" in output
    assert output.index(b"\x1b[?1049h") < output.index(b"\x1b[?1049l") < output.index(b"interrupted=")


def read_until(terminal: int, words: bytes) -> bytes:
    """What the terminal gets, up to and with these words."""
    output = b""
    deadline = time.monotonic() + PATIENCE
    while words not in output:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{words!r} did not come; the last was {output[-500:]!r}"
        output += os.read(terminal, 65536)
    return output
