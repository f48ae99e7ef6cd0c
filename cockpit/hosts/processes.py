"""The watched processes over several frames, of which each has only the changes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.hosts.frames import PID_LIMIT, PROCESSES_LIMIT, Frame
from cockpit.hosts.namesakes import Namesakes
from cockpit.hosts.numbers import INTEGER_LIMIT, NAME_BYTES, TIME_LIMIT, count, decimal, signed
from cockpit.hosts.tree_time import Times, TreeTime
from cockpit.model.hosts import ProcessCounters, identity

# Longer command lines are cut: every sample is recorded.
COMMAND_LIMIT = 4096
# Clock ticks after boot at which a process can have started: 500 years of 1024 ticks per second.
_START_LIMIT = 2**44


class _Kept(NamedTuple):
    """The newest content of a process's files, and its counters; None if the files are incomplete."""

    stat: bytes
    statm: bytes
    cmdline: bytes
    rollup: bytes
    user: bytes
    read: ProcessCounters | None
    # Clock ticks of the children that it waited for.
    children: int = 0


_NOTHING = _Kept(b"", b"", b"", b"", b"", None)
_FILES = ("stat", "statm", "cmdline", "smaps_rollup", "status")


class ProcessTable:
    """The processes of one probe. Takes every frame: each has only the changes since the last.

    `has_port`: the target is on this host, so the processes of other servers of the same name are left out."""

    def __init__(self, page: int, hz: int, has_port: bool = False) -> None:
        self._page = page
        self._kept: dict[int, _Kept] = {}
        self._own: tuple[ProcessCounters, ...] = ()
        self._namesakes = Namesakes() if has_port else None
        self._listeners: tuple[int, ...] = ()
        self._time = TreeTime(hz)

    @property
    def cpu_ticks(self) -> int:
        """CPU time of these processes and of the children that they waited for, since the first frame; clock ticks."""
        return self._time.ticks

    def take(self, frame: Frame) -> tuple[ProcessCounters, ...]:
        """The processes in pid order, without those that ended while they were read. Raises ValueError."""
        if frame.there is None:
            self._kept = {}
        pids = sorted(frame.there if frame.there is not None else _pids_of(frame.files))
        self._kept = {pid: self._newest(pid, frame.files) for pid in pids}
        self._own = self._of_target(frame, [kept.read for kept in self._kept.values() if kept.read is not None])
        tree = {
            identity(read): Times(read.ppid, read.utime + read.stime, self._kept[read.pid].children)
            for read in self._own
        }
        self._time.take(tree, _uptime(frame))
        return self._own

    def _of_target(self, frame: Frame, known: list[ProcessCounters]) -> tuple[ProcessCounters, ...]:
        if self._namesakes is None:
            return tuple(known)
        if (listeners := frame.files.get("/proc/net/listeners")) is not None:
            self._listeners = tuple(count(pid, PID_LIMIT) for pid in listeners.split())
        return tuple(self._namesakes.take(known, self._listeners))

    @property
    def left_out(self) -> int | None:
        """See HostReading."""
        return self._namesakes.left_out if self._namesakes else 0

    @property
    def pss(self) -> int | None:
        """Proportional set size of all processes (bytes); None until it was read for each. Raises ValueError."""
        parts = [read.pss for read in self._own if read.rss]
        known = [part for part in parts if part is not None]
        if not parts or len(known) < len(parts):
            return None
        total = sum(known)
        if total >= INTEGER_LIMIT:
            raise ValueError(f"smaps_rollup: {total} bytes cannot be represented")
        return total

    def _newest(self, pid: int, files: Mapping[str, bytes]) -> _Kept:
        new = [files.get(f"/proc/{pid}/{name}") for name in _FILES]
        kept = self._kept.get(pid, _NOTHING)
        if kept is not _NOTHING and new == [None] * len(_FILES):
            return kept
        stat, statm, cmdline, rollup, user = (
            old if text is None else text for old, text in zip(kept[:5], new, strict=True)
        )
        try:
            read = process(pid, stat, statm, cmdline, self._page)
            if read is not None and (user or rollup):
                read = replace(read, user=_text(user.strip()[:NAME_BYTES]), pss=_pss(rollup) if read.rss else None)
        except ValueError as error:
            raise ValueError(f"/proc/{pid}: {error}") from None
        children = kept.children if new[0] is None else _children_ticks(stat)
        return _Kept(stat, statm, cmdline[:COMMAND_LIMIT], rollup, user, read, children)


def _pss(rollup: bytes) -> int | None:
    """Bytes of a line `Pss: 1234 kB`; None without one."""
    words = rollup.split()
    return count(words[1], INTEGER_LIMIT // 1024) * 1024 if len(words) > 1 else None


def _uptime(frame: Frame) -> float:
    """Seconds since boot; 0 if the frame has none, which `parse.reading` reports."""
    try:
        return decimal(frame.files.get("/proc/uptime", b"").split()[0], TIME_LIMIT)
    except (ValueError, IndexError):
        return 0.0


def _children_ticks(stat: bytes) -> int:
    """Clock ticks (user and system) of the children that a process waited for; 0 if the line is cut."""
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
    """The counters of a process from its files; None if they are incomplete. Raises ValueError."""
    sizes = statm.split()
    # The name is in brackets and may contain spaces, brackets and newlines.
    head, closing, tail = stat.rpartition(b")")
    fields = tail.split()
    if not closing or len(fields) < 22 or len(sizes) < 3:
        return None
    comm = _text(head.partition(b"(")[2][:NAME_BYTES])
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
    """The flags that ps prints after the state: < and N (niceness), s, l, and + (foreground), but not L (locked pages),
    which is not in /proc/PID/stat."""
    group, session, foreground, nice, threads = (signed(fields[i]) for i in (2, 3, 5, 16, 17))
    flags = "<" if nice < 0 else "N" if nice > 0 else ""
    flags += "s" if session == pid else ""
    flags += "l" if threads > 1 else ""
    return flags + ("+" if group == foreground else "")


def _command(cmdline: bytes, comm: str, state: str) -> str:
    """As in `ps aux`: the arguments, or the name in brackets without any."""
    # The probe ends the line with a newline, the kernel the last argument with a NUL.
    words = cmdline.rstrip(b"\n\0")[:COMMAND_LIMIT]
    if state == "Z":
        return f"[{comm}] <defunct>"
    return _text(words.replace(b"\0", b" ")) if words else f"[{comm}]"


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
