"""Users' traffic as a load: one worker per access log, which counts requests in place of sending them."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic
from typing import NamedTuple

from cockpit.hosts import watchdog
from cockpit.hosts.feed import HostFeed, retries
from cockpit.hosts.shell import Channel
from cockpit.load.http import protocol
from cockpit.load.http.protocol import Assignment, Done, Extend, Start, Stop
from cockpit.load.limits import Capacity, capacity_here
from cockpit.load.preflight import Preflight
from cockpit.load.workers import Assigned, Message
from cockpit.model import events
from cockpit.model.clock import Clock
from cockpit.model.errors import CockpitError, HostError
from cockpit.model.events import AnyEvent
from cockpit.model.load.plan import AccessLog, LoadPlan
from cockpit.model.text import sanitize
from cockpit.model.tick import Tick
from cockpit.traffic.counts import InvalidCounts, TrafficCounts, is_whole
from cockpit.traffic.log_format import (
    SCALES,
    FieldRole,
    LogFormat,
    LoggedLine,
    likely_format,
    match_line,
    parse_format,
    timed_directives,
)
from cockpit.traffic.program import program

# Lines of a log that are read to recognize its format, and their maximum bytes.
_SAMPLE, _SAMPLE_BYTES = 50, 200_000
# Seconds of a tick while a log is not read.
_INTERVAL = 1.0
# Largest share of lines in another format that causes no warning.
_TOLERATED = 0.05


class Recognized(NamedTuple):
    """An access log with its format, and the requests among the last lines."""

    log: AccessLog
    fields: LogFormat
    requests: Sequence[LoggedLine]
    lines: int

    @property
    def fine(self) -> bool:
        """Whether durations are logged in microseconds."""
        return self.fields.scale == SCALES[FieldRole.MICROSECONDS]

    @property
    def warnings(self) -> Iterator[str]:
        place = f"{self.log.host}: {self.log.file}"
        others = self.lines - len(self.requests)
        if others > _TOLERATED * self.lines:
            yield f"{place}: {others} of the last {self.lines} lines have another format"
        times = [request.us for request in self.requests if request.us is not None]
        if self.fields.scale is None or (self.requests and not times):
            unit = "" if self.fields.scale is None else " finer than a second"
            yield f"{place} has no durations{unit}, so there is no latency; log them: {timed_directives(self.log)}"
        elif times and not any(times):
            yield (
                f"{place}: the durations are all 0, so latencies say nothing: below the resolution of the log "
                "(milliseconds), or without the server's own time (nginx)"
            )
        elif times and not self.fine and all(map(is_whole, times)):
            yield f"{place} has durations in milliseconds, so latencies below 10 ms are coarse"
        yield f"requests are counted from {place}"


class TrafficLauncher:
    """Reads the access logs of the plan on the hosts of `feeds`."""

    lead = 0.0
    machines: tuple[str, ...] = ()

    def __init__(self, feeds: Mapping[str, HostFeed], clock: Clock) -> None:
        self._feeds = feeds
        self._clock = clock
        self._chosen: list[Recognized] = []

    @property
    def capacity(self) -> Capacity:
        return capacity_here()

    def attach(self, clock: Clock, emit: Callable[[AnyEvent], None]) -> None:
        """Do nothing: the hosts are watched by the session."""

    async def check(self, plan: LoadPlan) -> Preflight:
        """Recognize the format of each log. Raises HostError, UsageError."""
        self._chosen = [await self._recognized(log) for log in plan.traffic]
        return Preflight(address=(), warnings=tuple(line for chosen in self._chosen for line in chosen.warnings))

    async def _recognized(self, log: AccessLog) -> Recognized:
        lines = await self._last_lines(log)
        name = log.format or likely_format(lines)
        if name is None:
            example = sanitize(lines[-1], 80) if lines else "the log is empty"
            raise HostError(f"{log.file}: unknown log format ({example}); set it with --log-format", subject=log.host)
        fields = parse_format(name)
        requests = [request for line in lines if (request := match_line(fields, line))]
        return Recognized(log, fields, requests, len(lines))

    async def _last_lines(self, log: AccessLog) -> list[str]:
        shell = await self._feeds[log.host].up()
        result = await shell.run(f"tail -n {_SAMPLE} -- {shlex.quote(log.file)} | head -c {_SAMPLE_BYTES}")
        if result.stderr.strip():
            reason = sanitize(result.stderr.decode(errors="replace").strip().splitlines()[-1], 200)
            raise HostError(f"{reason}; name the access log with --log, and let the login read it", subject=log.host)
        return [line for line in result.lines if line]

    async def workers(self, assigned: Assigned) -> Sequence[TrafficWorker]:
        assignments = assigned(len(self._chosen))
        workers: list[TrafficWorker] = []
        try:
            for assignment, chosen in zip(assignments, self._chosen, strict=True):
                worker = TrafficWorker(assignment, chosen, self._feeds[chosen.log.host], self._clock)
                workers.append(worker)
                await worker.open()
        except BaseException:
            for worker in workers:
                worker.kill()
            raise
        return workers


class TrafficWorker:
    """Counts the requests in one access log until the end of the run.

    After a loss of the host, or of the permission to read the log, it follows the log from its end again. The time
    between is unread.
    """

    pid = None

    def __init__(self, assignment: Assignment, chosen: Recognized, feed: HostFeed, clock: Clock) -> None:
        self.assignment = assignment
        self.done: Done | None = None
        self._log = chosen.log
        self._fine = chosen.fine
        self._program = program(chosen.log.file, chosen.fields)
        self._feed = feed
        self._clock = clock
        self._channel: Channel | None = None
        self._since = 0.0
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._reason = ""
        self._ends = float("inf")
        self._planned = float("inf")
        self._stopped = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start to follow the log, once the host is up. Raises HostError."""
        shell = await self._feed.up()
        self._channel = await shell.open(self._program)

    def send(self, message: Message) -> None:
        match message:
            case Start():
                seconds = self.assignment.plan.seconds
                self._planned = self._ends = message.at + (float("inf") if seconds is None else seconds)
                self._following = asyncio.create_task(self._follow(message.at))
            case Extend():
                self._ends = max(self._planned, message.until)
            case Stop():
                self._stopped.set()
            case _:
                # Users decide the load.
                pass

    async def line(self) -> bytes:
        return await self._lines.get()

    def here(self, instant: float) -> float:
        return instant

    def accepts(self, tick: Tick) -> bool:
        return True

    async def exit_reason(self) -> str:
        return self._reason

    def kill(self) -> None:
        self._close()
        if self._following is not None:
            self._following.cancel()

    async def kill_and_wait(self) -> None:
        self.kill()
        if self._following is not None:
            await asyncio.wait([self._following])

    async def _follow(self, began: float) -> None:
        beats = asyncio.create_task(self._beat())
        counting = asyncio.create_task(self._count(began))
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait([counting, stopped], return_when=asyncio.FIRST_COMPLETED)
            if counting.done():
                counting.result()
            self.done = Done("stopped" if stopped.done() else "completed")
            self._lines.put_nowait(protocol.encode(self.done))
        except (HostError, InvalidCounts) as error:
            self._reason = f"{self._log.host}: {error}"
        finally:
            for task in (beats, counting, stopped):
                task.cancel()
            self._close()
            self._lines.put_nowait(b"")

    def _close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    async def _count(self, began: float) -> None:
        """Pass on ticks until the end of the run. Raises InvalidCounts, HostError if the log could never be read."""
        self._since, lost = began, False
        while monotonic() < self._ends:
            try:
                await self._read(lost)
            except HostError:
                if self._since == began:
                    raise
                lost = True
                self._close()
                await self._reopen()

    async def _read(self, lost: bool) -> None:
        """Pass on a tick per interval of the host's clock until the end of the run. `lost`: some requests before the
        first mark were not read. Raises HostError, InvalidCounts."""
        while monotonic() < self._ends:
            counts = await self._interval()
            self._pass(counts, self._instant(counts), lost)
            lost = False

    def _instant(self, counts: TrafficCounts) -> float:
        """Return the end of an interval: counts that arrive late, after a pause of the connection, keep their time."""
        now, logged = monotonic(), self._feed.session_time(counts.uptime or 0.0)
        at = now if logged is None else self._clock.origin + logged
        return at if self._since < at < now else now

    def _pass(self, counts: TrafficCounts, t: float, unread: bool) -> None:
        assignment = self.assignment
        tick = counts.tick(assignment.run, assignment.worker, self._since, t, self._fine, unread)
        self._lines.put_nowait(events.encode(tick))
        self._since = t

    async def _reopen(self) -> None:
        """Follow the log again as soon as the host is up. Until then, pass on a tick without requests each second."""
        reopening = asyncio.create_task(self._retry())
        try:
            while not reopening.done() and (now := monotonic()) < self._ends:
                while self._since < now:
                    self._pass(TrafficCounts(), min(now, self._since + _INTERVAL), unread=True)
                await asyncio.wait([reopening], timeout=_INTERVAL)
        finally:
            reopening.cancel()

    async def _retry(self) -> None:
        for pause in retries():
            await asyncio.sleep(pause)
            try:
                await self.open()
            except HostError:
                continue
            return

    async def _interval(self) -> TrafficCounts:
        counts = TrafficCounts()
        while self._channel is not None:
            line = await self._channel.readline()
            if not line:
                break
            if counts.feed(line.decode(errors="replace").rstrip("\n")):
                return counts
        raise HostError(f"{self._log.file}: the program that reads it has ended")

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(watchdog.BEAT)
            with contextlib.suppress(CockpitError):
                if self._channel is not None:
                    await self._channel.write(b"\n")
