"""The schedules of arrivals (open load) and of the phases of a run. All times are in s of time.monotonic()."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterator
from math import inf
from typing import NamedTuple

import numpy as np

from cockpit.load.ramp import Ramp, constant
from cockpit.model.load.plan import LoadPlan, Stage

# Number of gaps per draw.
_GAPS_PER_DRAW = 1024


class Arrivals:
    """The arrivals of one worker, on an absolute schedule. `due` is the time of the next arrival.

    The schedule is in units of the mean gap and is mapped to time by the integral of the current rate, so that a new
    rate continues at the current position. Even arrivals: of W workers, worker w has every W-th arrival, starting with
    arrival w. Poisson arrivals: each worker draws its own gaps; the sum over the workers is Poisson at the total rate.
    With bursts these are the times of bursts: all arrivals of a burst are due at once, in one worker.
    """

    def __init__(self, plan: LoadPlan, worker: int, workers: int) -> None:
        self._workers = workers
        self._draw = np.random.default_rng([abs(plan.seed), worker]) if plan.arrivals == "poisson" else None
        # The units of bursts, in bursts; arrivals left in the current one.
        self._units = _poisson(self._draw, 0.0) if self._draw else _even(worker / workers)
        self._burst = plan.burst
        self._begin_burst()
        # The rate of all workers that share it; its integral and the unit at the time from which on it is valid.
        self._rate: Ramp | None = None
        self._sharing = workers
        self._passed = self._origin = 0.0
        self.due = inf

    def share(self, workers: int) -> None:
        """Set the number of workers that share the rate; takes effect with the next `follow`."""
        self._workers = workers

    def follow(self, at: float, rate: Ramp) -> None:
        """Follow the rate of all workers together (arrivals/s) from `at` on."""
        if self._rate is not None:
            self._origin = self._unit_at(at)
        self._rate, self._sharing, self._passed = rate, self._workers, rate.arrivals(at)
        self._update_due()

    def advance(self) -> None:
        self._left -= 1
        if not self._left:
            self._begin_burst()
            self._update_due()

    def skip(self, until: float) -> int:
        """Skip the arrivals due before `until` without drawing each; return their number. The process stays Poisson."""
        target, current = self._unit_at(until) / self._burst, self._unit / self._burst
        if current >= target:
            return 0
        if self._draw:
            later = int(self._draw.poisson(target - current))
            self._units = _poisson(self._draw, target)
        else:
            later = math.ceil(target - current) - 1
            self._units = _even(current + later + 1)
        passed = self._left + later * self._burst
        self._begin_burst()
        self._update_due()
        return passed

    def _begin_burst(self) -> None:
        self._unit, self._left = self._burst * next(self._units), self._burst

    def _unit_at(self, t: float) -> float:
        assert self._rate is not None
        return self._origin + (self._rate.arrivals(t) - self._passed) / self._sharing

    def _update_due(self) -> None:
        assert self._rate is not None
        self.due = self._rate.time_of(self._passed + (self._unit - self._origin) * self._sharing)


def _even(phase: float) -> Iterator[float]:
    return (number + phase for number in itertools.count())


def _poisson(draw: np.random.Generator, last: float) -> Iterator[float]:
    while True:
        units = last + np.cumsum(draw.standard_exponential(_GAPS_PER_DRAW))
        last = float(units[-1])
        yield from units.tolist()


class ArrivalQueue:
    """Due times of queued arrivals (FIFO), eight bytes each."""

    def __init__(self) -> None:
        self._dues = array("d")
        self._first = 0

    def __len__(self) -> int:
        return len(self._dues) - self._first

    def put(self, due: float) -> None:
        self._dues.append(due)

    def pop(self) -> float:
        """Remove and return the due time of the first arrival."""
        due = self._dues[self._first]
        self._first += 1
        if 2 * self._first >= len(self._dues):
            # Half of the array is unused: moving the rest is cheap per arrival (amortized).
            del self._dues[: self._first]
            self._first = 0
        return due


class Phase(NamedTuple):
    """A part of a run with the `load` of all workers together."""

    start: float
    stage: int
    warmup: bool
    load: Ramp


def phases_of(plan: LoadPlan, at: float) -> tuple[list[Phase], float]:
    """Return the phases of a run that starts at `at`, and its end: infinite if only the number of requests ends it."""
    whole = Stage(
        duration=inf if plan.duration is None else plan.duration,
        concurrency=plan.concurrency,
        rate=plan.rate,
        ramp_to=plan.ramp_to,
    )
    phases, begin, past = [], at + plan.warmup, 0.0
    for stage, level in enumerate(plan.stages or (whole,)):
        start, past = begin + past, past + level.duration
        phases.append(Phase(start, stage, False, _load_of(level, start, begin + past)))
    if plan.warmup > 0:
        phases.insert(0, phases[0]._replace(start=at, warmup=True))
    return phases, begin + past


def _load_of(level: Stage, start: float, end: float) -> Ramp:
    first = float(level.concurrency or 0) if level.rate is None else level.rate
    return constant(first, start) if level.ramp_to is None else Ramp(first, level.ramp_to, start, end)
