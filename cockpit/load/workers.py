"""Load workers, and the interface that starts them; the implementation for this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cockpit.load.http import protocol
from cockpit.load.http.protocol import Adjust, Assignment, Done, Extend, Ready, Reassign, Start, Stop
from cockpit.load.limits import Capacity, capacity_here
from cockpit.load.preflight import Preflight, preflight
from cockpit.model.clock import Clock
from cockpit.model.errors import CockpitError
from cockpit.model.events import AnyEvent
from cockpit.model.load.plan import LoadPlan
from cockpit.model.tick import Tick

# Returns the assignments of a run for a number of machines; each machine has the plan's number of workers.
Assigned = Callable[[int], list[Assignment]]
Message = Assignment | Start | Adjust | Reassign | Extend | Stop

# Maximum length of a line (bytes), far above a tick with all histogram buckets in use.
LINE_LIMIT = 32 * 1024 * 1024
# Timeout (s) for a worker to start.
_START_TIMEOUT = 30.0


class WorkerHandle(Protocol):
    """A load worker that is ready. Times in messages to it are in s of this machine's time.monotonic()."""

    assignment: Assignment
    done: Done | None

    @property
    def pid(self) -> int | None:
        """The process id if the worker runs on this machine, else None."""

    def send(self, message: Message) -> None:
        """Send a message, if the worker still runs."""

    async def line(self) -> bytes:
        """Return the next line of `protocol`; b"" after the worker has exited."""

    def here(self, instant: float) -> float:
        """Convert a time of the worker's time.monotonic() to this machine's."""

    def accepts(self, tick: Tick) -> bool:
        """Return whether a tick is plausible; always True for a trusted worker."""

    async def exit_reason(self) -> str:
        """Return the reason why the worker ended without Done."""

    def kill(self) -> None:
        """Kill the worker."""

    async def kill_and_wait(self) -> None:
        """Kill the worker, and wait until it has exited."""


class WorkerLauncher(Protocol):
    """Starts load workers on one or more machines. A run starts `lead` seconds after Start is sent. `machines` are the
    names of the machines by worker of the last run; () if all workers run on this machine."""

    lead: float
    machines: tuple[str, ...]

    @property
    def capacity(self) -> Capacity:
        """The capacity of the machines. Raises CockpitError if no machine is left."""

    async def check(self, plan: LoadPlan) -> Preflight:
        """Check the plan, and contact its target. Raises UsageError, TargetError, HostError."""

    def attach(self, clock: Clock, emit: Callable[[AnyEvent], None]) -> None:
        """Emit events about the machines from now on, with times of this clock."""

    async def workers(self, assigned: Assigned) -> Sequence[WorkerHandle]:
        """Start all workers of a run, until they are ready. If one does not start, kill all and raise CockpitError."""


class WorkerProcess:
    """A worker process on this machine, with the pipes to it."""

    def __init__(self, assignment: Assignment, process: asyncio.subprocess.Process) -> None:
        self.assignment = assignment
        self.process = process
        self.done: Done | None = None
        self._last_error: deque[str] = deque(maxlen=1)
        self._errors = asyncio.create_task(self._read_errors())

    @classmethod
    async def spawn(cls, assignment: Assignment) -> WorkerProcess:
        process = await asyncio.create_subprocess_exec(
            # -P: do not import modules from the working directory.
            *(sys.executable, "-P", "-m", "cockpit.load.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT,
            # A session of its own: Ctrl-C in the terminal must reach cockpit only.
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
                self._last_error.append(line.decode(errors="replace").strip())

    def send(self, message: Message) -> None:
        """Send a message, if the worker still runs."""
        assert self.process.stdin is not None
        if not self.process.stdin.is_closing():
            self.process.stdin.write(protocol.encode(message) + b"\n")

    async def line(self) -> bytes:
        """Return the next line; b"" after the worker has exited."""
        assert self.process.stdout is not None
        return await self.process.stdout.readline()

    async def ready(self) -> None:
        """Wait for Ready. Raises CockpitError if the worker does not start."""
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                line = await self.line()
        except TimeoutError:
            raise CockpitError(f"a load worker did not start within {_START_TIMEOUT:.0f} s") from None
        if not line or not isinstance(protocol.decode_message.decode(line), Ready):
            raise CockpitError(f"a load worker did not start: {await self.exit_reason()}")

    async def exit_reason(self) -> str:
        code = await self.process.wait()
        await self._errors
        words = f": {self._last_error[-1]}" if self._last_error else ""
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"killed by {signal.Signals(-code).name}{words}"
        return f"exit status {code}{words}"

    def kill(self) -> None:
        """Kill the process, by os.kill: Popen.kill would collect the exit status that asyncio waits for."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)

    async def kill_and_wait(self) -> None:
        self.kill()
        try:
            await self.process.wait()
        except asyncio.CancelledError:
            # A killed process ends at once, and must not be left behind.
            await self.process.wait()
            raise
        await self._errors
        if self.process.stdin is not None:
            self.process.stdin.close()
            with contextlib.suppress(OSError):
                await self.process.stdin.wait_closed()


class LocalLauncher:
    """Load workers on this machine."""

    lead = 0.0
    machines: tuple[str, ...] = ()

    def __init__(self, contact: tuple[LoadPlan, Preflight] | None = None) -> None:
        """`contact`: a plan whose target has just been contacted; the first run under it does not contact it again."""
        self._contact = contact

    @property
    def capacity(self) -> Capacity:
        return capacity_here()

    async def check(self, plan: LoadPlan) -> Preflight:
        contact, self._contact = self._contact, None
        if contact is not None and contact[0] == plan:
            return contact[1]
        return await preflight(plan, self.capacity)

    def attach(self, clock: Clock, emit: Callable[[AnyEvent], None]) -> None:
        """Do nothing: the session itself watches this machine."""

    async def workers(self, assigned: Assigned) -> Sequence[WorkerHandle]:
        return await start_workers(assigned(1))


async def start_workers(assignments: list[Assignment]) -> list[WorkerProcess]:
    """Start all workers, until they are ready. If one fails, kill all and raise its error."""
    spawning = asyncio.gather(*map(WorkerProcess.spawn, assignments), return_exceptions=True)
    try:
        workers: list[Any] = await asyncio.shield(spawning)
    except asyncio.CancelledError:
        # Let all processes start before they are killed: waiting for a process whose start was cancelled never ends.
        await asyncio.gather(
            *(worker.kill_and_wait() for worker in await spawning if isinstance(worker, WorkerProcess))
        )
        raise
    started = [worker for worker in workers if isinstance(worker, WorkerProcess)]
    try:
        for worker in workers:
            if isinstance(worker, OSError):
                raise CockpitError(f"a load worker did not start: {worker.strerror or worker}")
            if isinstance(worker, BaseException):
                raise worker
        await asyncio.gather(*(worker.ready() for worker in started))
    except BaseException:
        await asyncio.gather(*(worker.kill_and_wait() for worker in started))
        raise
    return started
