"""Load generators (machines): events and state. Times are session seconds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from cockpit.model.event import Event
from cockpit.model.recorded import Name


class CpuTimes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """CPU seconds of all CPUs of a machine since boot. macOS has `user`, `nice`, `system` and `idle` only."""

    user: float
    nice: float
    system: float
    idle: float
    iowait: float = 0.0
    irq: float = 0.0
    softirq: float = 0.0
    steal: float = 0.0


class GeneratorSample(Event, frozen=True, tag="generator_sample"):
    """CPU times of the machine on which cockpit and its load workers run, and its number of `cpus`. `own`: CPU time (s)
    of cockpit and the workers since cockpit started."""

    cpus: int
    times: CpuTimes
    own: float


class WorkerLost(Event, frozen=True, tag="worker_lost"):
    """A load worker exited unexpectedly; the metrics of its run are partial."""

    run: int
    worker: int
    detail: str


class GeneratorClock(Event, frozen=True, tag="generator_clock"):
    """The clock of a generator: `offset` (s) converts its time to the cockpit's, with a maximum error of `uncertainty`
    (s); `drift`: by how much the generator's clock is slow (s/s)."""

    machine: Name
    offset: float
    uncertainty: float
    drift: float


class GeneratorLost(Event, frozen=True, tag="generator_lost"):
    """A generator was lost; its load is distributed to the others."""

    machine: Name
    detail: str


GeneratorEvent = GeneratorSample | WorkerLost | GeneratorClock | GeneratorLost


class GeneratorMachine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine on which cockpit and its workers run, at `t`. `own`: their CPU time (s); `rate`: their CPU seconds
    per second in the last interval; `other` and `idle`: as in LoadSecond, in the last interval."""

    t: float
    times: CpuTimes
    own: float
    rate: float = 0.0
    other: float | None = None
    idle: float | None = None

    def own_at(self, t: float) -> float:
        """Extrapolate the CPU time (s) of cockpit and its workers to `t`, close to the last reading."""
        return self.own + self.rate * (t - self.t)


class GeneratorSecond(msgspec.Struct, frozen=True, kw_only=True):
    """One second of a generator. `spent`: CPU time and span (s) of each load worker; `lag`: highest p99 (s) of a tick;
    `cpu_wait`: seconds that its workers waited for a CPU."""

    second: int
    completed: int = 0
    spent: Mapping[int, tuple[float, float]] = MappingProxyType({})
    lag: float = 0.0
    cpu_wait: float = 0.0

    @property
    def cpu(self) -> float:
        """CPU use of the busiest load worker; 1.0 is a whole core."""
        return max((cpu / span for cpu, span in self.spent.values() if span > 0), default=0.0)


class GeneratorState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a load generator; its clock as in GeneratorClock, None before the first reading. `lost`: time and
    reason of its loss; `last`: its last complete second of load; `filling`: the current second."""

    name: str
    offset: float | None = None
    uncertainty: float = 0.0
    drift: float = 0.0
    lost: tuple[float, str] | None = None
    last: GeneratorSecond | None = None
    filling: GeneratorSecond | None = None
