"""Runs against a truth server with as little disturbance as this machine allows, and the remaining disturbance.

Delays of the server by a busy machine are in the server's log. Delays of the generator are caused neither by the server
nor by the generator: a probe on the generator's CPU, with the same priority, measures them.
"""

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from math import ceil

import msgspec

from cockpit.load.pool import LoadRun, launch
from cockpit.model.clock import Clock
from cockpit.model.fold.load import SATURATED_LAG
from cockpit.model.load.plan import LoadPlan
from tests.commands import FORKS
from tests.lab.cpus import generator_cpu, server_cpu
from tests.load.servers import Outcome
from tests.load.truth.server import Log, Reply, Rule, prioritize, run

_STEP = 0.001


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile of the values; 0 if there are none."""
    ordered = sorted(values)
    return ordered[max(1, ceil(len(ordered) * percent / 100 - 1e-9)) - 1] if ordered else 0.0


class WakeupProbe:
    """Measures wake-up latency (s): a thread that is due every millisecond.

    Each missed wake-up counts, since otherwise a long stall would have the weight of a single wake-up.
    """

    def __init__(self) -> None:
        self._late: list[float] = []
        self._over = threading.Event()

    def watch(self) -> None:
        prioritize(0, generator_cpu())
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
        """Bound what the machine added to this percentile (s), if it caused half of the values above it."""
        return percentile(self._late, 100 - (100 - percent) / 2)


@contextmanager
def _children_prioritized() -> Iterator[None]:
    """Give processes that are started in the block real-time priority, if permitted."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)


@dataclass
class Truth:
    """A run, the server's log of it, and the wake-up latency of a probe.

    `intended_stall` is the time (s) for which the test itself stopped the generator.
    """

    outcome: Outcome = field(default_factory=Outcome)
    log: Log = field(default_factory=lambda: Log([]))
    probe: WakeupProbe = field(default_factory=WakeupProbe)
    clock: Clock = field(default_factory=Clock)
    intended_stall: float = 0.0

    def slack(self, percent: float) -> float:
        """Bound the disturbance of a percentile (s).

        By the machine, as measured by the probe; by other processes on the generator's CPU, as counted by the kernel;
        and by pauses that the generator itself reports as saturation.
        """
        paused = sum(tick.pause for tick in self.outcome.ticks if tick.pause >= SATURATED_LAG)
        return self.probe.slack(percent) + self.starved(percent) + max(0.0, paused - self.intended_stall)

    def starved(self, percent: float) -> float:
        """Bound what the generator's wait for a CPU added to a percentile (s), if it caused half of the values above.

        The delay of a response is at most the wait in its tick and in the tick before.
        """
        late, before = list[float](), 0.0
        for tick in self.outcome.ticks:
            late += [before + tick.cpu_wait] * tick.completed
            before = tick.cpu_wait
        return percentile(late, 100 - (100 - percent) / 2)

    def due(self, rate: float) -> list[float]:
        """Return the due times of all arrivals in an even schedule of this rate (s, monotonic)."""
        began = self.clock.origin + self.outcome.started.t
        return [began + number / rate for number in range(len(self.log.replies))]

    def in_order(self) -> list[Reply]:
        """Return the log in order of arrival, which is the order of due times."""
        return sorted(self.log.replies, key=lambda reply: reply.arrived)


@asynccontextmanager
async def _serving(rule: Rule, truth: Truth) -> AsyncIterator[str]:
    """Run a truth server in a separate process; yield its URL, and store its log in `truth`."""
    pipe, theirs = FORKS.Pipe()
    process = FORKS.Process(target=run, args=(rule, server_cpu(), theirs))
    process.start()
    theirs.close()
    try:
        yield f"http://127.0.0.1:{await asyncio.to_thread(pipe.recv)}/"
        pipe.send("end")
        truth.log = await asyncio.to_thread(pipe.recv)
    finally:
        pipe.close()
        await asyncio.to_thread(process.join)


async def run_against(
    rule: Rule, plan: Callable[[str], LoadPlan], during: Callable[[LoadRun, Outcome], Awaitable[None]] | None = None
) -> Truth:
    """Run a plan (made from the server's URL) with a single worker."""
    truth = Truth()
    async with _serving(rule, truth) as url:
        # Short ticks, because the generator detects a pause only at a tick.
        load_plan = msgspec.structs.replace(plan(url), cpus=(generator_cpu(),), tick=0.02)
        with truth.probe.watching():
            with _children_prioritized():
                load_run = await launch(load_plan, 1, truth.clock, truth.outcome.emit)
            if during:
                await during(load_run, truth.outcome)
            await load_run.wait()
    return truth
