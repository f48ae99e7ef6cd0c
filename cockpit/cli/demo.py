"""`cockpit demo`: an embedded web server and SSH host."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from cockpit.analysis.row_verdicts import verdicts
from cockpit.analysis.words import verdict_line
from cockpit.cli.appearance_options import appearance_of
from cockpit.cli.live import Keeping, SessionEnd, say_kept, say_trouble
from cockpit.cli.terminal import on_terminal
from cockpit.demo.world import DemoWorld
from cockpit.model.errors import EXIT_GOOD, EXIT_INTERRUPTED, UsageError
from cockpit.profiles.reader import parse_profile
from cockpit.session.live_replay import can_look_back
from cockpit.session.live_session import LiveSession

if TYPE_CHECKING:
    from cockpit.tui.terminal.appearance import Appearance


def demo(options: Namespace) -> int:
    """Open the screen on a prefork web server behind an SSH host, both on loopback."""
    if not on_terminal():
        raise UsageError("demo: stdin and stdout must be a terminal; redirect stderr only (2>file)")
    outcome = asyncio.run(show_demo(Keeping.of(options), appearance_of(options)))
    if found := verdicts(outcome.state):
        print(verdict_line(found[-1]), file=sys.stderr)
    say_kept(outcome.recording)
    return EXIT_INTERRUPTED if outcome.interrupted else EXIT_GOOD


async def show_demo(keeping: Keeping, look: Appearance) -> SessionEnd:
    """Show the screen until it is closed. The recording starts when the servers are up."""
    from cockpit.tui.app import CockpitApp
    from cockpit.tui.hints import Hints

    async with DemoWorld() as world:
        profile = parse_profile(world.profile_toml(), "demo", "demo")
        recorder = keeping.recorder(profile.name)
        session = LiveSession(profile, recorder, ssh_config=world.ssh_config).session
        app = CockpitApp(can_look_back(session), hints=Hints(), look=look)
        await app.run_async()
    say_trouble(recorder)
    return SessionEnd(session.state, app.interrupted, recorder.path if recorder else "")
