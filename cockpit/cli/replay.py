"""`cockpit replay`: a recording on the screen."""

from __future__ import annotations

import asyncio
import gc
from argparse import Namespace
from typing import TYPE_CHECKING

from cockpit.cli.appearance_options import appearance_of
from cockpit.cli.opening import recording_at
from cockpit.cli.terminal import on_terminal
from cockpit.model.errors import EXIT_GOOD, EXIT_INTERRUPTED, UsageError
from cockpit.recording.reader import Recording
from cockpit.session.loop import Session
from cockpit.session.replay import ReplaySource, parse_instant

if TYPE_CHECKING:
    from cockpit.tui.terminal.appearance import Appearance


def replay(options: Namespace) -> int:
    """The same screen, fed from the file."""
    with recording_at(options.file) as recording:
        start = parse_instant(options.at, recording.end, recording.started.wall)
        if not on_terminal():
            raise UsageError(f"replay needs a terminal; for text use: cockpit report {options.file}")
        # Keep the index of a long recording out of garbage collection, which would delay seeks.
        gc.freeze()
        interrupted = asyncio.run(_show(recording, start, not options.paused, appearance_of(options)))
    return EXIT_INTERRUPTED if interrupted else EXIT_GOOD


async def _show(recording: Recording, start: float, playing: bool, look: Appearance) -> bool:
    """Until the screen is closed; whether it was interrupted."""
    from cockpit.tui.app import CockpitApp

    app = CockpitApp(Session(ReplaySource(recording, start, playing)), look=look)
    await app.run_async()
    return app.interrupted
