"""`cockpit demo`: show the screen on an embedded web server and SSH host."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from cockpit.analysis.verdicts.segments import verdicts
from cockpit.analysis.words.verdicts import verdict_line
from cockpit.cli.appearance_options import appearance_of
from cockpit.cli.live import RecordingTarget, SessionEnd, on_screen, report_recording
from cockpit.cli.terminal import on_terminal
from cockpit.demo.servers import DemoServers
from cockpit.model.errors import EXIT_GOOD, EXIT_INTERRUPTED, UsageError
from cockpit.profiles.reader import parse_profile

if TYPE_CHECKING:
    from cockpit.tui.terminal.appearance import Appearance


def demo(options: Namespace) -> int:
    if not on_terminal():
        raise UsageError("demo: stdin and stdout must be a terminal; redirect stderr only (2>file)")
    outcome = asyncio.run(show_demo(RecordingTarget.of(options), appearance_of(options), options.start))
    if judged := verdicts(outcome.state):
        print(verdict_line(judged[-1]), file=sys.stderr)
    report_recording(outcome.recording)
    return EXIT_INTERRUPTED if outcome.interrupted else EXIT_GOOD


async def show_demo(record_to: RecordingTarget, appearance: Appearance, start: bool = False) -> SessionEnd:
    """Show the screen until it is closed. The recording starts when the servers are up."""
    async with DemoServers() as world:
        profile = parse_profile(world.profile_toml(), "demo", "demo")
        return await on_screen(profile, world.ssh_config, record_to, start=start, appearance=appearance)
