"""The part of fold for other load: CPU time of programs other than the server, the load generator and the probe on the
same machine.

Other load is the machine's busy time minus the CPU time of all known programs: the watched processes of each host on
the machine, their probes, and cockpit with its workers. Known programs are sampled at different instants, so each is
extrapolated to the instant of the sample at its last rate; the next sample corrects the extrapolation.

Busy time is computed from idle time, which kernels measure by the clock. Most kernels sample user and system time at
clock ticks: with a load in phase with the ticks, it can be twice or half the true value. Interrupt time is excluded,
because packets of the load cause most of it and it belongs to no process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.model.events import HostSample
from cockpit.model.generators import CpuTimes, GeneratorMachine, GeneratorSample
from cockpit.model.host.rates import ReadingStep
from cockpit.model.host.samples import CpuCounters, HostReading
from cockpit.model.host.state import CpuUsage, HostState
from cockpit.model.state import State

# Key of the load generator in `HostState.claims`.
GENERATOR = ""
# Counters of a CPU that is offline.
_OFFLINE = CpuCounters(*[0] * 8)
# Lowest plausible share (%). A negative share corrects an extrapolation that was too high. Below this limit, a parent
# has just waited for a child whose CPU time, of long ago, was not counted until then: the split is unknown.
_LOWEST_SHARE = -100.0
# Decimal places of a share (per cent).
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
    """Return the host with the CPU time that its watched processes and its probe used until the sample."""
    before = host.sample
    if event.reading.processes_cpu is None:
        return host
    if before is None or host.facts is None or step is None or step.seconds <= 0:
        return replace(host, claim=replace(host.claim, t=event.t, rate=0.0))
    ticks = _ticks_used(before.reading, event.reading) or 0
    used = ticks / host.facts.hz + event.reading.probe_cpu
    return replace(host, claim=CpuUsage(t=event.t, used=host.claim.used + used, rate=used / step.seconds))


def claims_at(state: State, host: HostState, event: HostSample) -> dict[str, float]:
    """Return the CPU time (s), until the sample, of all known programs on the host's machine, by host name."""
    if event.reading.processes_cpu is None:
        return {}
    claims = {host.config.name: host.claim.used}
    boot = host.facts.boot if host.facts else ""
    if not boot:
        return claims
    seen = [_origins(event)]
    for name, other in state.hosts.items():
        if name == host.config.name or other.facts is None or other.facts.boot != boot or other.sample is None:
            continue
        processes = _origins(other.sample)
        # Processes that two hosts see would be subtracted twice.
        if not any(_are_same(processes, others) for others in seen):
            claims[name] = other.claim.at(event.t)
            seen.append(processes)
    if state.generator is not None and state.started is not None and state.started.boot == boot:
        claims[GENERATOR] = state.generator.own_at(event.t)
    return claims


def _origins(event: HostSample) -> set[tuple[str, int]]:
    """Return names and starts of the processes, which a container and its machine see alike, unlike their PIDs."""
    return {(process.comm, process.start) for process in event.reading.processes}


def _are_same(first: set[tuple[str, int]], then: set[tuple[str, int]]) -> bool:
    """Return whether most of the processes are in both sets; some of two servers start in the same tick."""
    return 2 * len(first & then) > min(len(first), len(then))


class CpuSplit(NamedTuple):
    """CPU use of a machine since the host's last sample, in per cent of all CPUs: the watched processes and probes of
    all hosts on the machine, the load generator (None: on another machine), and all other programs. None: unknown."""

    servers: float | None = None
    generator: float | None = None
    other: float | None = None


def cpu_split(host: HostState, event: HostSample, step: ReadingStep | None, claims: Mapping[str, float]) -> CpuSplit:
    """Split the CPU use of the host's machine since its last sample.

    The split is unknown if no watched process was ever seen, because the server itself would count as other load, or if
    the interval since the last sample is unknown.
    """
    if step is None or step.cpu is None or host.sample is None or host.facts is None or not _watched(host, event):
        return CpuSplit()
    old, new = host.sample.reading, event.reading
    if _ticks_used(old, new) is None:
        return CpuSplit()
    known = {name: used - host.claims[name] for name, used in claims.items() if name in host.claims}
    own = known.pop(GENERATOR, None)
    servers = sum(known.values())
    pairs = zip(old.cores, new.cores, strict=False)
    # The counters of a CPU that is offline stand still, or are 0.
    online = sum(before != after and _OFFLINE not in (before, after) for before, after in pairs) or host.facts.cpus
    whole = step.seconds * host.facts.hz * online
    busy = whole - (_unused(new.cpu) - _unused(old.cpu)) - (_interrupts(new.cpu) - _interrupts(old.cpu))
    other = _share(busy - (servers + (own or 0.0)) * host.facts.hz, whole)
    if other < _LOWEST_SHARE:
        return CpuSplit()
    generator = None if own is None else _share(own * host.facts.hz, whole)
    return CpuSplit(_share(servers * host.facts.hz, whole), generator, other)


def _ticks_used(old: HostReading, new: HostReading) -> int | None:
    """Return the CPU time (clock ticks) of the watched processes between two readings; None if unknown, e.g. after a
    restart of the probe."""
    if old.processes_cpu is None or new.processes_cpu is None or new.processes_cpu < old.processes_cpu:
        return None
    return new.processes_cpu - old.processes_cpu


def _watched(host: HostState, event: HostSample) -> bool:
    reading = event.reading
    return bool(host.config.processes and not reading.hidden and (reading.processes or reading.processes_cpu))


def _share(part: float, whole: float) -> float:
    """Return a share in per cent: below 0 or above 100 if it corrects the previous share, so that their mean is
    right."""
    return round(100 * part / whole, _DIGITS)


def _unused(cpu: CpuCounters | CpuTimes) -> float:
    return cpu.idle + cpu.iowait


def _interrupts(cpu: CpuCounters | CpuTimes) -> float:
    return cpu.irq + cpu.softirq
