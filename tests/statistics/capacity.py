"""Capacity searches on a simulated M/M/c server: levels share one queue, arrivals are random."""

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cockpit.analysis.capacity import Aim, CapacityEstimate, Step, capacity, next_step
from cockpit.analysis.capacity_levels import Level, level_of, parse_limits, shares
from cockpit.analysis.thresholds import Threshold
from cockpit.metrics.results import RunResult
from cockpit.model.counts import Counts
from cockpit.model.events import CapacityOutcome
from cockpit.model.histogram import Histogram
from cockpit.model.load import LoadPlan


class Case(NamedTuple):
    """A server with `slots` that each serve `rate` requests/s, and the limit of a percentile of response time (s)."""

    slots: int
    rate: float
    limit: float
    percent: float = 99

    @property
    def name(self) -> str:
        words = f"{self.slots} slots, {1000 / self.rate:g} ms, p{self.percent:g} < {1000 * self.limit:g} ms"
        return f"{words}: {self.truth:.0f}/s"

    @property
    def limits(self) -> tuple[Threshold, ...]:
        return parse_limits(f"p{self.percent:g} < {1000 * self.limit:g}ms, errors < 1%")

    @property
    def truth(self) -> float:
        """The highest arrival rate at which the share of slower requests is allowed."""
        low, high = 0.0, self.slots * self.rate
        for _ in range(60):
            middle = (low + high) / 2
            allowed = self.slower(middle) <= 1 - self.percent / 100
            low, high = (middle, high) if allowed else (low, middle)
        return low

    def slower(self, arrivals: float) -> float:
        """Return the share of response times above the limit, by Erlang's formula."""
        offered, slots = arrivals / self.rate, self.slots
        blocked = 1.0
        for slot in range(1, slots + 1):
            blocked = offered * blocked / (slot + offered * blocked)
        waits = blocked / (1 - offered / slots * (1 - blocked))
        drain = slots * self.rate - arrivals
        served, drained = math.exp(-self.rate * self.limit), math.exp(-drain * self.limit)
        # Both rates are equal only at one point, which the bisection does not need exactly.
        both = (drain * served - self.rate * drained) / (drain - self.rate or 1e-9)
        return (1 - waits) * served + waits * both


CASES = (
    Case(1, 1000, 0.05),
    Case(4, 250, 0.05),
    Case(8, 100, 0.06),
    Case(32, 100, 0.05),
    Case(16, 50, 0.1, 95),
    Case(2, 1000, 0.02, 99.9),
)


class Searched(NamedTuple):
    """How a search ended, its capacity, its levels, and its duration (s)."""

    outcome: CapacityOutcome
    found: CapacityEstimate | None
    levels: tuple[Level, ...]
    seconds: float


class Server:
    """An M/M/c queue that levels follow each other on."""

    def __init__(self, case: Case, random: np.random.Generator) -> None:
        self._case, self._random = case, random
        self._free = [0.0] * case.slots
        self.t = 0.0

    def run(self, rate: float, seconds: float) -> RunResult:
        """Return the result of a level; responses count in the level in which they end."""
        arrivals = self.t + np.cumsum(self._random.exponential(1 / rate, int(seconds * rate * 1.5) + 50))
        self.t += seconds
        arrivals = arrivals[arrivals < self.t]
        times = []
        for arrival, service in zip(
            arrivals, self._random.exponential(1 / self._case.rate, len(arrivals)), strict=True
        ):
            end = max(arrival, self._free[0]) + service
            heapq.heapreplace(self._free, end)
            times.append(end - arrival)
        responses = np.array(times)
        done = responses[arrivals + responses < self.t]
        counts = Counts(sent=len(arrivals), completed=len(done), response=Histogram.of((done * 1e9).astype(np.int64)))
        return result_of(counts, rate, seconds)

    def drain(self) -> None:
        """Wait until all requests have ended, at most 10 s."""
        self.t = min(max(self.t, *self._free), self.t + 10)


def result_of(counts: Counts, rate: float, seconds: float) -> RunResult:
    return RunResult(
        run=1,
        plan=LoadPlan(url="http://x/", rate=rate),
        counts=counts,
        seconds=seconds,
        hosts={},
        saturated=0.0,
        stalled=0.0,
        partial="",
        reason="",
        detail="",
    )


def search(case: Case, seed: int) -> Searched:
    server, limits, levels = Server(case, np.random.default_rng(seed)), case.limits, list[Level]()
    aim = Aim(share=min(shares(limits), default=1.0))
    while isinstance(step := next_step(levels, aim, server.t), Step):
        server.run(step.rate, step.settle)
        levels.append(level_of(step.rate, server.run(step.rate, step.seconds), limits))
        if not levels[-1].holds:
            server.drain()
    return Searched(step, capacity(levels), tuple(levels), server.t)


def searches(case: Case, repetitions: int, seed: int) -> Sequence[Searched]:
    return [search(case, seed + number) for number in range(repetitions)]
