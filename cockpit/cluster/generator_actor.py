"""The Dask actor on a generator: it runs the load workers and forwards their messages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic

import msgspec
from distributed.worker import get_worker

from cockpit import __version__
from cockpit.load import limits
from cockpit.load.http import protocol
from cockpit.load.workers import WorkerProcess, start_workers
from cockpit.model.errors import CockpitError

# The load ends after this time (s) without a ping by the cockpit.
SILENCE = 5.0


class GeneratorFacts(msgspec.Struct, frozen=True):
    """The generator's version of cockpit, and its `files` and `ports` as in limits.Capacity."""

    version: str
    files: int | None
    ports: int


class GeneratorActor:
    """The load workers of a generator. Methods of this Dask actor run on the event loop of its Dask worker.

    Each line of a load worker is logged to the topic as a WorkerLine; the scheduler adds the sender.
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
        """Return this machine's time.monotonic(). This is the ping without which the load ends after SILENCE."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(SILENCE, self._kill)
        return monotonic()

    async def begin(self, assignments: Sequence[bytes]) -> str:
        """Start load workers and wait until they are ready; return the problem, "" if there is none."""
        await self.end()
        try:
            workers = await start_workers([protocol.decode_assignment(line) for line in assignments])
        except CockpitError as error:
            return str(error)
        self._workers = {worker.assignment.worker: worker for worker in workers}
        self._tasks = [asyncio.create_task(self._follow(worker)) for worker in workers]
        return ""

    async def send(self, messages: Sequence[tuple[int, bytes]]) -> None:
        """Pass commands on to load workers; an empty command kills the worker."""
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
        await asyncio.gather(*(worker.kill_and_wait() for worker in self._workers.values()))
        self._workers, self._tasks = {}, []

    async def _follow(self, worker: WorkerProcess) -> None:
        number = worker.assignment.worker
        while line := await worker.line():
            self._log(number, line)
        self._log(number, b"", await worker.exit_reason())

    def _log(self, number: int, line: bytes, ending: str = "") -> None:
        message = {"place": self._place, "number": number, "line": line, "ending": ending}
        self._dask_worker.log_event(self._topic, message)

    def _kill(self) -> None:
        """Kill the load workers, since the cockpit has stopped pinging."""
        for worker in self._workers.values():
            worker.kill()
