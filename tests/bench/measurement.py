"""A run of one generator and its measurement: cockpit through the pool of `cockpit run`, its peers as commands.

CPU is user + system time of all generator processes, including their start.
"""

import asyncio
import re
import resource
import subprocess
from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.load.pool import LoadRun, launch
from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent, RunEnded
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import LoadPlan
from cockpit.model.tick import Tick
from tests.lab.cpus import generator_cpu, on_generator_cpu


class Measurement(NamedTuple):
    """A run of a generator: completed requests (0: it did not end), CPU time (s), requests/s, errors."""

    requests: int
    cpu: float
    rate: float
    errors: int = 0

    @property
    def cost(self) -> float:
        """CPU per request, microseconds."""
        return self.cpu / self.requests * 1e6 if self.requests else inf


class CockpitRun:
    """The ticks of a run of cockpit, and the CPU time (s) of its workers."""

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
    def measurement(self) -> Measurement:
        completed = self.total("completed")
        return Measurement(completed, self.cpu, completed / self.seconds, self.errors)


OnTick = Callable[[LoadRun, CockpitRun], None]


def run_cockpit(plan: LoadPlan, on_tick: OnTick | None = None) -> CockpitRun:
    """Run the plan, on the generator's CPU unless it names CPUs. `on_tick` is called with every tick."""
    if not plan.cpus:
        plan = plan_on(plan, generator_cpu())
    run = CockpitRun()

    async def start() -> None:
        launched: list[LoadRun] = []

        def emit(event: AnyEvent) -> None:
            run.emit(event)
            if on_tick and launched:
                on_tick(launched[0], run)

        launched.append(await launch(plan, 1, Clock(), emit))
        await launched[0].wait()

    before = _cpu_of_children()
    asyncio.run(start())
    run.cpu = _cpu_of_children() - before
    if run.reason != "completed":
        raise RuntimeError(f"run of cockpit ended: {run.reason}")
    return run


def plan_on(plan: LoadPlan, *cpus: int) -> LoadPlan:
    """Return the plan with its workers on these CPUs."""
    return replace(plan, cpus=cpus)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class CommandOutput(NamedTuple):
    """The stdout of a command, and its CPU time (s)."""

    text: str
    cpu: float

    def number(self, pattern: str) -> float:
        """Return the number in the first group of the pattern."""
        match = re.search(pattern, self.text)
        if match is None:
            raise ValueError(f"no {pattern!r} in: {self.text}")
        return float(match[1].replace(",", ""))


def run_peer(command: Sequence[str], timeout: float = 120.0) -> CommandOutput:
    """Run another generator on the generator's CPU.

    Raises subprocess.SubprocessError if it fails or does not end within `timeout` (s).
    """
    before = _cpu_of_children()
    pinned = on_generator_cpu(list(command))
    done = subprocess.run(pinned, capture_output=True, text=True, check=True, timeout=timeout)
    return CommandOutput(done.stdout, _cpu_of_children() - before)
