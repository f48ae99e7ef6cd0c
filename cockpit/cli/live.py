"""Run a live session from start to end, with or without the screen."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cockpit.analysis.baseline import Baseline
from cockpit.analysis.capacity.search import LONGEST
from cockpit.analysis.plans import differences
from cockpit.analysis.words.stacks import native_words
from cockpit.cli.launcher import launcher_of
from cockpit.cli.progress import show_progress, show_search
from cockpit.cli.signals import cancelled_by_signals
from cockpit.cli.streams import report_streams
from cockpit.cli.typed_load import plan_with
from cockpit.export.follow import Stream, streaming
from cockpit.hosts.ssh.prompts import PromptQueue
from cockpit.load.preflight import Preflight
from cockpit.load.workers import LocalLauncher
from cockpit.model.errors import CockpitError, RecordingError, UsageError
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.model.text import sanitize
from cockpit.profiles.profile import Profile
from cockpit.recording import library
from cockpit.recording.secrets import Secrets
from cockpit.recording.writer import NullRecorder, RecordingWriter
from cockpit.session.live_replay import can_look_back
from cockpit.session.live_session import LiveSession
from cockpit.session.loop import Listener, Recorder, Session

if TYPE_CHECKING:
    from cockpit.tui.app import CockpitApp
    from cockpit.tui.terminal.appearance import Appearance


Result = TypeVar("Result")


@dataclass(frozen=True)
class SessionEnd:
    """The last state of a session, whether it was interrupted, and its recording ("": none)."""

    state: State
    interrupted: bool
    recording: str = ""


@dataclass(frozen=True)
class RecordingTarget:
    """Destination of the recording: `file`, else the library if `in_library`, else none."""

    file: Path | None = None
    in_library: bool = False

    @classmethod
    def of(cls, options: Namespace) -> RecordingTarget:
        """Return the choice of --record and --no-record, for a command that records by default."""
        return cls(options.record, not options.no_record)

    def recorder(self, session: str) -> Recorder | None:
        """Return the recorder of a session of that name. Raises RecordingError if `file` cannot be written.

        If only the library cannot be written, the session continues with a warning.
        """
        if self.file is not None:
            return RecordingWriter(self.file)
        if not self.in_library:
            return None
        try:
            return library.new_recording(session, time.time())
        except RecordingError as error:
            return NullRecorder(str(error))


def headless(
    profile: Profile,
    ssh_config: Path | None,
    record_to: RecordingTarget,
    *,
    limit: float | None = None,
    quiet: bool = False,
    listen: Listener | None = None,
    stop_when: Callable[[State], bool] = lambda state: False,
    runs: int = 1,
    until: str = "",
    streams: Sequence[Stream] = (),
    contact: Preflight | None = None,
) -> SessionEnd:
    """Run `runs` runs without a screen. Ctrl-C, SIGTERM and SIGHUP stop them; completed measurements are returned.

    `contact`: with the target, made just before; None: make it. `until`: limits of a capacity search instead of the
    runs. A run ends after `limit` seconds of load or when `stop_when` is true. `listen` receives every event, `streams`
    the states.
    """

    async def measure(live: LiveSession) -> bool:
        if until:
            await live.hosts_read()
            await live.source.capacity.run(until, limit or LONGEST)
            await live.hosts_idle()
            return True
        for _ in range(runs):
            state = await live.run_once(limit, stop_when)
            if state.segments[-1].reason == "failed" or stop_when(state):
                break
        await live.hosts_idle()
        return True

    async def session() -> SessionEnd:
        async with launcher_of(profile, ssh_config) as launcher:
            recorder = record_to.recorder(profile.name)
            if contact is not None:
                launcher = LocalLauncher((profile.plan, contact))
            live = LiveSession(profile, recorder, ssh_config=ssh_config, listen=listen, launcher=launcher)
            show = show_search if until else show_progress
            progress = no_progress() if quiet else show(live.session, profile)
            try:
                async with streaming(live.session, streams):
                    done = await run_headless(live, lambda: measure(live), progress)
            except CockpitError:
                if recorder and not live.state.runs:
                    discard(recorder)
                raise
            report_gaps(recorder)
            report_streams(streams)
            _report_unprofiled(live.state)
            return SessionEnd(live.state, interrupted=done is None)

    with Secrets(profile).redact_errors():
        return asyncio.run(session())


def _report_unprofiled(state: State) -> None:
    """Print why hosts could not be profiled, or not in the language of their server."""
    for name, host in state.hosts.items():
        if words := native_words(host.profiler):
            print(f"cockpit: {name}: {words}", file=sys.stderr)
        if host.profiler is not None and host.profiler.condition == "failed":
            print(f"cockpit: {name}: not profiled: {sanitize(host.profiler.detail)}", file=sys.stderr)


async def run_headless(
    live: LiveSession, work: Callable[[], Awaitable[Result]], progress: Coroutine[Any, Any, None]
) -> Result | None:
    """Run the session until `work` is done, while `progress` prints. Return None if a signal interrupted it."""
    printing = asyncio.create_task(progress)
    try:
        with cancelled_by_signals() as ignore_signals:
            async with live:
                try:
                    return await work()
                except asyncio.CancelledError:
                    return None
                finally:
                    ignore_signals()
    finally:
        printing.cancel()
        await asyncio.gather(printing, return_exceptions=True)


async def no_progress() -> None:
    """Print no progress."""


def close_recording(recorder: Recorder | None, state: State) -> None:
    """Print where runs and changes are recorded; remove a recording of neither."""
    if recorder and not state.runs and not state.markers:
        discard(recorder)
    elif recorder:
        report_gaps(recorder)
        report_recording(recorder.path)


def discard(recorder: Recorder) -> None:
    if recorder.path:
        Path(recorder.path).unlink(missing_ok=True)


async def on_screen(
    profile: Profile,
    ssh_config: Path | None,
    record_to: RecordingTarget,
    *,
    start: bool = False,
    limit: float | None = None,
    until: str = "",
    listen: Listener | None = None,
    appearance: Appearance | None = None,
    streams: Sequence[Stream] = (),
) -> SessionEnd:
    """Show the session on the screen until it is closed; `start`: with its load started; `until`: with a capacity
    search within these limits, of at most `limit` seconds."""
    with Secrets(profile).redact_errors():
        async with launcher_of(profile, ssh_config) as launcher:
            recorder = record_to.recorder(profile.name)
            live = LiveSession(
                profile, recorder, ssh_config=ssh_config, questions=PromptQueue(), listen=listen, launcher=launcher
            )
            live.source.capacity.longest = limit or LONGEST
            session = can_look_back(live.session)
            app = _app(session, profile, start, until, appearance)
            async with streaming(session, streams):
                await app.run_async()
            report_gaps(recorder)
            report_streams(streams)
            return SessionEnd(session.state, app.interrupted, recorder.path if recorder else "")


def _app(session: Session, profile: Profile, start: bool, until: str, appearance: Appearance | None) -> CockpitApp:
    from cockpit.tui.app import CockpitApp

    return CockpitApp(
        session,
        autostart="capacity" if until else "toggle" if start else "",
        answer=until,
        appearance=appearance,
        baseline_of=_baseline_of(profile),
        load_parser=plan_with,
    )


def _baseline_of(profile: Profile) -> Callable[[LoadPlan], Baseline | None]:
    """Return a function that loads the profile's baseline, else the newest for a load. It raises UsageError."""
    from cockpit.recording import baselines

    def baseline_of(plan: LoadPlan) -> Baseline | None:
        if not profile.baseline:
            return baselines.latest(plan)
        baseline = baselines.load(profile.baseline)
        if unlike := differences(baseline.plan, plan):
            raise UsageError(f"baseline {baseline.name}: different load ({', '.join(unlike)})")
        return baseline

    return baseline_of


@contextmanager
def hlog_into(path: Path | None) -> Iterator[Listener | None]:
    """Yield a listener that writes an HdrHistogram log, or None. No file remains after an error before any load."""
    if path is None:
        yield None
        return
    from cockpit.export.hlog import HlogWriter

    writer = HlogWriter(path)
    try:
        yield writer.feed
    except CockpitError:
        if writer.empty:
            path.unlink(missing_ok=True)
        raise
    finally:
        writer.close()
        if writer.trouble:
            print(f"cockpit: {writer.trouble}", file=sys.stderr)


def report_recording(path: str) -> None:
    """Print the path of the recording, and the command that replays it."""
    if path:
        in_library = Path(path).parent == library.folder()
        print(f"cockpit: recorded in {path}", file=sys.stderr)
        print(f"replay it: cockpit replay {shlex.quote(Path(path).stem if in_library else path)}", file=sys.stderr)


def report_gaps(recorder: Recorder | None) -> None:
    """Print recording errors and gaps."""
    if recorder and recorder.trouble:
        print(f"cockpit: recording: {recorder.trouble}", file=sys.stderr)
    for gap in recorder.gaps if recorder else ():
        print(f"cockpit: recording: {gap}", file=sys.stderr)
