"""`cockpit replay`: a recording on the screen."""

from __future__ import annotations

import asyncio
import gc
from argparse import Namespace
from pathlib import Path
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
    """Show a recording on the screen."""
    interrupted = show_recording(options.file, appearance_of(options), options.at, playing=not options.paused)
    return EXIT_INTERRUPTED if interrupted else EXIT_GOOD


def show_recording(file: Path, look: Appearance, at: str = "0", *, playing: bool = True) -> bool:
    """Show a recording from the instant `at` until the screen is closed; return whether it was interrupted.

    Raises RecordingError, UsageError.
    """
    with recording_at(file) as recording:
        start = parse_instant(at, recording.end, recording.started.wall)
        if not on_terminal():
            raise UsageError(f"replay needs a terminal; for text use: cockpit report {file}")
        # The index of a long recording stays: a garbage collection of it would delay seeks.
        gc.freeze()
        return asyncio.run(_show(recording, start, playing, look))


async def _show(recording: Recording, start: float, playing: bool, look: Appearance) -> bool:
    """Until the screen is closed; whether it was interrupted."""
    from cockpit.tui.app import CockpitApp

    app = CockpitApp(Session(ReplaySource(recording, start, playing)), look=look)
    await app.run_async()
    return app.interrupted
