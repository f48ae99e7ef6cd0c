"""Frames and parsers: incomplete input is dropped, hostile input stays text."""

import pytest

from cockpit.hosts.probe import parse
from cockpit.hosts.probe.frames import FILE_LIMIT, Frame, FrameReader
from cockpit.hosts.probe.processes import COMMAND_LIMIT, ProcessTable
from cockpit.hosts.shell import LineReader
from cockpit.model.host.samples import CpuCounters, DiskCounters, HostReading, IoCounters, NetCounters
from tests.data import data_of

DATA = data_of(__file__)

PAGE = 4096

SYSTEM = DATA["system"].encode()


def stat(pid: int, comm: str, state: str = "S", *, group: int = 1, session: int = 1, foreground: int = -1) -> bytes:
    """A line of /proc/PID/stat: nice 0, one thread, 12 and 34 ticks, started 5000 ticks after boot, 8 MiB."""
    return (
        f"{pid} ({comm}) {state} 1 {group} {session} 0 {foreground} 0 0 0 0 0 12 34 0 0 20 0 1 0 5000 8388608 300 1"
    ).encode()


def without(start: bytes) -> bytes:
    """SYSTEM without the lines that start so."""
    return b"".join(line for line in SYSTEM.splitlines(keepends=True) if not line.startswith(start))


def frame(*more: bytes, system: bytes = SYSTEM) -> Frame:
    reader = FrameReader()
    for line in (b"#cockpit begin 1", b"#cockpit disks sda cciss!c0d0", *system.splitlines(), *more):
        assert reader.feed(line + b"\n") is None
    parsed = reader.feed(b"#cockpit end 1\n")
    assert parsed is not None
    return parsed


def process(comm: str, cmdline: bytes = b"") -> Frame:
    lines = [b"/proc/42/stat:" + line for line in stat(42, comm).split(b"\n")]
    return frame(*lines, b"/proc/42/statm:2048 300 200 1 0 100 0", b"/proc/42/cmdline:" + cmdline)


def read_all(parsed: Frame) -> HostReading:
    return parse.reading(parsed, ProcessTable(PAGE, 100).feed(parsed))


def test_system_counters() -> None:
    read = parse.reading(frame(), probe_cpu=0.002)
    assert (read.uptime, read.wall, read.forks) == (1579.44, 1700001579.44, 18308)
    assert (read.cpu.user, read.cpu.steal, read.cpu.guest_nice) == (100, 3, 0)
    assert read.load == (8.37, 3.06, 1.21)
    memory = read.memory
    assert (memory.total, memory.available, memory.reclaimable, memory.swap_free) == (24684084, 24201932, 165812, 5)
    assert read.processes == () and read.probe_cpu == 0.002
    assert parse.reading(frame(system=without(b"/proc/meminfo:MemAvailable"))).memory.available is None
    assert parse.probe_seconds(frame(), 100) == pytest.approx(0.53), "with the children of the probe's shell"


def test_disks_and_layered_devices_are_separate() -> None:
    """Each whole disk is counted once."""
    read = parse.reading(frame(b"#cockpit disks sda cciss!c0d0 sdb", b"#cockpit layered dm-0"))
    sda, cciss, layered = read.disks
    assert sda == DiskCounters("sda", 100, 30, 7, 2000, 400, 500, 9, 9, 9, 9, 9)
    assert cciss == DiskCounters("cciss/c0d0", 1, 2, 0, 10, 20, 0, 0, 0, 0, 0, 0)
    assert layered.name == "dm-0"
    assert read.io == parse.reading(frame()).io == IoCounters(101, 32, 7, 2010, 420)


def test_cores_interfaces_and_tasks() -> None:
    read = parse.reading(frame())
    assert [core.user for core in read.cores] == [60, 0, 40]
    assert read.cores[1] == CpuCounters(*[0] * 8)
    assert read.nets == (
        NetCounters("lo", 5000, 50, 0, 0, 5000, 50, 0, 0),
        NetCounters("eth0:1", 70000, 700, 1, 2, 80000, 800, 3, 4),
    )
    assert (read.running, read.blocked, read.hidden) == (3, 1, False)
    assert parse.reading(frame(b"#cockpit hidden")).hidden


@pytest.mark.parametrize(
    ("text", "clock"),
    [("1700000000.25", (1700000000.25, 0.0)), ("1700000000.%N", (1700000000.505, 0.505)), ("17.\n", (17.505, 0.505))],
)
def test_clock_without_fraction_has_error_bound(text: str, clock: tuple[float, float]) -> None:
    assert parse.wall_clock(text) == clock


def test_unchanged_processes_are_kept() -> None:
    table = ProcessTable(PAGE, 100)
    first = process("apache2", cmdline=b"apache2\0-k\0start\0")
    [row] = table.feed(first)
    # 42 is unchanged, 43 is new; processes that are not listed have exited.
    lines = (
        b"/proc/43/stat:" + stat(43, "apache2"),
        b"/proc/43/statm:2048 30 20",
        b"#cockpit there 42",
        b"#cockpit there 43",
    )
    kept, fresh = table.feed(frame(*lines))
    assert kept is row
    assert (fresh.pid, fresh.rss) == (43, 30 * PAGE)
    [title] = table.feed(frame(b"/proc/42/cmdline:apache2: bye", b"#cockpit there 42"))
    assert (title.command, title.rss) == ("apache2: bye", row.rss)
    assert table.feed(frame(b"#cockpit there")) == ()


def test_pss_is_unknown_until_all_processes_are_read() -> None:
    table = ProcessTable(PAGE, 100)
    table.feed(process("apache2"))
    assert table.pss is None
    table.feed(frame(b"/proc/42/smaps_rollup:Pss:     300 kB", b"#cockpit there 42"))
    assert table.pss == 300 * 1024
    table.feed(frame(b"/proc/43/stat:" + stat(43, "x"), b"/proc/43/statm:1 1 1 0 0 0 0", b"#cockpit there 42 43"))
    assert table.pss is None
    # A defunct process has no memory.
    table.feed(frame(b"/proc/43/statm:0 0 0 0 0 0 0", b"#cockpit there 42 43"))
    assert table.pss == 300 * 1024


def test_process_row() -> None:
    [row] = read_all(process("apache2", cmdline=b"/usr/sbin/apache2\0-k\0start\0")).processes
    assert (row.pid, row.ppid, row.start, row.comm, row.threads) == (42, 1, 5000, "apache2", 1)
    assert (row.utime, row.stime, row.vsz, row.rss, row.shared) == (12, 34, 8388608, 300 * 4096, 200 * 4096)
    assert row.command == "/usr/sbin/apache2 -k start"


@pytest.mark.parametrize("comm", ["a b", "x) S 1 (y", ")", "(", "new\nline", "42 (apache2) R 9"])
def test_comm_may_contain_any_text(comm: str) -> None:
    [row] = read_all(process(comm)).processes
    shown = comm.replace("\n", " ")
    assert (row.comm, row.stat, row.start, row.command) == (shown, "S", 5000, f"[{shown}]")


@pytest.mark.parametrize(("state", "ids", "nice", "threads", "flags"), DATA["stat_column"])
def test_stat_column(state: str, ids: dict[str, int], nice: int, threads: int, flags: str) -> None:
    fields = stat(42, "x", state, **ids).replace(b"20 0 1 0 5000", b"20 %d %d 0 5000" % (nice, threads))
    [row] = read_all(frame(b"/proc/42/stat:" + fields, b"/proc/42/statm:1 1 1 0 0 0 0")).processes
    assert (row.stat, row.command) == (flags, "[x] <defunct>" if state == "Z" else "[x]")


def test_process_that_exited_while_read_is_skipped() -> None:
    assert read_all(frame(b"/proc/42/stat:" + stat(42, "x"))).processes == ()


def test_command_line_cannot_forge_counters() -> None:
    title = [b"x\0\x1b[31m", b"#cockpit end 1", b"/proc/stat:cpu 9 9 9 9 9 9 9 9 9 9", b"/proc/43/stat:43 (evil) R"]
    read = read_all(process("x", cmdline=b"\n/proc/42/cmdline:".join(title)))
    assert read.cpu.user == 100
    assert [row.pid for row in read.processes] == [42]
    assert read.processes[0].command.split("\n")[0] == "x \x1b[31m"


def test_long_and_invalid_command_lines() -> None:
    read = process("x", cmdline=b"y" * 1_000_000)
    assert len(read.files["/proc/42/cmdline"]) == FILE_LIMIT
    assert len(read_all(read).processes[0].command) == COMMAND_LIMIT
    [row] = read_all(process("x", cmdline=b"caf\xe9\0\xff\0")).processes
    assert row.command == "caf\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("missing", [b"/proc/stat:cpu", b"/proc/stat:btime", b"/proc/uptime", b"/proc/meminfo"])
def test_incomplete_frame_error_names_file(missing: bytes) -> None:
    with pytest.raises(ValueError, match=missing.partition(b":")[0].decode()):
        parse.reading(frame(system=without(missing)))


def test_incomplete_frames_are_dropped() -> None:
    reader = FrameReader()
    lines = [
        b"/proc/stat:cpu before any frame\n",
        b"#cockpit end 1\n",
        b"#cockpit begin 1\n",
        b"/proc/uptime:1 1\n",
        b"#cockpit begin 2\n",
        b"Welcome to web1!\n",
        b"/proc/uptime:2 2\n",
        b"#cockpit end 1\n",
        b"#cockpit end 2\n",
        b"#cockpit begin x\n",
        b"#cockpit end x\n",
    ]
    assert [reader.feed(line) for line in lines] == [None] * len(lines)
    reader.feed(b"#cockpit begin 3\n")
    reader.feed(b"/proc/uptime:3 3\n")
    reader.feed(b"You have new mail.\n")
    parsed = reader.feed(b"#cockpit end 3\n")
    assert parsed is not None
    assert parsed.files == {"/proc/uptime": b"3 3\n"}


async def test_overlong_lines_are_truncated() -> None:
    chunks = [b"on", b"e\ntwo\nthr", b"x" * 50, b"y" * 50, b"\n\nlast"]

    async def read(_: int) -> bytes:
        return chunks.pop(0) if chunks else b""

    lines = LineReader(read, limit=10)
    assert [await lines.readline() for _ in range(6)] == [b"one\n", b"two\n", b"thrxxxxxxx\n", b"\n", b"last", b""]
