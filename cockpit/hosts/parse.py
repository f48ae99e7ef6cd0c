"""Frames of the probe turned into counters and facts. Pure; a frame that lacks something raises ValueError."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from cockpit.hosts.frames import Frame
from cockpit.model.hosts import (
    CpuCounters,
    DiskCounters,
    HostFacts,
    HostReading,
    IoCounters,
    MemCounters,
    NetCounters,
    ProcessCounters,
)


def facts(lines: Mapping[str, str]) -> HostFacts:
    """What the probe says of the host before its first frame: `name value` lines."""
    return HostFacts(
        hostname=lines["hostname"],
        kernel=lines["kernel"],
        cpus=int(lines["cpus"]),
        hz=int(lines["hz"]),
        page=int(lines["page"]),
    )


def wall_clock(said: str) -> tuple[float, float]:
    """What `date +%s.%N` printed as (epoch seconds, how far off that may be). A date without %N tells whole seconds.

    Raises ValueError where it is neither.
    """
    seconds, _, fraction = said.strip().partition(".")
    if fraction.isdigit():
        return float(f"{seconds}.{fraction}"), 0.0
    return int(seconds) + 0.5, 0.5


def reading(
    frame: Frame, processes: tuple[ProcessCounters, ...] = (), probe_cpu: float = 0.0, pss: int | None = None
) -> HostReading:
    """All that a frame says, as counters. The wall clock is boot time plus uptime, as ps reckons it: to the second."""
    stat = _table(_file(frame, "/proc/stat"))
    uptime = float(_file(frame, "/proc/uptime").split()[0])
    load = [float(word) for word in _file(frame, "/proc/loadavg").split()[:3]]
    disks = _disks(frame.files.get("/proc/diskstats", b""), frame.disks | frame.layered)
    return HostReading(
        uptime=uptime,
        wall=int(_entry(stat, b"btime", "/proc/stat")[0]) + uptime,
        cpu=_cpu(_entry(stat, b"cpu", "/proc/stat")),
        memory=_memory(_file(frame, "/proc/meminfo")),
        io=_io(disk for disk in disks if _as_in_sys(disk.name) in frame.disks),
        load=(load[0], load[1], load[2]),
        forks=int(_entry(stat, b"processes", "/proc/stat")[0]),
        processes=processes,
        probe_cpu=probe_cpu,
        cores=_cores(stat),
        disks=disks,
        nets=_nets(frame.files.get("/proc/net/dev", b"")),
        running=_number(stat, b"procs_running"),
        blocked=_number(stat, b"procs_blocked"),
        hidden=frame.hidden,
        pss=pss,
    )


def probe_seconds(frame: Frame, hz: int) -> float:
    """CPU time (s) of the probe's processes and of all they have waited for, since they began."""
    own = (content for path, content in frame.files.items() if path.startswith(("/proc/./", "/proc/self/")))
    fields = (content.rpartition(b")")[2].split() for content in own)
    return sum(int(row[i]) for row in fields if len(row) > 14 for i in (11, 12, 13, 14)) / hz


def _file(frame: Frame, path: str) -> bytes:
    content = frame.files.get(path)
    if not content:
        raise ValueError(f"{path} cannot be read")
    return content


def _table(content: bytes) -> dict[bytes, list[bytes]]:
    """Lines as first word -> the other words."""
    rows = (line.split() for line in content.splitlines())
    return {row[0]: row[1:] for row in rows if row}


def _entry(table: dict[bytes, list[bytes]], name: bytes, path: str) -> list[bytes]:
    if not table.get(name):
        raise ValueError(f"{path} has no {name.decode()}")
    return table[name]


def _number(table: dict[bytes, list[bytes]], name: bytes) -> int:
    row = table.get(name)
    return int(row[0]) if row else 0


def _cpu(words: list[bytes]) -> CpuCounters:
    counters = [int(word) for word in words[:10]]
    return CpuCounters(*counters, *[0] * (10 - len(counters)))


def _cores(stat: dict[bytes, list[bytes]]) -> tuple[CpuCounters, ...]:
    """By their numbers; a core that is switched off has no line, and stands as one that never ran."""
    lines = {int(name[3:]): _cpu(words) for name, words in stat.items() if name[:3] == b"cpu" and name[3:].isdigit()}
    never = CpuCounters(*[0] * 8)
    return tuple(lines.get(number, never) for number in range(max(lines, default=-1) + 1))


def _memory(content: bytes) -> MemCounters:
    table = _table(content)

    def kib(name: bytes, otherwise: int = 0) -> int:
        row = table.get(name + b":")
        return int(row[0]) if row else otherwise

    _entry(table, b"MemTotal:", "/proc/meminfo")
    return MemCounters(
        total=kib(b"MemTotal"),
        free=kib(b"MemFree"),
        available=kib(b"MemAvailable", otherwise=kib(b"MemFree")),
        buffers=kib(b"Buffers"),
        cached=kib(b"Cached"),
        reclaimable=kib(b"SReclaimable"),
        shmem=kib(b"Shmem"),
        swap_total=kib(b"SwapTotal"),
        swap_free=kib(b"SwapFree"),
    )


def _as_in_sys(name: str) -> str:
    """A device's name as /sys has it, where a slash is written as `!`."""
    return name.replace("/", "!")


def _disks(content: bytes, known: Collection[str]) -> tuple[DiskCounters, ...]:
    """The devices that `sar -d` lists: disks and what lies upon them (dm, md, loop) that were ever used, no partitions.

    The columns came with time: 2.6 has eleven, 4.18 added those of discards, 5.5 those of flushes, which are left out.
    """
    disks = []
    for line in content.splitlines():
        row = line.split()
        name = row[2].decode("utf-8", "replace") if len(row) >= 14 else ""
        if _as_in_sys(name) not in known:
            continue
        reads, _, read, read_ms, writes, _, written, write_ms, _, busy, queued = (int(word) for word in row[3:14])
        discards, _, discarded, discard_ms = (int(word) for word in row[14:18]) if len(row) >= 18 else (0, 0, 0, 0)
        if reads or writes or discards:
            disks.append(
                DiskCounters(
                    name=name,
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
    return tuple(disks)


def _io(disks: Iterable[DiskCounters]) -> IoCounters:
    """Sums what `sar -b` sums: whole disks, but nothing layered on disks (dm, md, loop), which would count twice."""
    counted = tuple(disks)
    return IoCounters(
        reads=sum(disk.reads for disk in counted),
        writes=sum(disk.writes for disk in counted),
        discards=sum(disk.discards for disk in counted),
        sectors_read=sum(disk.sectors_read for disk in counted),
        sectors_written=sum(disk.sectors_written for disk in counted),
    )


def _nets(content: bytes) -> tuple[NetCounters, ...]:
    """Interfaces as /proc/net/dev lists them; the name ends at the last colon before the figures."""
    nets = []
    for line in content.splitlines():
        name, colon, figures = line.rpartition(b":")
        row = figures.split()
        if not colon or len(row) < 12:
            continue
        received, sent = row[:8], row[8:]
        nets.append(
            NetCounters(
                name.strip().decode("utf-8", "replace"),
                *(int(word) for word in received[:4]),
                *(int(word) for word in sent[:4]),
            )
        )
    return tuple(nets)
