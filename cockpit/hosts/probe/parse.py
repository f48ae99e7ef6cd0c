"""Parses frames of the probe into counters and facts. Pure.

Raises ValueError for an incomplete frame, and for a number that cannot be represented.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from cockpit.hosts.probe.frames import Frame
from cockpit.hosts.probe.numbers import INTEGER_LIMIT, TIME_LIMIT, count, decimal, name
from cockpit.model.host.samples import (
    CpuCounters,
    DiskCounters,
    HostFacts,
    HostReading,
    IoCounters,
    MemCounters,
    NetCounters,
    ProcessCounters,
)

# Maximum number of CPUs that a kernel can be built for.
CPUS_LIMIT = 8192
# Maximum number of disks, of interfaces, and of lines of a file.
DEVICES_LIMIT, LINES_LIMIT = 10_000, 20_000
# Clock ticks per second, and bytes of a page.
_HZ_LIMIT, _PAGE_LIMIT = 10_001, 2**22
# Limit in KiB, so that the number of bytes can be represented too.
_MEMORY_LIMIT = INTEGER_LIMIT // 1024
_LOAD_LIMIT = 2**32
# Maximum lag (s) of the kernel's clock in whole seconds: a tick of the slowest kernel, 100 Hz.
_CLOCK_TICK = 0.01

# `boot` is the boot id: hosts with the same one share a machine.
FACTS = ("hostname", "kernel", "cpus", "hz", "page", "boot")

_Parsed = TypeVar("_Parsed")


def facts(lines: Mapping[str, str]) -> HostFacts:
    """Parse the facts that the probe prints before its first frame. Raises ValueError, KeyError."""
    hostname, kernel, cpus, hz, page = (lines[fact].encode() for fact in FACTS[:5])
    return HostFacts(
        hostname=name(hostname),
        kernel=name(kernel),
        cpus=count(cpus, CPUS_LIMIT + 1),
        hz=_above_zero(count(hz, _HZ_LIMIT), "clock ticks per second"),
        page=_above_zero(count(page, _PAGE_LIMIT), "bytes per page"),
        boot=name(lines.get("boot", "").encode()),
    )


def _above_zero(number: int, unit: str) -> int:
    if not number:
        raise ValueError(f"0 {unit}")
    return number


def wall_clock(date: str) -> tuple[float, float]:
    """Parse the output of `date +%s.%N` to (epoch seconds, maximum error). A date without %N prints whole seconds,
    which may be a clock tick late. Raises ValueError."""
    seconds, _, fraction = date.strip().partition(".")
    if fraction.isdigit():
        return decimal(f"{seconds}.{fraction}".encode(), TIME_LIMIT), 0.0
    half = (1 + _CLOCK_TICK) / 2
    return count(seconds.encode(), TIME_LIMIT) + half, half


def reading(
    frame: Frame,
    processes: tuple[ProcessCounters, ...] = (),
    probe_cpu: float = 0.0,
    pss: int | None = None,
    processes_cpu: int | None = None,
) -> HostReading:
    """Return the counters of a frame. The wall clock is boot time plus uptime, as in ps, accurate to a second."""
    stat = _parsed(frame, "/proc/stat", _table)
    uptime = _parsed(frame, "/proc/uptime", _uptime)
    known = frame.disks | frame.layered
    disks = _parsed(frame, "/proc/diskstats", lambda content: _disks(content, known), needed=False)
    _representable("memory of all processes", sum([process.rss for process in processes]))
    return HostReading(
        uptime=uptime,
        wall=_number(stat, b"btime", needed=True, limit=TIME_LIMIT - TIME_LIMIT // 10) + uptime,
        cpu=_cpu(_entry(stat, b"cpu", "/proc/stat")),
        memory=_parsed(frame, "/proc/meminfo", _memory),
        io=_io(disk for disk in disks if _as_in_sys(disk.name) in frame.disks),
        load=_parsed(frame, "/proc/loadavg", _load),
        forks=_number(stat, b"processes", needed=True),
        processes=processes,
        probe_cpu=probe_cpu,
        cores=_cores(stat),
        disks=disks,
        nets=_parsed(frame, "/proc/net/dev", _nets, needed=False),
        running=_number(stat, b"procs_running"),
        blocked=_number(stat, b"procs_blocked"),
        hidden=frame.hidden,
        pss=pss,
        processes_cpu=None if processes_cpu is None else _representable("CPU of the processes", processes_cpu),
    )


def probe_seconds(frame: Frame, hz: int) -> float:
    """Return the CPU time (s) of the probe's processes and of their children, since they started."""
    stats = (content for path, content in frame.files.items() if path.startswith(("/proc/./", "/proc/self/")))
    fields = (content.rpartition(b")")[2].split() for content in stats)
    return sum(count(row[i]) for row in fields if len(row) > 14 for i in (11, 12, 13, 14)) / hz


def _parsed(frame: Frame, path: str, parse: Callable[[bytes], _Parsed], *, needed: bool = True) -> _Parsed:
    """Parse the content of a file. Raises ValueError that names the file."""
    content = frame.files.get(path, b"")
    if needed and not content:
        raise ValueError(f"{path} cannot be read")
    try:
        return parse(content)
    except (ValueError, IndexError) as error:
        raise ValueError(f"{path}: {error}") from None


def _representable(name: str, number: int) -> int:
    """Return the number. Raises ValueError if it is too large for a recording."""
    if number >= INTEGER_LIMIT:
        raise ValueError(f"{name}: {number} cannot be represented")
    return number


def _lines(content: bytes) -> list[bytes]:
    lines = content.splitlines()
    if len(lines) > LINES_LIMIT:
        raise ValueError(f"more than {LINES_LIMIT} lines")
    return lines


def _table(content: bytes) -> dict[bytes, list[bytes]]:
    """Map the first word of each line to the other words."""
    rows = (line.split() for line in _lines(content))
    return {row[0]: row[1:] for row in rows if row}


def _entry(table: dict[bytes, list[bytes]], name: bytes, path: str) -> list[bytes]:
    if not table.get(name):
        raise ValueError(f"{path} has no {name.decode()}")
    return table[name]


def _number(stat: dict[bytes, list[bytes]], name: bytes, *, needed: bool = False, limit: int = INTEGER_LIMIT) -> int:
    """Return the number in a line of /proc/stat; 0 if the line is missing and not `needed`."""
    row = _entry(stat, name, "/proc/stat") if needed else stat.get(name)
    try:
        return count(row[0], limit) if row else 0
    except ValueError as error:
        raise ValueError(f"/proc/stat: {name.decode()}: {error}") from None


def _uptime(content: bytes) -> float:
    # A tenth of the limit, so that boot time plus uptime is within it.
    return decimal(content.split()[0], TIME_LIMIT // 10)


def _load(content: bytes) -> tuple[float, float, float]:
    last, five, fifteen = (decimal(word, _LOAD_LIMIT) for word in content.split()[:3])
    return last, five, fifteen


def _cpu(words: list[bytes]) -> CpuCounters:
    counters = [count(word) for word in words[:10]]
    if len(counters) < 4:
        raise ValueError(f"/proc/stat: a CPU has {len(counters)} counters")
    return CpuCounters(*counters, *[0] * (10 - len(counters)))


def _cores(stat: dict[bytes, list[bytes]]) -> tuple[CpuCounters, ...]:
    """Return the counters by core number; an offline core has no line, so all its counters are 0."""
    numbered = ((name[3:], words) for name, words in stat.items() if name[:3] == b"cpu" and name != b"cpu")
    lines = {count(number, CPUS_LIMIT): _cpu(words) for number, words in numbered}
    never = CpuCounters(*[0] * 8)
    return tuple(lines.get(number, never) for number in range(max(lines, default=-1) + 1))


def _memory(content: bytes) -> MemCounters:
    table = _table(content)

    def kib(name: bytes) -> int:
        row = table.get(name + b":")
        return count(row[0], _MEMORY_LIMIT) if row else 0

    _entry(table, b"MemTotal:", "/proc/meminfo")
    memory = MemCounters(
        total=kib(b"MemTotal"),
        free=kib(b"MemFree"),
        available=kib(b"MemAvailable") if b"MemAvailable:" in table else None,
        buffers=kib(b"Buffers"),
        cached=kib(b"Cached"),
        reclaimable=kib(b"SReclaimable"),
        shmem=kib(b"Shmem"),
        swap_total=kib(b"SwapTotal"),
        swap_free=kib(b"SwapFree"),
    )
    _representable("buffers and cache", 1024 * (memory.buffers + memory.cached + memory.reclaimable))
    return memory


def _as_in_sys(name: str) -> str:
    """Return a device's name as in /sys, with `!` for a slash."""
    return name.replace("/", "!")


def _disks(content: bytes, known: Collection[str]) -> tuple[DiskCounters, ...]:
    """Return the devices that `sar -d` lists: disks and devices on them (dm, md, loop) that were used, no partitions.

    Linux 2.6 has eleven columns; 4.18 added discards, 5.5 flushes, which are ignored.
    """
    disks = []
    for line in _lines(content):
        row = line.split()
        device = row[2].decode("utf-8", "replace") if len(row) >= 14 else ""
        if _as_in_sys(device) not in known:
            continue
        reads, _, read, read_ms, writes, _, written, write_ms, _, busy, queued = map(count, row[3:14])
        discards, _, discarded, discard_ms = map(count, row[14:18]) if len(row) >= 18 else (0, 0, 0, 0)
        if reads or writes or discards:
            disks.append(
                DiskCounters(
                    name=name(row[2]),
                    reads=reads,
                    writes=writes,
                    discards=discards,
                    sectors_read=read,
                    sectors_written=written,
                    sectors_discarded=discarded,
                    read_ms=read_ms,
                    write_ms=write_ms,
                    discard_ms=discard_ms,
                    busy=busy,
                    queued=queued,
                )
            )
    return _limited(disks)


def _limited(devices: list[_Parsed]) -> tuple[_Parsed, ...]:
    """Return the devices. Raises ValueError if they are too many."""
    if len(devices) > DEVICES_LIMIT:
        raise ValueError(f"more than {DEVICES_LIMIT} devices")
    return tuple(devices)


def _io(disks: Iterable[DiskCounters]) -> IoCounters:
    """Return the sums of `sar -b`: only whole disks, since devices on disks (dm, md, loop) would count twice."""
    whole = tuple(disks)
    sums = (sum(getattr(disk, field) for disk in whole) for field in IoCounters.__struct_fields__)
    return IoCounters(*(_representable("/proc/diskstats: the sum of all disks", total) for total in sums))


def _nets(content: bytes) -> tuple[NetCounters, ...]:
    """Parse the interfaces in /proc/net/dev; a name ends at the last colon."""
    nets = []
    for line in _lines(content):
        interface, colon, counters = line.rpartition(b":")
        row = counters.split()
        if not colon or len(row) < 12:
            continue
        received, sent = row[:8], row[8:]
        nets.append(
            NetCounters(
                name(interface.strip()),
                *map(count, received[:4]),
                *map(count, sent[:4]),
            )
        )
    return _limited(nets)
