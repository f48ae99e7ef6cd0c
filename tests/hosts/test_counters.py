"""Counters in probe frames, also of the server's control group; requests in access logs."""

import os
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from cockpit.hosts.access_counter import AccessCounter
from cockpit.hosts.probe.counters import CounterTable
from cockpit.hosts.probe.frames import Frame
from tests.data import data_of
from tests.waiting import programs

DATA = data_of(__file__)

PROC = {path: text.encode() for path, text in DATA["proc"].items()}
EXPECTED = DATA["expected"]


def test_frames_update_counters() -> None:
    table = CounterTable()
    table.feed(Frame(number=1, files=PROC))
    assert table.counters == EXPECTED
    assert table.accept == {80: 5, 443: 0}, "sockets of one port are added up"
    assert table.backlog == {80: 511, 443: 128}
    table.feed(Frame(number=2, files={"/proc/vmstat": b"pgfault 14493400\n"}, pids=()))
    assert (table.counters, table.accept) == (EXPECTED | {"pgfault": 14493400}, {80: 5, 443: 0}), "a delta keeps others"
    table.feed(Frame(number=3, files={"/proc/net/tcp": b"01BB 00000001\n"}, pids=()))
    assert table.accept == {443: 1}, "closed listeners are dropped"
    table.feed(Frame(number=4, files={"/proc/vmstat": b"pgfree 4\n"}))
    assert (table.counters, table.accept, table.backlog) == ({"pgfree": 4}, {}, {}), "a full frame drops all others"


@pytest.mark.parametrize(("path", "content"), DATA["invalid_number_is_refused_with_file_name"])
def test_invalid_number_is_refused_with_file_name(path: str, content: str) -> None:
    with pytest.raises(ValueError, match="/proc/"):
        CounterTable().feed(Frame(number=1, files={path: content.encode()}))


@pytest.mark.parametrize("content", [b"", b"\n", b"Tcp:\n", b"Tcp: InSegs\n", b"some\n", b": :\n", b"\xff\xfe 1\n"])
def test_lines_without_counters_are_skipped(content: bytes) -> None:
    table = CounterTable()
    table.feed(Frame(number=1, files=dict.fromkeys(PROC, content) | {"/proc/net/tcp": b"", "/proc/net/backlog": b""}))
    assert table.counters == {}


def test_number_of_ports_is_bounded() -> None:
    ports = b" ".join(b"%04X 00000000" % port for port in range(1, 3000))
    table = CounterTable()
    table.feed(Frame(number=1, files={"/proc/net/tcp": ports}))
    assert len(table.accept) == 256


MISS = b'1.1.1.1 - - [x] "GET / HTTP/1.1" 200 5 "-" "x" 0.010 MISS\n'
HIT = b'1.1.1.1 - - [x] "GET / HTTP/1.1" 200 5 "-" "x" 0.001 HIT\n'
ERROR = b'1.1.1.1 - - [x] "GET / HTTP/1.1" 502 5 "-" "x" 0.030 -\n'
MIN_LINES = 50


def started_counter() -> AccessCounter:
    """A counter after its tail printed one old line."""
    counter = AccessCounter("web1", 0, 0.0)
    counter.feed(ERROR)
    return counter


def test_requests_are_counted_by_status_with_hits_and_durations() -> None:
    counter = started_counter()
    counter.feed(HIT * 3 + MISS[:20])
    assert counter.counts(0.5, MIN_LINES) is None
    counter.feed(MISS[20:] + ERROR)
    counts = counter.counts(2.0, MIN_LINES)
    assert counts is not None
    assert (counts.seconds, counts.lines, counts.statuses) == (2.0, 5, {200: 4, 502: 1})
    assert (counts.hits, counts.lookups, counts.latency.count) == (3, 4, 5)
    assert 0.0299 < counts.latency.percentile(99) < 0.0301
    counts = counter.counts(3.0, MIN_LINES)
    assert counts is not None and (counts.seconds, counts.lines, counts.statuses) == (1.0, 0, {}), "a silent log"


def test_counts_are_late_if_reader_never_waits() -> None:
    counter = started_counter()
    counter.feed(HIT * 1000)
    counter.waited += 0.3
    counts = counter.counts(1.0, MIN_LINES)
    assert counts is not None and not counts.late
    counter.feed(HIT * 1000)
    counter.waited += 0.01
    counts = counter.counts(2.0, MIN_LINES)
    assert counts is not None and counts.late


def test_busy_log_of_unknown_format_counts_lines() -> None:
    counter = AccessCounter("web1", 0, 0.0)
    counter.feed(b"started\n")
    counter.feed(b"line\n" * 10)
    assert counter.counts(1.0, MIN_LINES) is None
    counter.feed(b"line\n" * 1000)
    counts = counter.counts(2.0, MIN_LINES)
    assert counts is not None and (counts.lines, counts.statuses, counter.is_access_log) == (1000, {}, False)


def test_access_log_after_other_lines_is_detected() -> None:
    counter = AccessCounter("web1", 0, 0.0)
    counter.feed(b"")
    counter.feed(b"header\n" * 300 + HIT * 100)
    counts = counter.counts(1.0, MIN_LINES)
    assert counter.is_access_log and counts is not None and counts.statuses[200] >= 50


FIRST, SECOND = "40", "7"
V2 = DATA["v2"]
V2_COUNTERS = {
    "version": 2, "cpu": 7000001, "periods": 50, "throttled": 20, "quota": 1500, "memory": 40960, "limit": 102400,
    "waits_cpu": 4321, "waits_io": 11,
}  # fmt: skip
V1_CPU = {
    "cpu.stat": "nr_periods 50\nnr_throttled 20\nthrottled_time 900\n",
    "cpu.cfs_quota_us": "150000\n",
    "cpu.cfs_period_us": "100000\n",
    "cpuacct.usage": "7000001999\n",
}
V1_MEMORY = {
    "memory.usage_in_bytes": "52428800\n",
    "memory.limit_in_bytes": "104857600\n",
    "memory.stat": "cache 1\ninactive_file 1\ntotal_inactive_file 10485760\n",
}
V1_COUNTERS = {name: value for name, value in V2_COUNTERS.items() if "waits" not in name} | {"version": 1}
UNIT = "/system.slice/nginx.service"


class Host:
    """A folder with /proc of two processes and control groups, which an awk reads."""

    def __init__(self, awk: str, folder: Path) -> None:
        self._awk = awk
        self._folder = folder

    def write(self, group: str, files: dict[str, str]) -> None:
        """Write the files of a folder in the mounted control groups."""
        _write(self._folder / f"cgroup{group}", files)

    def counters(self, groups: str, port: str = "") -> dict[str, int]:
        """Return the counters that the awk program prints for a process with these lines in /proc/PID/cgroup. With a
        port, the other process listens there."""
        return self.counters_by_tick(groups, [(FIRST, SECOND)] * 6, port)[-1]

    def counters_by_tick(self, groups: str, there: list[tuple[str, ...]], port: str = "") -> list[dict[str, int]]:
        """As `counters`, for each tick, in which these processes are there."""
        proc = self._folder / "proc"
        for pid, lines in ((FIRST, "0::/another\n"), (SECOND, groups)):
            known = {"comm": "nginx\n", "stat": f"{pid} (nginx) S 1\n", "statm": "1 1 1\n", "status": "Uid:\t0\t0\n"}
            _write(proc / pid, known | {"cgroup": lines})
        (proc / FIRST / "fd").mkdir(exist_ok=True)
        (proc / FIRST / "fd" / "3").unlink(missing_ok=True)
        (proc / FIRST / "fd" / "3").symlink_to("socket:[77]")
        socket = f"0: 00000000:{port or '0050'} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1\n"
        _write(proc / "net", {"tcp": f"sl local_address\n{socket}"})
        _write(proc, {"stat": "cpu 1\n"})
        _write(proc / "pressure", {"cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"})
        source = (files("cockpit.hosts.probe") / "probe.awk").read_text()
        environment = {
            **os.environ, "patterns": "nginx", "regex": "", "port": port, "nuls": "y", "line_bytes": "100",
            "round": "10", "slow_round": "30", "most_shares": "1", "queue_round": "5",
            "readable": " pressure/cpu net/tcp", "groups": str(self._folder / "cgroup"),
        }  # fmt: skip
        ticks = "".join(
            "\n".join(("list", f"{at}", "changes", "1", "0", *pids, "end\n")) for at, pids in enumerate(there, 1)
        )
        command = [*self._awk.split(), source]
        done = subprocess.run(command, cwd=proc, env=environment, input=ticks, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        table, found = CounterTable(), []
        for frame in done.stdout.split("#cockpit begin ")[1:]:
            lines = "\n".join(line.partition(":")[2] for line in frame.splitlines() if line.startswith("/proc/named:"))
            table.feed(Frame(1, files={"/proc/named": lines.encode()}, pids=()))
            found.append({name.removeprefix("cgroup."): value for name, value in table.counters.items()})
        return found


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


@pytest.fixture(params=programs("awk", "mawk", "gawk", "busybox awk"))
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Host:
    return Host(request.param, tmp_path)


@pytest.mark.parametrize("where", [UNIT, ""], ids=["unit", "container"])
def test_version_2(host: Host, where: str) -> None:
    host.write(where, V2)
    assert host.counters(f"0::{where or '/'}\n") == V2_COUNTERS
    host.write(where, {"cpu.max": "max 100000\n", "memory.max": "max\n"})
    assert host.counters(f"0::{where or '/'}\n") == V2_COUNTERS | {"quota": 0, "limit": 0}


@pytest.mark.parametrize(
    ("lines", "cpu", "usage", "memory"),
    [
        (f"4:memory:{UNIT}\n2:cpu,cpuacct:{UNIT}\n0::/\n", f"cpu,cpuacct{UNIT}", f"cpu,cpuacct{UNIT}", f"memory{UNIT}"),
        # Like Docker: the path is the machine's, the mounted root is the container's group.
        ("4:memory:/docker/ab\n2:cpuacct:/docker/ab\n1:cpu:/docker/ab\n", "cpu", "cpuacct", "memory"),
        ("4:memory:/\n2:cpuacct:/\n1:cpu:/\n", "cpu", "cpuacct", "memory"),
    ],
    ids=["unit", "container", "namespace"],
)
def test_version_1(host: Host, lines: str, cpu: str, usage: str, memory: str) -> None:
    for group, values in ((cpu, V1_CPU), (usage, V1_CPU), (memory, V1_MEMORY)):
        host.write(f"/{group}", values)
    assert host.counters(lines) == V1_COUNTERS
    host.write(f"/{cpu}", {"cpu.cfs_quota_us": "-1\n"})
    host.write(f"/{memory}", {"memory.limit_in_bytes": "9223372036854771712\n"})
    assert host.counters(lines) == V1_COUNTERS | {"quota": 0, "limit": 0}


def test_group_of_target_port_is_read_and_replaces_the_other(host: Host) -> None:
    host.write(UNIT, V2)
    host.write("/another", V2 | {"cpu.max": "30000 100000\n", "cpu.stat": "usage_usec 9000000000\n"})
    assert host.counters(f"0::{UNIT}\n")["quota"] == 1500
    assert host.counters(f"0::{UNIT}\n", port="0050")["quota"] == 300
    found = host.counters_by_tick(f"0::{UNIT}\n", [(SECOND,)] * 5 + [(FIRST,)] * 6)
    assert [one.get("cpu") for one in found] == [7000001] * 5 + [None] + [9000000000] * 5
    assert found[-1]["quota"] == 300


def test_limits_are_sent_again_after_a_restart(host: Host) -> None:
    host.write(UNIT, V2)
    found = host.counters_by_tick(f"0::{UNIT}\n", [(SECOND,)] * 5 + [()] * 5 + [(SECOND,)] * 6)
    assert (found[4], found[9], found[-1]) == (V2_COUNTERS, {}, V2_COUNTERS)


def test_root_group_has_no_counters(host: Host) -> None:
    """The root group has no limits, and its memory is the machine's."""
    host.write("", {"cpu.stat": V2["cpu.stat"]})
    assert host.counters("0::/\n") == {}
    host.write("/memory", V1_MEMORY)
    assert host.counters("4:memory:/\n1:cpu:/\n") == {}
    assert host.counters(f"0::/../..{UNIT}\n") == {}, "group of another namespace"
    host.write("/cpu/x", V1_CPU)
    assert "memory" not in host.counters("4:memory:/\n1:cpu:/x\n"), "memory of the machine"
