"""Capacity searches on simulated servers with a queue: levels share one queue, arrivals are random.

`python -m tests.statistics.capacity [N]` prints N searches of each server that the search was not tuned on, and
`python -m tests.statistics.capacity truth` the capacities of these servers by long simulations.
"""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cockpit.analysis.capacity.levels import Level, level_of, parse_limits, shares
from cockpit.analysis.capacity.search import LONGEST, Aim, CapacityEstimate, Step, capacity, next_step
from cockpit.analysis.thresholds import Threshold
from cockpit.metrics.results import RunResult
from cockpit.model.capacity import CapacityOutcome
from cockpit.model.counts import Counts
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import LoadPlan


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

    def services(self, random: np.random.Generator, number: int) -> Floats:
        """Return service times (s) of requests that start while the other slots are free."""
        return random.exponential(1 / self.rate, number)

    def slowdown(self, busy: int) -> float:
        """Return the factor of a service time if `busy` of the slots are busy."""
        return 1.0

    def slower(self, arrivals: float) -> float:
        """Return the share of response times above the limit, by Erlang's formula."""
        offered, slots = arrivals / self.rate, self.slots
        blocked = 1.0
        for slot in range(1, slots + 1):
            blocked = offered * blocked / (slot + offered * blocked)
        waits = blocked / (1 - offered / slots * (1 - blocked))
        drain = slots * self.rate - arrivals
        served, drained = math.exp(-self.rate * self.limit), math.exp(-drain * self.limit)
        apart = drain - self.rate
        both = (drain * served - self.rate * drained) / apart if apart else served * (1 + self.rate * self.limit)
        return (1 - waits) * served + waits * both


Floats = npt.NDArray[np.float64]
# Requests of a simulation that gives the capacity of a queue.
_SIMULATED = 2_000_000

CASES = (
    Case(1, 1000, 0.05),
    Case(4, 250, 0.05),
    Case(8, 100, 0.06),
    Case(32, 100, 0.05),
    Case(16, 50, 0.1, 95),
    Case(2, 1000, 0.02, 99.9),
)


class Queue(NamedTuple):
    """A server whose capacity `truth` is known by simulation. `draw`: service times in units of `mean` (s); `growth`:
    the service time of a request that finds all slots busy is 1 + growth times that of one that finds none. `longest`:
    the time (s) of a search."""

    title: str
    slots: int
    mean: float
    draw: Callable[[np.random.Generator, int], Floats]
    limit: float
    percent: float
    truth: float
    growth: float = 0.0
    longest: float = LONGEST

    @property
    def name(self) -> str:
        minutes = f", {self.longest / 60:.0f} min" if self.longest > LONGEST else ""
        return f"{self.title}, p{self.percent:g} < {1000 * self.limit:g} ms: {self.truth:.0f}/s{minutes}"

    @property
    def limits(self) -> tuple[Threshold, ...]:
        return parse_limits(f"p{self.percent:g} < {1000 * self.limit:g}ms, errors < 1%")

    def services(self, random: np.random.Generator, number: int) -> Floats:
        return self.mean * self.draw(random, number)

    def slowdown(self, busy: int) -> float:
        return 1 + self.growth * busy / self.slots

    def slower(self, arrivals: float) -> float:
        """Return the share of response times above the limit, by a simulation that is the same for all rates."""
        random = np.random.default_rng(2)
        times = simulated(self, [0.0] * self.slots, _SIMULATED, arrivals, random)[1]
        return float(np.mean(times > self.limit))


def _exponential(random: np.random.Generator, number: int) -> Floats:
    return random.exponential(1.0, number)


def _lognormal(random: np.random.Generator, number: int) -> Floats:
    """Return service times with mean 1 and coefficient of variation 1.5."""
    variance = math.log(1 + 1.5**2)
    return random.lognormal(-variance / 2, math.sqrt(variance), number)


def _constant(random: np.random.Generator, number: int) -> Floats:
    return np.ones(number)


def _rare(random: np.random.Generator, number: int) -> Floats:
    """Return service times with mean 1: one request in twenty takes 20 times as long as the others."""
    return np.where(random.random(number) < 0.05, 20.0, 1.0) / 1.95


# Servers that the search was not tuned on.
QUEUES = (
    Queue("2 slots, lognormal 2 ms", 2, 0.002, _lognormal, 0.04, 99, 782.5),
    # The exceeding requests come in about one burst per 10 s: 3 min have too few of them.
    Queue("2 slots, lognormal 2 ms", 2, 0.002, _lognormal, 0.04, 99, 782.5, longest=360.0),
    Queue("16 slots, exponential 20 ms", 16, 0.02, _exponential, 0.15, 99, 764.3),
    Queue("4 slots, constant 8 ms", 4, 0.008, _constant, 0.02, 99, 351),
    Queue("8 slots, 5 ms to 10 ms with load", 8, 0.005, _exponential, 0.06, 99, 761.3, growth=1.0),
    Queue("3 slots, 3 ms, 5% 20 times as long", 3, 0.003, _rare, 0.1, 95, 919.7),
)

EVERY = (*CASES, *QUEUES)


class Searched(NamedTuple):
    """How a search ended, its capacity, its levels, and its duration (s)."""

    outcome: CapacityOutcome
    found: CapacityEstimate | None
    levels: tuple[Level, ...]
    seconds: float


class Server:
    """A queue that levels follow each other on."""

    def __init__(self, case: Case | Queue, random: np.random.Generator) -> None:
        self._case, self._random = case, random
        self._free = [0.0] * case.slots
        self.t = 0.0

    def run(self, rate: float, seconds: float) -> RunResult:
        """Return the result of a level; responses count in the level in which they end."""
        number = int(seconds * rate * 1.5) + 50
        arrivals, responses = simulated(self._case, self._free, number, rate, self._random, self.t, seconds)
        self.t += seconds
        done = responses[arrivals + responses < self.t]
        counts = Counts(sent=len(arrivals), completed=len(done), response=Histogram.of((done * 1e9).astype(np.int64)))
        return result_of(counts, rate, seconds)

    def drain(self) -> None:
        """Wait until all requests have ended, at most 10 s."""
        self.t = min(max(self.t, *self._free), self.t + 10)


def simulated(
    case: Case | Queue,
    free: list[float],
    number: int,
    rate: float,
    random: np.random.Generator,
    start: float = 0.0,
    seconds: float = math.inf,
) -> tuple[Floats, Floats]:
    """Return instants and response times of at most `number` random arrivals. `free` (a heap): when slots are free."""
    arrivals = start + np.cumsum(random.exponential(1 / rate, number))
    arrivals = arrivals[arrivals < start + seconds]
    grows, times = case.slowdown(1) > 1, []
    for arrival, service in zip(arrivals.tolist(), case.services(random, len(arrivals)).tolist(), strict=True):
        begun = max(arrival, free[0])
        if grows:
            service *= case.slowdown(sum(end > begun for end in free))
        heapq.heapreplace(free, begun + service)
        times.append(begun + service - arrival)
    return arrivals, np.array(times)


def result_of(counts: Counts, rate: float, seconds: float) -> RunResult:
    return RunResult(
        run=1,
        plan=LoadPlan(url="http://x/", rate=rate),
        counts=counts,
        seconds=seconds,
        hosts={},
        saturated=0.0,
        stalled=0.0,
        losses=(),
        reason="",
        detail="",
    )


def search(case: Case | Queue, seed: int) -> Searched:
    server, limits, levels = Server(case, np.random.default_rng(seed)), case.limits, list[Level]()
    longest = case.longest if isinstance(case, Queue) else LONGEST
    aim = Aim(share=min(shares(limits), default=1.0), longest=longest)
    while isinstance(step := next_step(levels, aim, server.t), Step):
        server.run(step.rate, step.settle)
        levels.append(level_of(step.rate, server.run(step.rate, step.seconds), limits))
        if not levels[-1].holds:
            server.drain()
    return Searched(step, capacity(levels), tuple(levels), server.t)


def searches(case: Case | Queue, repetitions: int, seed: int) -> Sequence[Searched]:
    return [search(case, seed + number) for number in range(repetitions)]


def capacity_of(queue: Queue) -> float:
    """Return the highest rate that holds the limit, by bisection over simulations."""
    low, high = 0.0, queue.slots / queue.mean
    for _ in range(11):
        middle = (low + high) / 2
        low, high = (middle, high) if queue.slower(middle) <= 1 - queue.percent / 100 else (low, middle)
    return (low + high) / 2


def summary(case: Case | Queue, repetitions: int) -> str:
    """Return share within 5%, median and 90% of the error, coverage of the interval, and mean seconds."""
    found = searches(case, repetitions, seed=1)
    errors = [math.inf if one.found is None else abs(one.found.rate / case.truth - 1) for one in found]
    covered = [one.found is not None and one.found.low <= case.truth <= one.found.high for one in found]
    median, most = np.quantile(errors, (0.5, 0.9))
    near, seconds = np.mean(np.array(errors) <= 0.05), np.mean([one.seconds for one in found])
    return (
        f"{case.name:60} within 5%: {near:4.0%}  error: {median:5.1%} {most:5.1%}  "
        f"covered: {np.mean(covered):4.0%}  {seconds:3.0f} s, at most {max(one.seconds for one in found):.0f} s"
    )


if __name__ == "__main__":
    for each in QUEUES:
        if sys.argv[1:] == ["truth"]:
            print(f"{each.title}: {capacity_of(each):.1f}/s", flush=True)
        else:
            print(summary(each, int(sys.argv[1]) if len(sys.argv) > 1 else 50), flush=True)
