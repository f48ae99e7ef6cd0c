"""A truth server with a generator beside it, as little disturbed as this machine lets us, and how much it was.

What a busy machine does to the server is in the server's log. What it does to the generator is not the server's doing
and not the generator's either: a bystander on the generator's CPU, of the same priority, notes it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from math import ceil

import msgspec

from cockpit.load.pool import LoadRun, launch
from cockpit.model.clock import Clock
from cockpit.model.fold_load import SATURATED_LAG
from cockpit.model.load import LoadPlan
from tests.lab.cpus import generator_cpu, server_cpu
from tests.load.servers import DEADLINE, Outcome
from tests.load.truth.server import Log, Reply, Rule

_STEP = 0.001


def percentile(values: Sequence[float], percent: float) -> float:
    """The value at or below which `percent` % of the values lie; 0 when there are none."""
    ordered = sorted(values)
    return ordered[max(1, ceil(len(ordered) * percent / 100 - 1e-9)) - 1] if ordered else 0.0


class Bystander:
    """Asks to be woken every millisecond and notes how late it was (s).

    One that slept through many of its instants counts each of them, or a long stall would weigh as little as one wake.
    """

    def __init__(self) -> None:
        self._late: list[float] = []
        self._over = threading.Event()

    def watch(self) -> None:
        _undisturbed(0, generator_cpu())
        due = time.monotonic() + _STEP
        while not self._over.is_set():
            time.sleep(max(0.0, due - time.monotonic()))
            late = time.monotonic() - due
            while late > 0:
                self._late.append(late)
                late -= _STEP
                due += _STEP

    @contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self.watch)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def slack(self, percent: float) -> float:
        """What the machine may have added to this percentile (s), half of what lies above it being its doing."""
        return percentile(self._late, 100 - (100 - percent) / 2)


def _undisturbed(pid: int, cpu: int) -> None:
    """Puts a process (0: this thread) on a CPU, and before all others there if that is allowed."""
    os.sched_setaffinity(pid, {cpu})
    with suppress(PermissionError):
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))


@contextmanager
def _children_undisturbed() -> Iterator[None]:
    """What is started meanwhile comes before all others on its CPU, if that is allowed."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)


@dataclass
class Truth:
    """What a run said, what the server did meanwhile, and how late a bystander was. `meant` is for how long (s) a test
    held the generator up itself."""

    outcome: Outcome = field(default_factory=Outcome)
    log: Log = field(default_factory=lambda: Log([]))
    bystander: Bystander = field(default_factory=Bystander)
    clock: Clock = field(default_factory=Clock)
    meant: float = 0.0

    def at_least(self, percent: float) -> float:
        """The server's own percentile (s); no client can have seen less."""
        return percentile([_seconds(one.arrived, one.leaving) for one in self.log.replies], percent)

    def about(self, percent: float) -> float:
        """The same (s), until the reply was out."""
        return percentile([_seconds(one.arrived, one.left) for one in self.log.replies], percent)

    def slack(self, percent: float) -> float:
        """What may have been added to a percentile (s) by nobody's fault: by the machine, as the bystander noted, by
        others on the generator's CPU, as the kernel counted, and while the generator stood still, where it says itself
        that its figures are not to be trusted."""
        stood = sum(tick.pause for tick in self.outcome.ticks if tick.pause >= SATURATED_LAG)
        return self.bystander.slack(percent) + self.starved(percent) + max(0.0, stood - self.meant)

    def starved(self, percent: float) -> float:
        """What the generator's waiting for a CPU may have added to a percentile (s), half of what lies above it being
        its doing: no reply was read later for that than it waited in the reply's tick and the one before."""
        late, before = list[float](), 0.0
        for tick in self.outcome.ticks:
            late += [before + tick.cpu_wait] * tick.completed
            before = tick.cpu_wait
        return percentile(late, 100 - (100 - percent) / 2)

    def due(self, rate: float) -> list[float]:
        """When an even schedule of this rate had its arrivals, as many as there were (s, monotonic)."""
        began = self.clock.origin + self.outcome.started.t
        return [began + number / rate for number in range(len(self.log.replies))]

    def in_order(self) -> list[Reply]:
        """The log in the order in which requests arrived, which is that in which they were due."""
        return sorted(self.log.replies, key=lambda reply: reply.arrived)


def _seconds(begin: int, end: int) -> float:
    return (end - begin) / 1e9


@asynccontextmanager
async def _serving(rule: Rule, truth: Truth) -> AsyncIterator[str]:
    """A truth server in a process of its own. Yields its URL, and leaves its log in `truth`."""
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "tests.load.truth.server", msgspec.json.encode(rule).decode())
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=1 << 28)
    assert process.stdin and process.stdout
    try:
        _undisturbed(process.pid, server_cpu())
        port = int(await process.stdout.readline())
        yield f"http://127.0.0.1:{port}/"
        process.stdin.close()
        truth.log = msgspec.json.decode(await process.stdout.readline(), type=Log)
    finally:
        process.stdin.close()
        await process.wait()


async def run_against(
    rule: Rule, plan: Callable[[str], LoadPlan], meanwhile: Callable[[LoadRun, Outcome], Awaitable[None]] | None = None
) -> Truth:
    """Carries a plan (made from the server's URL) out, one worker of it."""
    truth = Truth()
    async with _serving(rule, truth) as url:
        # Short ticks: between two of them the generator does not notice that it stands still.
        load_plan = msgspec.structs.replace(plan(url), cpus=(generator_cpu(),), tick=0.02)
        with truth.bystander.watching():
            with _children_undisturbed():
                run = await launch(load_plan, 1, truth.clock, truth.outcome.emit)
            if meanwhile:
                await meanwhile(run, truth.outcome)
            # A few seconds of load; where others use the machine it may take a while until they are over.
            async with asyncio.timeout(4 * DEADLINE):
                await run.wait()
    return truth
