"""`cockpit replay` and `cockpit report`: a recording on the screen, or its summaries."""

from __future__ import annotations

import asyncio
from argparse import Namespace

import msgspec

from cockpit.analysis.arms import verdicts
from cockpit.cli.terminal import on_terminal, tell
from cockpit.model.errors import EXIT_GOOD, EXIT_INTERRUPTED, UsageError
from cockpit.model.figures import run_result
from cockpit.model.fold import fold_all
from cockpit.model.text import escaped
from cockpit.report.machine import run_json
from cockpit.report.summary import summary
from cockpit.session.loop import Session
from cockpit.session.recording.reader import Recording
from cockpit.session.replay import ReplaySource, parse_jump


def replay(options: Namespace) -> int:
    """The same screen, fed from the file."""
    with Recording(options.file) as recording:
        start = parse_jump(options.at, 0.0, recording.started.wall)
        if not on_terminal():
            raise UsageError(f"replay needs a terminal; for text use: cockpit report {options.file}")
        interrupted = asyncio.run(_show(recording, start, not options.paused))
    return EXIT_INTERRUPTED if interrupted else EXIT_GOOD


async def _show(recording: Recording, start: float, playing: bool) -> bool:
    """Until the screen is closed; whether it was interrupted."""
    from cockpit.tui.app import CockpitApp

    app = CockpitApp(Session(ReplaySource(recording, start, playing)))
    await app.run_async()
    return app.interrupted


def report(options: Namespace) -> int:
    """Every run's summary."""
    with Recording(options.file) as recording:
        state = fold_all(recording.events())
    results = [found for found in (run_result(state, run) for run in range(1, state.runs + 1)) if found]
    found = verdicts(state)
    if options.json:
        encoded = msgspec.json.encode([run_json(result, verdicts=found) for result in results])
        tell(escaped(msgspec.json.format(encoded, indent=2).decode()))
    else:
        tell("\n\n".join(summary(result, found) for result in results) or "no run in this recording")
    return EXIT_GOOD
