"""Frames of the probe turned into counters and facts. Pure; a frame that lacks something raises ValueError."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.hosts.frames import Frame
from cockpit.model.hosts import (
    CpuCounters,
    HostFacts,
    HostReading,
    IoCounters,
    MemCounters,
    ProcessCounters,
)

# Longer command lines are cut: nobody reads on, and every sample is recorded.
COMMAND_LIMIT = 4096


def facts(lines: Mapping[str, str]) -> HostFacts:
    """What the probe says of the host before its first frame: `name value` lines."""
    return HostFacts(
        hostname=lines["hostname"],
        kernel=lines["kernel"],
        cpus=int(lines["cpus"]),
        hz=int(lines["hz"]),
        page=int(lines["page"]),
    )


def reading(frame: Frame, facts: HostFacts, probe_cpu: float = 0.0) -> HostReading:
    """All that a frame says, as counters. The wall clock is boot time plus uptime, as ps reckons it: to the second."""
    stat = _table(_file(frame, "/proc/stat"))
    uptime = float(_file(frame, "/proc/uptime").split()[0])
    load = [float(word) for word in _file(frame, "/proc/loadavg").split()[:3]]
    return HostReading(
        uptime=uptime,
        wall=int(_entry(stat, b"btime", "/proc/stat")[0]) + uptime,
        cpu=_cpu(_entry(stat, b"cpu", "/proc/stat")),
        memory=_memory(_file(frame, "/proc/meminfo")),
        io=_io(frame.files.get("/proc/diskstats", b""), frame.disks),
        load=(load[0], load[1], load[2]),
        forks=int(_entry(stat, b"processes", "/proc/stat")[0]),
        processes=_processes(frame, facts.page),
        probe_cpu=probe_cpu,
    )


def probe_seconds(frame: Frame, hz: int) -> float:
    """CPU time (s) of the probe's shell and of all it has waited for, since it began; 0 where the frame lacks it."""
    own = next((content for path, content in frame.files.items() if path.startswith("/proc/./")), b"")
    if not own:
        return 0.0
    fields = own.rpartition(b")")[2].split()
    return sum(int(fields[i]) for i in (11, 12, 13, 14)) / hz


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


def _cpu(words: list[bytes]) -> CpuCounters:
    counters = [int(word) for word in words[:10]]
    return CpuCounters(*counters, *[0] * (10 - len(counters)))


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


def _io(content: bytes, disks: frozenset[str]) -> IoCounters:
    """Sums the rows that `sar -b` sums: block devices that have a device behind them.

    So whole disks, but no partitions and nothing layered on disks (dm, md, loop), which would count twice.
    In /sys a slash of the name is written as `!`.
    """
    reads = writes = discards = sectors_read = sectors_written = 0
    for line in content.splitlines():
        row = line.split()
        if len(row) < 10 or row[2].decode("utf-8", "replace").replace("/", "!") not in disks:
            continue
        reads += int(row[3])
        sectors_read += int(row[5])
        writes += int(row[7])
        sectors_written += int(row[9])
        discards += int(row[14]) if len(row) > 14 else 0
    return IoCounters(reads, writes, discards, sectors_read, sectors_written)


def _processes(frame: Frame, page: int) -> tuple[ProcessCounters, ...]:
    """The processes of the frame in pid order; one that ended while it was read is left out."""
    pids = sorted(
        int(pid)
        for path in frame.files
        if path.startswith("/proc/") and path.endswith("/stat") and (pid := path[6:-5]).isdigit()
    )
    read = (_process(frame.files, pid, page) for pid in pids)
    return tuple(process for process in read if process is not None)


def _process(files: Mapping[str, bytes], pid: int, page: int) -> ProcessCounters | None:
    sizes = files.get(f"/proc/{pid}/statm", b"").split()
    # The name stands in brackets and may hold spaces, brackets and newlines itself.
    head, closing, tail = files[f"/proc/{pid}/stat"].rpartition(b")")
    fields = tail.split()
    if not closing or len(fields) < 22 or len(sizes) < 3:
        return None
    comm = _text(head.partition(b"(")[2])
    state = _text(fields[0])
    return ProcessCounters(
        pid=pid,
        ppid=int(fields[1]),
        start=int(fields[19]),
        stat=state + _stat_flags(pid, fields),
        comm=comm,
        utime=int(fields[11]),
        stime=int(fields[12]),
        threads=int(fields[17]),
        vsz=int(fields[20]),
        rss=int(sizes[1]) * page,
        shared=int(sizes[2]) * page,
        command=_command(files.get(f"/proc/{pid}/cmdline", b""), comm, state),
    )


def _stat_flags(pid: int, fields: list[bytes]) -> str:
    """What ps prints behind the state: < and N for niceness, s, l, and + for the terminal's foreground.

    ps's L (pages locked in memory) is not in /proc/PID/stat and is left out.
    """
    group, session, foreground, nice, threads = (int(fields[i]) for i in (2, 3, 5, 16, 17))
    flags = "<" if nice < 0 else "N" if nice > 0 else ""
    flags += "s" if session == pid else ""
    flags += "l" if threads > 1 else ""
    return flags + ("+" if group == foreground else "")


def _command(cmdline: bytes, comm: str, state: str) -> str:
    """As under COMMAND of `ps aux`: the arguments, or the name in brackets where there are none."""
    # The probe ends the line with a newline, the kernel the last argument with a NUL.
    words = cmdline.rstrip(b"\n\0")[:COMMAND_LIMIT]
    if state == "Z":
        return f"[{comm}] <defunct>"
    return _text(words.replace(b"\0", b" ")) if words else f"[{comm}]"


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
