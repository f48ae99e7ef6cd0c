"""`cockpit replay`: show a recording on the screen."""

from __future__ import annotations

import asyncio
import gc
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.cli.appearance_options import appearance_of
from cockpit.cli.open_recording import recording_at
from cockpit.cli.terminal import on_terminal
from cockpit.model.errors import EXIT_GOOD, EXIT_INTERRUPTED, UsageError
from cockpit.recording.reader import Recording
from cockpit.session.loop import Session
from cockpit.session.replay import ReplaySource, parse_instant

if TYPE_CHECKING:
    from cockpit.tui.terminal.appearance import Appearance


def replay(options: Namespace) -> int:
    interrupted = show_recording(options.file, appearance_of(options), options.at, playing=not options.paused)
    return EXIT_INTERRUPTED if interrupted else EXIT_GOOD


def show_recording(file: Path, appearance: Appearance, at: str = "", *, playing: bool = True) -> bool:
    """Show a recording until the screen is closed; return whether it was interrupted. `at`: "" is its first load.

    Raises CockpitError.
    """
    with recording_at(file, bounded=False) as recording:
        start = parse_instant(at, recording.end, recording.started.wall) if at else _first_load(recording)
        if not on_terminal():
            raise UsageError(f"replay: needs a terminal; for text use: cockpit report {file}")
        # Keep the index of a long recording out of garbage collections, which would delay seeks.
        gc.freeze()
        from cockpit.tui.app import CockpitApp

        async def show() -> bool:
            app = CockpitApp(Session(ReplaySource(recording, start, playing)), appearance=appearance)
            await app.run_async()
            return app.interrupted

        return asyncio.run(show())


def _first_load(recording: Recording) -> float:
    """Return the end of the first second of load; 0 without load."""
    begun = recording.times_of(["run_started"])
    return min(begun[0] + 1.0, recording.end) if begun else 0.0
