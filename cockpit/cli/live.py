"""A live session from beginning to end, without the screen or with it. Shared by run, check and demo."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.cli.progress import show_progress
from cockpit.cli.signals import cancelled_by_signals
from cockpit.hosts.prompts import Questions
from cockpit.model.errors import CockpitError, RecordingError
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.recording import library
from cockpit.recording.secrets import Secrets
from cockpit.recording.writer import RecordingWriter, Unrecorded
from cockpit.session.live_replay import can_look_back
from cockpit.session.live_session import LiveSession
from cockpit.session.loop import Listener, Recorder

if TYPE_CHECKING:
    from cockpit.tui.terminal.appearance import Appearance


@dataclass(frozen=True)
class SessionEnd:
    """The last state, whether somebody interrupted, and the file that was recorded into ("": none)."""

    state: State
    interrupted: bool
    recording: str = ""


@dataclass(frozen=True)
class Keeping:
    """Where a session is recorded: into `file`, else in the library where `by_itself`, else nowhere."""

    file: Path | None = None
    by_itself: bool = False

    @classmethod
    def of(cls, options: Namespace) -> Keeping:
        """What --record and --no-record say, for a command that records by itself."""
        return cls(options.record, not options.no_record)

    def recorder(self, session: str) -> Recorder | None:
        """For a session of that name. Raises RecordingError before any load starts when `file` cannot be written.

        A session that nobody asked to keep goes on where the library cannot be written, and says so.
        """
        if self.file is not None:
            return RecordingWriter(self.file)
        if not self.by_itself:
            return None
        try:
            return RecordingWriter(library.fresh_path(session, time.time()))
        except RecordingError as error:
            return Unrecorded(str(error))


def headless(
    profile: Profile,
    ssh_config: Path | None,
    keeping: Keeping,
    *,
    limit: float | None = None,
    quiet: bool = False,
    listen: Listener | None = None,
    stop_when: Callable[[State], bool] = lambda state: False,
    runs: int = 1,
) -> SessionEnd:
    """`runs` runs without a screen, one after the other. Ctrl-C, SIGTERM and SIGHUP stop them; what was measured until
    then is the result.

    `limit` seconds of load per run at the most, and until `stop_when`; `listen` is given every event as it comes.
    """
    recorder = keeping.recorder(profile.name)
    with Secrets(profile).out_of_errors():
        return asyncio.run(_headless(profile, ssh_config, recorder, limit, quiet, listen, stop_when, runs))


async def _headless(
    profile: Profile,
    ssh_config: Path | None,
    recorder: Recorder | None,
    limit: float | None,
    quiet: bool,
    listen: Listener | None,
    stop_when: Callable[[State], bool],
    runs: int,
) -> SessionEnd:
    live = LiveSession(profile, recorder, ssh_config=ssh_config, listen=listen)
    interrupted, unused = False, False
    try:
        with cancelled_by_signals() as ignore_signals:
            async with live:
                showing = asyncio.create_task(_nothing() if quiet else show_progress(live.session, profile))
                try:
                    for _ in range(runs):
                        state = await live.run_once(limit, stop_when)
                        if state.segments[-1].reason == "failed" or stop_when(state):
                            break
                except asyncio.CancelledError:
                    interrupted = True
                finally:
                    ignore_signals()
                    showing.cancel()
                    await asyncio.gather(showing, return_exceptions=True)
    except CockpitError:
        unused = live.state.runs == 0
        raise
    finally:
        if recorder and unused:
            discard(recorder)
    say_trouble(recorder)
    return SessionEnd(live.state, interrupted)


def discard(recorder: Recorder) -> None:
    """Delete a closed recording that holds nothing of use."""
    if recorder.path:
        Path(recorder.path).unlink(missing_ok=True)


async def _nothing() -> None:
    """No progress is shown."""


def on_screen(
    profile: Profile,
    ssh_config: Path | None,
    keeping: Keeping,
    *,
    autostart: str = "",
    listen: Listener | None = None,
    look: Appearance | None = None,
) -> SessionEnd:
    """The cockpit's screen until it is closed."""
    from cockpit.tui.app import CockpitApp
    from cockpit.tui.hints import Hints

    async def show() -> SessionEnd:
        live = LiveSession(profile, recorder, ssh_config=ssh_config, questions=Questions(), listen=listen)
        session = can_look_back(live.session)
        app = CockpitApp(session, autostart=autostart, hints=Hints(), look=look)
        await app.run_async()
        return SessionEnd(session.state, app.interrupted, recorder.path if recorder else "")

    recorder = keeping.recorder(profile.name)
    with Secrets(profile).out_of_errors():
        outcome = asyncio.run(show())
    say_trouble(recorder)
    return outcome


@contextmanager
def hlog_into(path: Path | None) -> Iterator[Listener | None]:
    """A listener that writes an HdrHistogram log, where one is wanted. What fails before any load leaves no file."""
    if path is None:
        yield None
        return
    from cockpit.report.hlog import HlogWriter

    writer = HlogWriter(path)
    try:
        yield writer.take
    except CockpitError:
        if writer.empty:
            path.unlink(missing_ok=True)
        raise
    finally:
        writer.close()
        if writer.trouble:
            print(f"cockpit: {writer.trouble}", file=sys.stderr)


def say_kept(path: str) -> None:
    """Once the screen is gone: where the session was recorded, and how it is seen again."""
    if path:
        in_library = Path(path).parent == library.folder()
        print(f"cockpit: recorded in {path}", file=sys.stderr)
        print(f"see it again: cockpit replay {shlex.quote(Path(path).stem if in_library else path)}", file=sys.stderr)


def say_trouble(recorder: Recorder | None) -> None:
    """A recording that is not whole must not pass in silence."""
    if recorder and recorder.trouble:
        print(f"cockpit: recording: {recorder.trouble}", file=sys.stderr)
    for gap in recorder.gaps if recorder else ():
        print(f"cockpit: recording: {gap}", file=sys.stderr)
