"""The README's first tuning session on the real app and the embedded demo: `python -m tests.tutorial [N] [--busy]`.

Each line is one session: the verdict on the screen, the effect, and the seconds from the start of the load. With --busy
another process uses a CPU. Exit 1 if a verdict is not "better", or takes more than three minutes.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

from textual.pilot import Pilot
from textual.widgets import Static

from cockpit.analysis.verdicts.outcome import Outcome, Verdict
from cockpit.analysis.verdicts.wait import is_open
from cockpit.analysis.words.verdicts import verdict_line
from cockpit.demo.servers import DemoServers
from cockpit.model.clock import Clock
from cockpit.profiles.reader import parse_profile
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from cockpit.tui.app import CockpitApp
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.tuning.screen import TuningScreen
from cockpit.tui.tuning.widgets import KnobRow

LIMIT = 180.0
# Timeout (s) of a step.
_TIMEOUT = 400.0
KNOB, VALUE = "MaxRequestsPerChild", "10000"


class Result(NamedTuple):
    """The final verdict on the screen, if any, and the seconds since the start of the load."""

    verdict: Verdict | None
    seconds: float

    @property
    def is_correct(self) -> bool:
        return self.verdict is not None and self.verdict.outcome is Outcome.BETTER


async def tutorial() -> Result:
    """Carry out one session: load, the change, its verdict."""
    async with DemoServers() as world:
        profile = parse_profile(world.profile_toml(), "demo", "demo")
        session = Session(LiveSource(profile, Clock(), ssh_config=world.ssh_config))
        app = CockpitApp(session)
        async with app.run_test(size=(120, 40)) as pilot:
            return await _drive(pilot, session)


async def _drive(pilot: Pilot[None], session: Session) -> Result:
    await _until(pilot, lambda: bool(session.state.knobs) and all(knob.known for knob in session.state.knobs.values()))
    await pilot.press("space")
    await _until(pilot, lambda: session.state.running is not None)
    started = session.state.t
    await pilot.press("t")
    await _until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen) and not _status(pilot))
    await pilot.press(*["down"] * [row.knob.name for row in pilot.app.screen.query(KnobRow)].index(KNOB))
    await pilot.press(*VALUE)
    await pilot.press("enter")
    await _until(pilot, lambda: _status(pilot).startswith(("baseline", "Enter again")))
    await pilot.press("enter")
    await _until(pilot, lambda: bool(session.state.changes) and bool(session.state.changes[-1].outcome))
    # The panel closes when the change is active.
    await _until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
    await _until(pilot, lambda: _ended(pilot) or session.state.t - started > LIMIT)
    return Result(_shown(pilot), session.state.t - started)


def _status(pilot: Pilot[None]) -> str:
    return str(pilot.app.screen.query_one("#status", Static).render()).strip()


def _shown(pilot: Pilot[None]) -> Verdict | None:
    """Return the verdict of the latest segment on the main screen."""
    screen = pilot.app.screen
    if not isinstance(screen, MainScreen):
        return None
    context = screen.context()
    return context.verdict(context.segment) if context.segment is not None and context.segment.changes else None


def _ended(pilot: Pilot[None]) -> bool:
    """Return whether the verdict is final."""
    verdict = _shown(pilot)
    return verdict is not None and not is_open(verdict)


async def _until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(_TIMEOUT):
        while not holds():
            await pilot.pause(0.1)


@contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """If wanted, let another process use a CPU during the block, for at most 20 minutes."""
    if not wanted:
        yield
        return
    code = "import time\nend = time.monotonic() + 1200\nwhile time.monotonic() < end: pass"
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def main() -> int:
    """Print a line per session; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.tutorial")
    parser.add_argument("number", nargs="?", type=int, default=1, help="sessions (default 1)")
    parser.add_argument("--busy", action="store_true", help="let another process use a CPU")
    options = parser.parse_args()
    correct = 0
    for number in range(1, options.number + 1):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as state, patch.dict(os.environ, XDG_STATE_HOME=state), busy(options.busy):
            result = asyncio.run(tutorial())
        passed = result.is_correct and result.seconds < LIMIT
        correct += passed
        elapsed = time.monotonic() - began
        print(f"{number:>3}  {'ok ' if passed else 'BAD'}  {result.seconds:4.0f} s ({elapsed:.0f} s)  ", end="")
        print("no verdict" if result.verdict is None else verdict_line(result.verdict), flush=True)
    print(f"{correct} of {options.number} correct within {LIMIT:.0f} s")
    return 0 if correct == options.number else 1


if __name__ == "__main__":
    sys.exit(main())
