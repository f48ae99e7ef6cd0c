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

# Seconds without any message after which a machine is lost; load workers send a tick ten times per second.
_PATIENCE = 1.0
# Timeout (s) for the load workers to end.
_CLOSING = 5.0


class Machine:
    """A Dask worker with its carrier (the proxy of the actor). `lost` is why it is gone, "" while it is there."""

    patience = _PATIENCE

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.carrier: Any = None
        self.clock = MachineClock()
        self.lost = ""
        self._heard = monotonic()
        self._lines: dict[int, asyncio.Queue[bytes]] = {}
        self._endings: dict[int, str] = {}
        self._outgoing: list[tuple[int, bytes]] = []
        self._sending: asyncio.Task[None] | None = None

    @property
    def silence(self) -> float:
        """Seconds since its last message."""
        return monotonic() - self._heard

    async def check(self, version: str) -> None:
        """Raises HostError if it has another version of cockpit."""
        from cockpit.cluster.carrier import GeneratorFacts

        facts = msgspec.json.decode(await self.carrier.facts(), type=GeneratorFacts)
        if facts.version != version:
            raise HostError(f"cockpit {facts.version} there, {version} here: install the same one", subject=self.name)

    async def ping(self) -> None:
        sent = monotonic()
        there = await self.carrier.moment()
        self._heard = monotonic()
        self.clock.take(Ping(sent, there, self._heard))

    def expect(self, workers: Sequence[RemoteWorker]) -> None:
        """Take lines of these load workers from now on."""
        self._lines = {worker.assignment.worker: asyncio.Queue() for worker in workers}
        self._endings = {}

    async def begin(self, workers: Sequence[RemoteWorker]) -> None:
        """Start the load workers there. Raises CockpitError."""
        self.expect(workers)
        problem = await self.carrier.begin([protocol.encode(worker.assignment) for worker in workers])
        if problem:
            raise CockpitError(f"{self.name}: {problem}")

    def take(self, worker: int, line: bytes, ending: str) -> None:
        """A line of a load worker; an empty one is its last, with the reason of its end."""
        self._heard = monotonic()
        if worker in self._lines:
            if not line:
                self._endings[worker] = ending
            self._lines[worker].put_nowait(line)

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
            with suppress(OSError, RuntimeError):
                await self.carrier.tell(batch)
        self._sending = None

    def lose(self, reason: str) -> None:
        """End its load workers as far as this machine is concerned."""
        self.lost = reason
        for worker, lines in self._lines.items():
            self._endings.setdefault(worker, reason)
            lines.put_nowait(b"")

    async def line(self, worker: int) -> bytes:
        return await self._lines[worker].get()

    def ending(self, worker: int) -> str:
        return f"{self.name}: {self._endings.get(worker, self.lost)}"

    async def close(self) -> None:
        """End the load workers there."""
        if self._sending is not None:
            self._sending.cancel()
        if self.carrier is not None and not self.lost:
            with suppress(OSError, RuntimeError, TimeoutError):
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

    def tell(self, message: Message) -> None:
        if isinstance(message, Start):
            message = Start(self.machine.clock.there(message.at))
        elif isinstance(message, Extend):
            message = Extend(self.machine.clock.there(message.until))
        self.machine.send(self.assignment.worker, protocol.encode(message))

    async def line(self) -> bytes:
        return await self.machine.line(self.assignment.worker)

    def here(self, instant: float) -> float:
        return self.machine.clock.here(instant)

    async def death(self) -> str:
        return self.machine.ending(self.assignment.worker)

    def kill(self) -> None:
        self.machine.send(self.assignment.worker, b"")

    async def reap(self) -> None:
        self.kill()
