"""The events of the machines that load comes from."""

from __future__ import annotations

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
