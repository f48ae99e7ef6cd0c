"""Load workers, and the crew that starts them: processes of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cockpit.load import protocol
from cockpit.load.limits import Capacity, capacity_here
from cockpit.load.protocol import Adjust, Assignment, Done, Extend, Ready, Redeal, Start, Stop
from cockpit.model.clock import Clock
from cockpit.model.errors import CockpitError
from cockpit.model.events import AnyEvent, Tick

# The shares of a run for a number of machines, each with the plan's number of workers.
Assigned = Callable[[int], list[Assignment]]
Message = Assignment | Start | Adjust | Redeal | Extend | Stop

# A tick of a run with every latency there is stays far below this.
LINE_LIMIT = 32 * 1024 * 1024
# Timeout (s) for a worker to start.
_STARTING = 30.0


class WorkerHandle(Protocol):
    """A load worker that is ready. Instants in messages to it are of this machine's time.monotonic()."""

    assignment: Assignment
    done: Done | None

    @property
    def pid(self) -> int | None:
        """Its process id if it runs on this machine."""

    def send(self, message: Message) -> None:
        """Send a message, if the worker still runs."""

    async def line(self) -> bytes:
        """The next line of `protocol`; empty when the worker is gone."""

    def here(self, instant: float) -> float:
        """Convert an instant of the worker's time.monotonic() to this machine's."""

    def accepts(self, tick: Tick) -> bool:
        """Return whether a tick of the worker can have happened, if the worker is not trusted."""

    async def death(self) -> str:
        """Why a worker ended without Done."""

    def kill(self) -> None:
        """End it at once."""

    async def reap(self) -> None:
        """End it, and wait until it is gone."""


class Crew(Protocol):
    """Where load workers run. A run starts `lead` seconds after the workers are told to. `machines` are the names of
    the machines by worker of the last run; () if all run on this one."""

    lead: float
    machines: tuple[str, ...]

    @property
    def capacity(self) -> Capacity:
        """What the machines allow. Raises CockpitError if none is left."""

    def attach(self, clock: Clock, emit: Callable[[AnyEvent], None]) -> None:
        """Emit events on the machines from now on, at times of this clock."""

    async def workers(self, assigned: Assigned) -> Sequence[WorkerHandle]:
        """All workers of a run, ready. Raises CockpitError if one does not start; none is left then."""


class WorkerProcess:
    """One worker process and the two pipes to it."""

    def __init__(self, assignment: Assignment, process: asyncio.subprocess.Process) -> None:
        self.assignment = assignment
        self.process = process
        self.done: Done | None = None
        self._last_words: deque[str] = deque(maxlen=1)
        self._errors = asyncio.create_task(self._read_errors())

    @classmethod
    async def spawn(cls, assignment: Assignment) -> WorkerProcess:
        process = await asyncio.create_subprocess_exec(
            # -P: the directory the cockpit was started in is no place to find modules in.
            *(sys.executable, "-P", "-m", "cockpit.load.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT,
            # Ctrl-C in the terminal is for the cockpit alone.
            start_new_session=True,
        )
        worker = cls(assignment, process)
        worker.send(assignment)
        return worker

    @property
    def pid(self) -> int | None:
        return self.process.pid

    def here(self, instant: float) -> float:
        return instant

    def accepts(self, tick: Tick) -> bool:
        return True

    async def _read_errors(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            if line.strip():
                self._last_words.append(line.decode(errors="replace").strip())

    def send(self, message: Message) -> None:
        """Send a message, if the worker still runs."""
        assert self.process.stdin is not None
        if not self.process.stdin.is_closing():
            self.process.stdin.write(protocol.encode(message) + b"\n")

    async def line(self) -> bytes:
        """The next line; empty when the worker is gone."""
        assert self.process.stdout is not None
        return await self.process.stdout.readline()

    async def ready(self) -> None:
        """Wait until it can begin. Raises CockpitError when it never will."""
        try:
            async with asyncio.timeout(_STARTING):
                line = await self.line()
        except TimeoutError:
            raise CockpitError(f"a load worker did not start within {_STARTING:.0f} s") from None
        if not line or not isinstance(protocol.decode_message.decode(line), Ready):
            raise CockpitError(f"a load worker did not start: {await self.death()}")

    async def death(self) -> str:
        code = await self.process.wait()
        await self._errors
        words = f": {self._last_words[-1]}" if self._last_words else ""
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"killed by {signal.Signals(-code).name}{words}"
        return f"exit status {code}{words}"

    def kill(self) -> None:
        """End it at once. By os.kill: Popen's would collect the exit status that asyncio's watcher waits for."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)

    async def reap(self) -> None:
        self.kill()
        await self.process.wait()
        await self._errors
        if self.process.stdin is not None:
            self.process.stdin.close()
            with contextlib.suppress(OSError):
                await self.process.stdin.wait_closed()


class LocalCrew:
    """Load workers on this machine."""

    lead = 0.0
    machines: tuple[str, ...] = ()

    @property
    def capacity(self) -> Capacity:
        return capacity_here()

    def attach(self, clock: Clock, emit: Callable[[AnyEvent], None]) -> None:
        """This machine is observed by the session itself."""

    async def workers(self, assigned: Assigned) -> Sequence[WorkerHandle]:
        return await start_workers(assigned(1))


async def start_workers(assignments: list[Assignment]) -> list[WorkerProcess]:
    """All workers, ready; or none, and the error of the first that failed."""
    spawning = asyncio.gather(*map(WorkerProcess.spawn, assignments), return_exceptions=True)
    try:
        workers: list[Any] = await asyncio.shield(spawning)
    except asyncio.CancelledError:
        # A process whose start is broken off would be waited for without an end: it has to be there to be ended.
        await asyncio.gather(*(worker.reap() for worker in await spawning if isinstance(worker, WorkerProcess)))
        raise
    raised = [worker for worker in workers if isinstance(worker, WorkerProcess)]
    try:
        for worker in workers:
            if isinstance(worker, OSError):
                raise CockpitError(f"a load worker did not start: {worker.strerror or worker}")
            if isinstance(worker, BaseException):
                raise worker
        await asyncio.gather(*(worker.ready() for worker in raised))
    except BaseException:
        await asyncio.gather(*(worker.reap() for worker in raised))
        raise
    return raised
