"""The machines that load comes from: their events, and their state. Times are session seconds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from cockpit.model.event import Event


class MachineTimes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """CPU seconds of all CPUs of a machine since its start. macOS counts `user`, `nice`, `system` and `idle` only."""

    user: float
    nice: float
    system: float
    idle: float
    iowait: float = 0.0
    irq: float = 0.0
    softirq: float = 0.0
    steal: float = 0.0


class GeneratorSample(Event, frozen=True, tag="generator_sample"):
    """The machine that cockpit and its load workers run on, with its `cpus`. `own` is the CPU time (s) of all of
    these since cockpit started."""

    cpus: int
    times: MachineTimes
    own: float


class WorkerLost(Event, frozen=True, tag="worker_lost"):
    """A load worker died; the metrics of its run are partial."""

    run: int
    worker: int
    detail: str


class GeneratorClock(Event, frozen=True, tag="generator_clock"):
    """The clock of a generator: `offset` (s) makes an instant there one of the cockpit's machine, off by at most
    `uncertainty` (s); `drift` are seconds per second by which it runs slower."""

    machine: str
    offset: float
    uncertainty: float
    drift: float


class GeneratorLost(Event, frozen=True, tag="generator_lost"):
    """A generator is gone; its load is dealt to the others."""

    machine: str
    detail: str


GeneratorEvent = GeneratorSample | WorkerLost | GeneratorClock | GeneratorLost


class GeneratorMachine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine that cockpit and its workers run on, at `t`. `own` is their CPU time (s), `rate` that per second of
    the last interval, `other` and `idle` as in LoadSecond, of that interval."""

    t: float
    times: MachineTimes
    own: float
    rate: float = 0.0
    other: float | None = None
    idle: float | None = None

    def own_at(self, t: float) -> float:
        """Return the CPU time of cockpit and its workers until `t`, near to the last reading."""
        return self.own + self.rate * (t - self.t)


class GeneratorSecond(msgspec.Struct, frozen=True, kw_only=True):
    """A second of a generator: `spent` is CPU and span (s) of each load worker, `lag` the longest p99 (s) of a tick,
    `cpu_wait` seconds that its workers waited for a CPU."""

    second: int
    completed: int = 0
    spent: Mapping[int, tuple[float, float]] = MappingProxyType({})
    lag: float = 0.0
    cpu_wait: float = 0.0

    @property
    def cpu(self) -> float:
        """The share of a CPU that the busiest load worker used."""
        return max((cpu / span for cpu, span in self.spent.values() if span > 0), default=0.0)


class GeneratorState(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that load comes from; its clock as in GeneratorClock, None before the first reading. `lost` is when and
    why it was lost; `last` its last whole second of load, `filling` the one after."""

    name: str
    offset: float | None = None
    uncertainty: float = 0.0
    drift: float = 0.0
    lost: tuple[float, str] | None = None
    last: GeneratorSecond | None = None
    filling: GeneratorSecond | None = None
