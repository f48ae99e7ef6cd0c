"""What runs on a generator, within its Dask worker: it owns the load workers and carries their messages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic

import msgspec
from distributed.worker import get_worker

from cockpit import __version__
from cockpit.load import limits, protocol
from cockpit.load.workers import WorkerProcess, start_workers
from cockpit.model.errors import CockpitError

# Seconds without a ping by the cockpit after which the load ends.
SILENCE = 5.0


class GeneratorFacts(msgspec.Struct, frozen=True):
    """Version of cockpit, and `files` and `ports` of the generator as in limits.Capacity."""

    version: str
    files: int | None
    ports: int


class Carrier:
    """The load workers of a generator; a Dask actor, whose methods run on the loop of its Dask worker.

    Each line of a load worker is logged to the topic as a WorkerLine, without its sender, which the scheduler adds.
    """

    def __init__(self, topic: str, place: int) -> None:
        self._topic = topic
        self._place = place
        self._dask_worker = get_worker()
        self._workers: dict[int, WorkerProcess] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._timer: asyncio.TimerHandle | None = None

    async def facts(self) -> bytes:
        here = limits.capacity_here()
        return msgspec.json.encode(GeneratorFacts(__version__, here.files, here.ports))

    async def moment(self) -> float:
        """Return this machine's time.monotonic(). The load ends if the cockpit stops asking."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(SILENCE, self._kill)
        return monotonic()

    async def begin(self, assignments: Sequence[bytes]) -> str:
        """Start load workers and wait until they are ready; return why they are not, "" if they are."""
        await self.end()
        try:
            workers = await start_workers([protocol.decode_assignment(line) for line in assignments])
        except CockpitError as error:
            return str(error)
        self._workers = {worker.assignment.worker: worker for worker in workers}
        self._tasks = [asyncio.create_task(self._follow(worker)) for worker in workers]
        return ""

    async def send(self, messages: Sequence[tuple[int, bytes]]) -> None:
        """Pass commands on to load workers; an empty one kills the worker."""
        for number, line in messages:
            worker = self._workers.get(number)
            if worker is None:
                continue
            if line:
                worker.send(protocol.decode_command.decode(line))
            else:
                worker.kill()

    async def end(self) -> None:
        """Kill the load workers, and wait until they are gone."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(worker.reap() for worker in self._workers.values()))
        self._workers, self._tasks = {}, []

    async def _follow(self, worker: WorkerProcess) -> None:
        number = worker.assignment.worker
        while line := await worker.line():
            self._log(number, line)
        self._log(number, b"", await worker.death())

    def _log(self, number: int, line: bytes, ending: str = "") -> None:
        message = {"place": self._place, "number": number, "line": line, "ending": ending}
        self._dask_worker.log_event(self._topic, message)

    def _kill(self) -> None:
        """Nobody wants the load any more: the cockpit was silent for too long."""
        for worker in self._workers.values():
            worker.kill()
