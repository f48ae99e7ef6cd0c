"""A generator on the cockpit's side: its carrier, its clock, and its load workers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

import msgspec

from cockpit.cluster.clocks import MachineClock, Ping
from cockpit.load.http import protocol
from cockpit.load.http.protocol import Adjust, Assignment, Done, Extend, Start
from cockpit.load.workers import Message
from cockpit.model.errors import CockpitError, HostError
from cockpit.model.text import sanitize
from cockpit.model.tick import Tick
from cockpit.recording.validity import is_valid

# A machine is lost after this time (s) without a message; load workers send ten ticks per second.
_TIMEOUT = 1.0
# Maximum bytes of unread lines, and bytes that each line counts beside its text.
_BACKLOG, _LINE_COST = 64 * 1024 * 1024, 200
# Maximum characters of an error of a generator.
REASON = 200
# Timeout (s) for the load workers to end.
_CLOSING = 5.0
# Maximum plausible uptime (s) of a machine.
_UPTIME_LIMIT = 1e10


class WorkerLine(msgspec.Struct, frozen=True):
    """A line of load worker `number` of the generator at index `place`. An empty line is the last one, with the reason
    of the worker's end (`ending`). `worker` is the address of the sending Dask worker, set by the scheduler."""

    worker: str
    place: int
    number: int
    line: bytes
    ending: str


class RemoteGenerator:
    """A Dask worker with its carrier (proxy of the actor). `lost` is the reason of its loss, "" while connected."""

    timeout = _TIMEOUT

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.actor: Any = None
        self.clock = MachineClock()
        self.files: int | None = None
        self.ports = 0
        self.lost = ""
        self._last_message = monotonic()
        self._lines: dict[int, asyncio.Queue[bytes]] = {}
        self._unread = 0
        self._endings: dict[int, str] = {}
        self._outgoing: list[tuple[int, bytes]] = []
        self._sending: asyncio.Task[None] | None = None

    @property
    def silence(self) -> float:
        """Seconds since its last message."""
        return monotonic() - self._last_message

    async def check(self, version: str) -> None:
        """Read its limits. Raises HostError if it has another version of cockpit."""
        from cockpit.cluster.generator_actor import GeneratorFacts

        try:
            facts = msgspec.json.decode(await self.actor.facts(), type=GeneratorFacts)
        except (msgspec.MsgspecError, TypeError):
            raise HostError("invalid answer about its version and limits", subject=self.name) from None
        if facts.version != version:
            other = sanitize(facts.version, REASON)
            raise HostError(f"cockpit {other} there, {version} here; install the same version", subject=self.name)
        self.files, self.ports = facts.files, facts.ports

    async def ping(self) -> None:
        sent = monotonic()
        there = await self.actor.moment()
        self._last_message = monotonic()
        if not isinstance(there, float) or not 0 <= there < _UPTIME_LIMIT:
            raise HostError("invalid clock reading", subject=self.name)
        self.clock.add(Ping(sent, there, self._last_message))

    def expect(self, workers: Sequence[RemoteWorker]) -> None:
        """Accept lines of these load workers, and of no others."""
        self._lines = {worker.assignment.worker: asyncio.Queue() for worker in workers}
        self._endings, self._unread = {}, 0

    async def begin(self, workers: Sequence[RemoteWorker]) -> None:
        """Start the load workers there. Raises CockpitError."""
        if self._sending is not None:
            # A late command to a load worker of the last run would reach the new one with its number.
            await asyncio.wait([self._sending])
        self.expect(workers)
        try:
            problem = await self.actor.begin([protocol.encode(worker.assignment) for worker in workers])
        except Exception as error:  # an error of Dask, or any exception of the generator
            problem = str(error) or type(error).__name__
        if problem:
            raise CockpitError(f"{self.name}: {sanitize(str(problem), REASON)}")

    def feed(self, message: WorkerLine) -> None:
        """Queue a line until it is read. Raises HostError if too many are unread."""
        self._last_message = monotonic()
        if message.number not in self._lines:
            return
        if not message.line:
            self._endings[message.number] = sanitize(message.ending, REASON)
        self._unread += len(message.line) + _LINE_COST
        if self._unread > _BACKLOG:
            raise HostError("sends messages faster than they can be read", subject=self.name)
        self._lines[message.number].put_nowait(message.line)

    def send(self, worker: int, line: bytes) -> None:
        """Send a command to a load worker, in order."""
        if self.lost:
            return
        self._outgoing.append((worker, line))
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._outgoing and not self.lost:
            batch, self._outgoing = self._outgoing, []
            # If this fails, the machine is lost, and its pings fail too.
            with suppress(Exception):
                await self.actor.send(batch)
        self._sending = None

    def lose(self, reason: str) -> None:
        """Mark the machine as lost; its load workers count as ended."""
        self.lost = reason
        for worker, lines in self._lines.items():
            self._endings.setdefault(worker, reason)
            lines.put_nowait(b"")

    async def line(self, worker: int) -> bytes:
        line = await self._lines[worker].get()
        self._unread -= len(line) + _LINE_COST
        return line

    def ending(self, worker: int) -> str:
        reason = self._endings.get(worker) or self.lost or "sent an invalid message"
        return f"{self.name}: {reason}"

    async def close(self) -> None:
        """End the load workers on the machine."""
        if self._sending is not None:
            self._sending.cancel()
        if self.actor is not None and not self.lost:
            with suppress(Exception):
                async with asyncio.timeout(_CLOSING):
                    await self.actor.end()
        self.actor = None


class RemoteWorker:
    """A load worker of a generator; see load.workers.WorkerHandle."""

    def __init__(self, assignment: Assignment, machine: RemoteGenerator) -> None:
        self.assignment = assignment
        self.machine = machine
        self.done: Done | None = None

    @property
    def pid(self) -> int | None:
        return None

    def send(self, message: Message) -> None:
        if isinstance(message, Start):
            message = Start(self.machine.clock.there(message.at))
        elif isinstance(message, Extend):
            message = Extend(self.machine.clock.there(message.until))
        elif isinstance(message, Adjust):
            start, end = map(self.machine.clock.there, (message.load.start, message.load.end))
            message = Adjust(message.load._replace(start=start, end=end))
        self.machine.send(self.assignment.worker, protocol.encode(message))

    async def line(self) -> bytes:
        return await self.machine.line(self.assignment.worker)

    def accepts(self, tick: Tick) -> bool:
        """Whether a recording would keep the tick, so that live and replay are the same."""
        return is_valid(tick)

    def here(self, instant: float) -> float:
        return self.machine.clock.here(instant)

    async def exit_reason(self) -> str:
        return self.machine.ending(self.assignment.worker)

    def kill(self) -> None:
        self.machine.send(self.assignment.worker, b"")

    async def kill_and_wait(self) -> None:
        self.kill()
