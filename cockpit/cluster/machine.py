"""A generator as the cockpit sees it: its carrier, its clock, and its load workers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

import msgspec

from cockpit.cluster.clocks import MachineClock, Ping
from cockpit.load import protocol
from cockpit.load.protocol import Assignment, Done, Extend, Start
from cockpit.load.workers import Message
from cockpit.model.errors import CockpitError, HostError
from cockpit.model.events import Tick
from cockpit.model.text import neutral
from cockpit.recording.validity import is_valid

# Seconds without any message after which a machine is lost; load workers send a tick ten times per second.
_PATIENCE = 1.0
# Maximum bytes of lines that nobody has read yet, and what one costs beside its text.
_BACKLOG, _LINE_COST = 64 * 1024 * 1024, 200
# Maximum characters of a reason that a generator gives.
REASON = 200
# Timeout (s) for the load workers to end.
_CLOSING = 5.0
# Seconds that no machine has run.
_UPTIME_LIMIT = 1e10


class WorkerLine(msgspec.Struct, frozen=True):
    """A line of load worker `number` of the generator in this `place`; an empty one is its last, with the reason of its
    end. `worker` is the address of the Dask worker that sent it, by the scheduler."""

    worker: str
    place: int
    number: int
    line: bytes
    ending: str


class Machine:
    """A Dask worker with its carrier (the proxy of the actor). `lost` is why it is gone, "" while it is there."""

    patience = _PATIENCE

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.carrier: Any = None
        self.clock = MachineClock()
        self.files: int | None = None
        self.ports = 0
        self.lost = ""
        self._heard = monotonic()
        self._lines: dict[int, asyncio.Queue[bytes]] = {}
        self._unread = 0
        self._endings: dict[int, str] = {}
        self._outgoing: list[tuple[int, bytes]] = []
        self._sending: asyncio.Task[None] | None = None

    @property
    def silence(self) -> float:
        """Seconds since its last message."""
        return monotonic() - self._heard

    async def check(self, version: str) -> None:
        """Ask for its limits. Raises HostError if it has another version of cockpit."""
        from cockpit.cluster.carrier import GeneratorFacts

        try:
            facts = msgspec.json.decode(await self.carrier.facts(), type=GeneratorFacts)
        except (msgspec.MsgspecError, TypeError):
            raise HostError("invalid answer about its version and limits", subject=self.name) from None
        if facts.version != version:
            other = neutral(facts.version, REASON)
            raise HostError(f"cockpit {other} there, {version} here; install the same version", subject=self.name)
        self.files, self.ports = facts.files, facts.ports

    async def ping(self) -> None:
        sent = monotonic()
        there = await self.carrier.moment()
        self._heard = monotonic()
        if not isinstance(there, float) or not 0 <= there < _UPTIME_LIMIT:
            raise HostError("invalid clock reading", subject=self.name)
        self.clock.take(Ping(sent, there, self._heard))

    def expect(self, workers: Sequence[RemoteWorker]) -> None:
        """Take lines of these load workers from now on."""
        self._lines = {worker.assignment.worker: asyncio.Queue() for worker in workers}
        self._endings, self._unread = {}, 0

    async def begin(self, workers: Sequence[RemoteWorker]) -> None:
        """Start the load workers there. Raises CockpitError."""
        self.expect(workers)
        try:
            problem = await self.carrier.begin([protocol.encode(worker.assignment) for worker in workers])
        except Exception as error:  # of Dask, or of any kind from the generator
            problem = str(error) or type(error).__name__
        if problem:
            raise CockpitError(f"{self.name}: {neutral(str(problem), REASON)}")

    def take(self, told: WorkerLine) -> None:
        """Keep a line until it is read. Raises HostError if too many are left unread."""
        self._heard = monotonic()
        if told.number not in self._lines:
            return
        if not told.line:
            self._endings[told.number] = neutral(told.ending, REASON)
        self._unread += len(told.line) + _LINE_COST
        if self._unread > _BACKLOG:
            raise HostError("sends messages faster than they can be read", subject=self.name)
        self._lines[told.number].put_nowait(told.line)

    def send(self, worker: int, line: bytes) -> None:
        """Send a command to a load worker, after those before it."""
        if self.lost:
            return
        self._outgoing.append((worker, line))
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._outgoing and not self.lost:
            batch, self._outgoing = self._outgoing, []
            # A machine that cannot be told is lost, which its pings find.
            with suppress(Exception):
                await self.carrier.send(batch)
        self._sending = None

    def lose(self, reason: str) -> None:
        """End its load workers as far as this machine is concerned."""
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
        """End the load workers there."""
        if self._sending is not None:
            self._sending.cancel()
        if self.carrier is not None and not self.lost:
            with suppress(Exception):
                async with asyncio.timeout(_CLOSING):
                    await self.carrier.end()
        self.carrier = None


class RemoteWorker:
    """A load worker of a generator; see load.workers.WorkerHandle."""

    def __init__(self, assignment: Assignment, machine: Machine) -> None:
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
        self.machine.send(self.assignment.worker, protocol.encode(message))

    async def line(self) -> bytes:
        return await self.machine.line(self.assignment.worker)

    def accepts(self, tick: Tick) -> bool:
        """Refuse a tick that a recording would leave out, so that live and replay are the same."""
        return is_valid(tick)

    def here(self, instant: float) -> float:
        return self.machine.clock.here(instant)

    async def death(self) -> str:
        return self.machine.ending(self.assignment.worker)

    def kill(self) -> None:
        self.machine.send(self.assignment.worker, b"")

    async def reap(self) -> None:
        self.kill()
