"""One go of one generator, and what it came to: ours through the pool as `cockpit run` makes it, others as commands.

CPU is user + system of the whole generating process, its start included.
"""

from __future__ import annotations

import asyncio
import re
import resource
import subprocess
from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

from cockpit.load.pool import LoadRun, launch
from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent, RunEnded, Tick
from cockpit.model.histogram import Histogram
from cockpit.model.load import LoadPlan
from tests.lab.cpus import generator_cpu, on_generator_cpu


class Figure(NamedTuple):
    """One go of one generator: requests done (0: it did not end), CPU seconds used, requests a second, failures."""

    requests: int
    cpu: float
    rate: float
    errors: int = 0

    @property
    def cost(self) -> float:
        """CPU per request, microseconds."""
        return self.cpu / self.requests * 1e6 if self.requests else inf


class Run:
    """All ticks of a run of ours, and the CPU seconds of its workers."""

    def __init__(self) -> None:
        self.ticks: list[Tick] = []
        self.cpu = 0.0
        self.reason = ""

    def emit(self, event: AnyEvent) -> None:
        if isinstance(event, Tick):
            self.ticks.append(event)
        elif isinstance(event, RunEnded):
            self.reason = event.reason

    def total(self, name: str) -> int:
        return sum(getattr(tick, name) for tick in self.ticks)

    def merged(self, name: str) -> Histogram:
        return Histogram.merged(getattr(tick, name) for tick in self.ticks)

    @property
    def errors(self) -> int:
        return sum(sum(tick.errors.values()) for tick in self.ticks)

    @property
    def seconds(self) -> float:
        return max(tick.t for tick in self.ticks) - min(tick.start for tick in self.ticks)

    @property
    def figure(self) -> Figure:
        completed = self.total("completed")
        return Figure(completed, self.cpu, completed / self.seconds, self.errors)


Watch = Callable[[LoadRun, Run], None]


def ours(plan: LoadPlan, watch: Watch | None = None) -> Run:
    """Carries the plan out on the generator's CPU, if it names none. `watch` is called with every tick."""
    if not plan.cpus:
        plan = plan_on(plan, generator_cpu())
    done = Run()

    async def go() -> None:
        launched: list[LoadRun] = []

        def emit(event: AnyEvent) -> None:
            done.emit(event)
            if watch and launched:
                watch(launched[0], done)

        launched.append(await launch(plan, 1, Clock(), emit))
        await launched[0].wait()

    before = _children()
    asyncio.run(go())
    done.cpu = _children() - before
    if done.reason != "completed":
        raise RuntimeError(f"our own run ended as {done.reason}")
    return done


def plan_on(plan: LoadPlan, *cpus: int) -> LoadPlan:
    """The plan, its workers on these CPUs."""
    return LoadPlan(**{**{name: getattr(plan, name) for name in plan.__struct_fields__}, "cpus": cpus})


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Said(NamedTuple):
    """What a command printed, and the CPU seconds it took."""

    text: str
    cpu: float

    def number(self, pattern: str) -> float:
        """The number that the pattern's first group holds."""
        match = re.search(pattern, self.text)
        if match is None:
            raise ValueError(f"no {pattern!r} in: {self.text}")
        return float(match[1].replace(",", ""))


def theirs(command: Sequence[str], patience: float = 120.0) -> Said:
    """Runs another generator on the generator's CPU. Raises subprocess.SubprocessError when it fails, or does not end
    within `patience` s."""
    before = _children()
    pinned = on_generator_cpu(list(command))
    done = subprocess.run(pinned, capture_output=True, text=True, check=True, timeout=patience)
    return Said(done.stdout, _children() - before)
