"""The watched processes, merged from frames that have only the changes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.hosts.probe.frames import PID_LIMIT, PROCESSES_LIMIT, Frame
from cockpit.hosts.probe.numbers import INTEGER_LIMIT, NAME_BYTES, TIME_LIMIT, count, decimal, signed
from cockpit.hosts.probe.server_filter import ServerFilter
from cockpit.hosts.probe.tree_time import CpuTicks, ProcessTreeTime
from cockpit.model.host.samples import ProcessCounters, identity

# Maximum bytes of a command line, since every sample is recorded.
COMMAND_LIMIT = 4096
# Exclusive limit of a process's start (clock ticks after boot): 500 years at 1024 ticks/s.
_START_LIMIT = 2**44


class _ProcessFiles(NamedTuple):
    """The newest content of a process's files. `counters` None: the files are incomplete."""

    stat: bytes
    statm: bytes
    cmdline: bytes
    rollup: bytes
    user: bytes
    schedstat: bytes
    switches: bytes
    counters: ProcessCounters | None
    # CPU time (clock ticks) of the children that the process waited for.
    children: int = 0


_UNKNOWN = _ProcessFiles(b"", b"", b"", b"", b"", b"", b"", None)
# Files of the kernel, and `switches`, which the probe names itself.
_FILES = ("stat", "statm", "cmdline", "smaps_rollup", "status", "schedstat", "switches")


class ProcessTable:
    """The process table of one probe. Must take every frame, since each has only the changes since the last one.

    `has_port`: the target is on this host, so processes of other servers with the same name are left out."""

    def __init__(self, page: int, hz: int, has_port: bool = False) -> None:
        self._page = page
        self._files: dict[int, _ProcessFiles] = {}
        self._counted: tuple[ProcessCounters, ...] = ()
        self._server_filter = ServerFilter() if has_port else None
        self._listeners: tuple[int, ...] = ()
        self._time = ProcessTreeTime(hz)

    @property
    def cpu_ticks(self) -> int:
        """CPU time (clock ticks) of the counted processes and of children they waited for, since the first frame."""
        return self._time.ticks

    def feed(self, frame: Frame) -> tuple[ProcessCounters, ...]:
        """Return the processes in PID order, without those that ended while they were read. Raises ValueError."""
        if frame.pids is None:
            self._files = {}
        pids = sorted(frame.pids if frame.pids is not None else _pids_of(frame.files))
        self._files = {pid: self._updated(pid, frame.files) for pid in pids}
        complete = [files.counters for files in self._files.values() if files.counters is not None]
        self._counted = self._of_target(frame, complete)
        tree = {
            identity(process): CpuTicks(process.ppid, process.utime + process.stime, self._files[process.pid].children)
            for process in self._counted
        }
        self._time.update(tree, _uptime(frame))
        return self._counted

    def _of_target(self, frame: Frame, processes: list[ProcessCounters]) -> tuple[ProcessCounters, ...]:
        if self._server_filter is None:
            return tuple(processes)
        if (listeners := frame.files.get("/proc/net/listeners")) is not None:
            self._listeners = tuple(count(pid, PID_LIMIT) for pid in listeners.split())
        return tuple(self._server_filter.select(processes, self._listeners))

    @property
    def excluded(self) -> int | None:
        """See HostReading."""
        return self._server_filter.excluded if self._server_filter else 0

    @property
    def pss(self) -> int | None:
        """Proportional set size (bytes) of all processes; None until it was read for each. Raises ValueError."""
        parts = [process.pss for process in self._counted if process.rss]
        known = [part for part in parts if part is not None]
        if not parts or len(known) < len(parts):
            return None
        total = sum(known)
        if total >= INTEGER_LIMIT:
            raise ValueError(f"smaps_rollup: {total} bytes cannot be represented")
        return total

    def _updated(self, pid: int, files: Mapping[str, bytes]) -> _ProcessFiles:
        new = [files.get(f"/proc/{pid}/{name}") for name in _FILES]
        before = self._files.get(pid, _UNKNOWN)
        if before is not _UNKNOWN and new == [None] * len(_FILES):
            return before
        stat, statm, cmdline, rollup, user, schedstat, switches = (
            old if text is None else text for old, text in zip(before[:7], new, strict=True)
        )
        try:
            counters = process(pid, stat, statm, cmdline, self._page)
            if counters is not None and (user or rollup):
                pss = _pss(rollup) if counters.rss else None
                counters = replace(counters, user=_text(user.strip()[:NAME_BYTES]), pss=pss)
            if counters is not None and counters.threads == 1 and schedstat:
                ran, waited, on_cpu = (count(word) for word in schedstat.split()[:3])
                counters = replace(counters, ran=ran, waited=waited, switches=on_cpu, left=_switches(switches))
        except ValueError as error:
            raise ValueError(f"/proc/{pid}: {error}") from None
        children = before.children if new[0] is None else _children_ticks(stat)
        kept = (stat, statm, cmdline[:COMMAND_LIMIT], rollup, user, schedstat, switches)
        return _ProcessFiles(*kept, counters, children)


def _pss(rollup: bytes) -> int | None:
    """Parse a line `Pss: 1234 kB` to bytes; None without a line."""
    words = rollup.split()
    return count(words[1], INTEGER_LIMIT // 1024) * 1024 if len(words) > 1 else None


def _switches(line: bytes) -> tuple[int, int] | None:
    """Parse voluntary and involuntary context switches; None without a line."""
    numbers = [count(word) for word in line.split()]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _uptime(frame: Frame) -> float:
    """Return seconds since boot; 0 if the frame has no uptime, which `parse.reading` reports."""
    try:
        return decimal(frame.files.get("/proc/uptime", b"").split()[0], TIME_LIMIT)
    except (ValueError, IndexError):
        return 0.0


def _children_ticks(stat: bytes) -> int:
    """Return the clock ticks (user and system) of the children that a process waited for; 0 if the line is cut."""
    fields = stat.rpartition(b")")[2].split()
    return sum(count(field) for field in fields[13:15])


def _pids_of(files: Iterable[str]) -> list[int]:
    parts = (path.split("/") for path in files)
    named = (part[2].encode() for part in parts if len(part) == 4 and part[3] == "stat")
    pids = [count(pid, PID_LIMIT) for pid in named if pid.isdigit()]
    if len(pids) > PROCESSES_LIMIT:
        raise ValueError(f"more than {PROCESSES_LIMIT} processes; watch fewer")
    return pids


def process(pid: int, stat: bytes, statm: bytes, cmdline: bytes, page: int) -> ProcessCounters | None:
    """Parse the counters of a process from its files; None if they are incomplete. Raises ValueError."""
    sizes = statm.split()
    # The name is in brackets and may contain spaces, brackets and newlines.
    head, closing, tail = stat.rpartition(b")")
    fields = tail.split()
    if not closing or len(fields) < 22 or len(sizes) < 3:
        return None
    comm = _text(head.partition(b"(")[2][:NAME_BYTES]).replace("\n", " ")
    state = _text(fields[0][:1])
    return ProcessCounters(
        pid=pid,
        ppid=count(fields[1]),
        start=count(fields[19], _START_LIMIT),
        stat=state + _stat_flags(pid, fields),
        comm=comm,
        utime=count(fields[11]),
        stime=count(fields[12]),
        threads=count(fields[17]),
        vsz=count(fields[20]),
        rss=count(sizes[1], INTEGER_LIMIT // page) * page,
        shared=count(sizes[2], INTEGER_LIMIT // page) * page,
        command=_command(cmdline, comm, state),
    )


def _stat_flags(pid: int, fields: list[bytes]) -> str:
    """Return the flags that ps prints after the state: < and N (niceness), s, l, and + (foreground), but not L (locked
    pages), which is not in /proc/PID/stat."""
    group, session, foreground, nice, threads = (signed(fields[i]) for i in (2, 3, 5, 16, 17))
    flags = "<" if nice < 0 else "N" if nice > 0 else ""
    flags += "s" if session == pid else ""
    flags += "l" if threads > 1 else ""
    return flags + ("+" if group == foreground else "")


def _command(cmdline: bytes, comm: str, state: str) -> str:
    """Return the command as in `ps aux`: the arguments, or the name in brackets if there are none."""
    # The probe adds a newline to the line, the kernel a NUL to the last argument.
    words = cmdline.rstrip(b"\n\0")[:COMMAND_LIMIT]
    if state == "Z":
        return f"[{comm}] <defunct>"
    return _text(words.replace(b"\0", b" ")) if words else f"[{comm}]"


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
