"""The part of fold for other load: CPU time of programs that are neither the server, nor the load generator, nor the
probe, but share their machine.

It is the machine's busy time less the CPU time of all known programs: the watched processes of each host on that
machine, their probes, and cockpit with its workers. These are sampled at different instants, so each is extrapolated
to the instant of the sample at its last rate; the next sample corrects it.

Idle time is measured by the clock, but most kernels count user and system time at clock ticks: a load in phase with
the ticks makes that twice or half of its value. Interrupt time is left out. Packets of the load cause most of it, and
no process owns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.model.events import HostSample
from cockpit.model.generators import GeneratorMachine, GeneratorSample, MachineTimes
from cockpit.model.host_rates import ReadingStep
from cockpit.model.host_state import CpuClaim, HostState
from cockpit.model.hosts import CpuCounters, HostReading, identity
from cockpit.model.state import State

# The generator's name among claims.
GENERATOR = ""
# A share (per cent) below which more is known than the machine can have done: a process was waited for whose time of
# long ago was nobody's until then. Down to it, a sample corrects what the last one carried on too far.
_NONSENSE = -100.0
# Digits of a share (per cent).
_DIGITS = 2


def generator_sample(state: State, event: GeneratorSample) -> State:
    before = state.generator
    machine = GeneratorMachine(t=event.t, times=event.times, own=event.own)
    if before is None or event.t <= before.t:
        return replace(state, generator=machine)
    own, seconds = max(0.0, event.own - before.own), event.t - before.t
    whole = event.cpus * seconds
    idle = _unused(event.times) - _unused(before.times)
    busy = whole - idle - (_interrupts(event.times) - _interrupts(before.times))
    machine = replace(machine, rate=own / seconds, other=_share(busy - own, whole), idle=max(0.0, _share(idle, whole)))
    return replace(state, generator=machine)


def claimed_cpu(host: HostState, event: HostSample, step: ReadingStep | None) -> HostState:
    """The host with the CPU time that its watched processes and its probe used until the sample."""
    before = host.sample
    if event.reading.processes_cpu is None:
        return host
    if before is None or host.facts is None or step is None or step.seconds <= 0:
        return replace(host, claim=replace(host.claim, t=event.t, rate=0.0))
    ticks = _ticks_used(before.reading, event.reading) or 0
    used = ticks / host.facts.hz + event.reading.probe_cpu
    return replace(host, claim=CpuClaim(t=event.t, used=host.claim.used + used, rate=used / step.seconds))


def claims_at(state: State, host: HostState, event: HostSample) -> dict[str, float]:
    """CPU time (s) until the sample of all that is known to run on the host's machine, by host name."""
    if event.reading.processes_cpu is None:
        return {}
    claims = {host.config.name: host.claim.used}
    boot = host.facts.boot if host.facts else ""
    if not boot:
        return claims
    seen = set(map(identity, event.reading.processes))
    for name, other in state.hosts.items():
        if name == host.config.name or other.facts is None or other.facts.boot != boot or other.sample is None:
            continue
        processes = set(map(identity, other.sample.reading.processes))
        # Two hosts that see the same processes are one: they would be subtracted twice.
        if not processes & seen:
            claims[name] = other.claim.at(event.t)
            seen |= processes
    if state.generator is not None and state.started is not None and state.started.boot == boot:
        claims[GENERATOR] = state.generator.own_at(event.t)
    return claims


class CpuSplit(NamedTuple):
    """Shares of the host's CPUs since its last sample, per cent: the watched processes of the hosts on that machine
    with their probes, the load generator (None: it is not on that machine), and all other programs."""

    servers: float | None = None
    generator: float | None = None
    other: float | None = None


def cpu_split(host: HostState, event: HostSample, step: ReadingStep | None, claims: Mapping[str, float]) -> CpuSplit:
    """Return who used the host's CPUs.

    Unknown if no process is watched or was ever seen, so the server itself would count as another program, or if the
    time since the last sample is unknown.
    """
    if step is None or step.cpu is None or host.sample is None or host.facts is None or not _watched(host, event):
        return CpuSplit()
    old, new = host.sample.reading, event.reading
    if _ticks_used(old, new) is None:
        return CpuSplit()
    known = {name: used - host.claims[name] for name, used in claims.items() if name in host.claims}
    own = known.pop(GENERATOR, None)
    servers = sum(known.values())
    whole = step.seconds * host.facts.hz * max(host.facts.cpus, len(new.cores))
    busy = whole - (_unused(new.cpu) - _unused(old.cpu)) - (_interrupts(new.cpu) - _interrupts(old.cpu))
    other = _share(busy - (servers + (own or 0.0)) * host.facts.hz, whole)
    if other < _NONSENSE:
        return CpuSplit()
    generator = None if own is None else _share(own * host.facts.hz, whole)
    return CpuSplit(_share(servers * host.facts.hz, whole), generator, other)


def _ticks_used(old: HostReading, new: HostReading) -> int | None:
    """CPU time of the watched processes between two readings; None if unknown, as of a probe that started again."""
    if old.processes_cpu is None or new.processes_cpu is None or new.processes_cpu < old.processes_cpu:
        return None
    return new.processes_cpu - old.processes_cpu


def _watched(host: HostState, event: HostSample) -> bool:
    reading = event.reading
    return bool(host.config.processes and not reading.hidden and (reading.processes or reading.processes_cpu))


def _share(part: float, whole: float) -> float:
    """Return per cent. May be below 0 or above 100 if it corrects the last value, so that their mean is right."""
    return round(100 * part / whole, _DIGITS)


def _unused(cpu: CpuCounters | MachineTimes) -> float:
    return cpu.idle + cpu.iowait


def _interrupts(cpu: CpuCounters | MachineTimes) -> float:
    return cpu.irq + cpu.softirq
