"""sysstat's intervals as samples of a host: the rates of the session are those of the file; and beside a run."""

import copy
import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cockpit.analysis.words.timeline import marker_text
from cockpit.imports.runs import run_of
from cockpit.imports.session import ForeignHost, session_of
from cockpit.imports.sysstat import SysstatHost, is_sysstat, parse_sysstat
from cockpit.metrics.results import run_result
from cockpit.model.fold.fold import fold_all
from cockpit.model.state import State
from tests.commands import cockpit
from tests.data import data_of
from tests.imports.test_session import BY_TOOL, ForeignRequest

DATA = data_of(__file__)

BEGAN = 1_795_469_960
Interval = dict[str, Any]


# What `sadf -j FILE -- -A` of sysstat 12.6 writes about an interval, shortened.
VALUES: Interval = json.loads(Path(__file__).with_name("interval.json").read_text())


def interval(at: float, seconds: int = 10) -> Interval:
    """An interval that ends at `at` (epoch s)."""
    when = datetime.fromtimestamp(at, UTC)
    times = {"date": f"{when:%Y-%m-%d}", "time": f"{when:%H:%M:%S}", "utc": 1, "interval": seconds}
    return copy.deepcopy({"timestamp": times, **VALUES})


def intervals_of(number: int, seconds: int = 10) -> list[Interval]:
    return [interval(BEGAN + seconds * n, seconds) for n in range(number)]


def file_of(intervals: list[Interval]) -> str:
    head = {"nodename": "web1.example.com", "sysname": "Linux", "release": "6.1.0", "machine": "x86_64"}
    host = {**head, "number-of-cpus": 2, "statistics": intervals, "restarts": []}
    return json.dumps({"sysstat": {"hosts": [host]}}, indent="\t")


def parsed(intervals: list[Interval]) -> SysstatHost:
    return parse_sysstat(file_of(intervals).splitlines(keepends=True))


def state_of(intervals: list[Interval]) -> State:
    # A file may be imported long after.
    return fold_all(session_of("x", BEGAN + 1e7, None, [ForeignHost("web1", parsed(intervals), "x.json")]))


def test_rates_and_levels_are_those_of_the_file() -> None:
    state = state_of(intervals_of(4))
    assert state.started is not None and state.started.wall == BEGAN and state.ended and state.t == 30
    host = state.hosts["web1"]
    assert host.facts is not None and (host.facts.hostname, host.facts.cpus) == ("web1.example.com", 2)
    assert host.config.place == "sysstat x.json" and host.condition == "up"
    assert [point.t for point in host.points] == [0, 10, 20, 30]
    first, *others = host.points
    assert first.cpu is None and first.io is None and first.net is None
    for point in others:
        assert point.cpu is not None and point.io is not None and point.net is not None
        cpu = point.cpu
        assert (cpu.user, cpu.system, cpu.iowait, cpu.steal, cpu.idle) == (20.0, 8.0, 1.5, 0.5, 70.0)
        assert (point.io.tps, point.io.rtps, point.io.wtps, point.io.bread, point.io.bwrtn) == (15, 12, 2, 136, 32)
        assert (point.net.rxpck, point.net.txpck) == (7287, 7000)
        assert point.net.rxkb == pytest.approx(28020.34, abs=0.01)
        assert (point.net.errors, point.net.drops) == (1.5, 2)
        assert (point.memory.total, point.memory.available) == (1_000_000 * 1024, 800_000 * 1024)
        assert (point.memory.swap_total, point.memory.swap_used) == (200_000 * 1024, 50_000 * 1024)
        assert (point.load, point.running, point.blocked) == ((1.88, 2.08, 3.35), 4, 1)
    [disk] = host.disks
    assert (disk.name, disk.tps, disk.rkb, disk.wkb, disk.util) == ("vda", 15, 68, 16, 2.5)
    assert (disk.areq_sz, disk.aqu_sz, disk.await_) == (pytest.approx(5.6), pytest.approx(0.06), pytest.approx(4.0))
    assert len(host.cores) == 2 and all(core is not None and core.idle == 70 for core in host.cores)
    # fmt: off
    expected = {
        "paging.pgpgin": 68, "paging.fault": 708, "paging.majflt": 4, "paging.pgscand": 2, "paging.pgsteal": 3,
        "swapping.pswpout": 1.5, "tasks.proc": 2.5, "tasks.cswch": 9417, "tcp.active": 673, "etcp.retrans": 7,
        "pressure.scpu": 88.98, "pressure.sio": 0.25, "pressure.fio": 0.12, "queue.runq_sz": 3,
        "queue.plist_sz": 322, "sockets.totsck": 61, "sockets.tcp_tw": 9, "ram.kbmemused": 200_000,
        "ram.memused": 20, "ram.commit": 50, "ram.kbdirty": 700, "swap.swpused": 25, "swap.swpcad": 2,
    }
    # fmt: on
    assert {name: host.sar[name] for name in expected} == pytest.approx(expected)
    assert "listen.ListenDrops" not in host.sar
    assert "not in the file, shown as 0 or none: processes" in marker_text(state.markers[0])


def without(*keys: str) -> Callable[[Interval], object]:
    def drop(one: Interval) -> None:
        for key in keys:
            *parents, last = key.split(".")
            table = one
            for parent in parents:
                table = table[parent]
            del table[last]

    return drop


def test_files_without_some_activities_are_read() -> None:
    # sysstat 11: -u instead of -u ALL, no pressure, no MemAvailable, and memused with buffers and cache in it.
    intervals = intervals_of(3, 600)
    older = {"user": 20.0, "nice": 0.0, "system": 8.0, "iowait": 1.5, "steal": 0.5, "idle": 70.0}
    for one in intervals:
        without("psi", "network", "paging", "disk", "memory.avail", "swap-pages", "queue.blocked")(one)
        one["cpu-load"] = [{"cpu": "all", **older}]
        one["timestamp"]["time"] = one["timestamp"]["time"].replace(":", "-")
        one["memory"] |= {"memused": 500_000, "memused-percent": 50.0}
    host = state_of(intervals).hosts["web1"]
    point = host.points[-1]
    assert point.cpu is not None and (point.cpu.user, point.cpu.system, point.cpu.idle) == (20, 8, 70)
    assert point.net is None and host.disks == () and host.cores == () and point.memory.total == 1_000_000 * 1024
    assert host.sample is not None and host.sample.interval == 600 and host.config.interval == 600
    assert not {"paging.fault", "pressure.scpu", "tcp.active", "sockets.totsck"} & host.sar.keys()
    # `sadf -j FILE -- -u`: what is lacking is unknown.
    intervals = intervals_of(3)
    for one in intervals:
        without("memory", "queue", "io", "process-and-context-switch", "network", "disk", "psi", "paging")(one)
    host = state_of(intervals).hosts["web1"]
    point = host.points[-1]
    assert point.cpu is not None and point.cpu.idle == 70 and point.io is None and not point.memory.total
    assert not {"ram.kbmemused", "tasks.proc", "tasks.cswch", "queue.runq_sz", "swap.swpused"} & host.sar.keys()


def test_counting_begins_again_after_a_restart() -> None:
    intervals = [interval(BEGAN + at) for at in (0, 10, 20, 95, 105)]
    state = state_of(intervals)
    host = state.hosts["web1"]
    assert [point.cpu is not None for point in host.points] == [False, True, True, False, True]
    assert [marker.kind for marker in state.markers] == ["note", "gap"]
    assert host.points[-1].io is not None and host.points[-1].io.tps == 15


def test_a_host_beside_a_run_is_placed_by_the_clock() -> None:
    requests = [ForeignRequest(BEGAN + 100.25 + n / 10, 0.05, 200) for n in range(300)]
    run = run_of(requests, BY_TOOL["vegeta"])
    host = ForeignHost("web1", parsed(intervals_of(100)), "x.json")
    state = fold_all(session_of("x", 0.0, run, [host]))
    assert state.started is not None and state.started.wall == BEGAN + 89.25
    assert [second.completed for second in state.seconds] == [10] * 30
    assert state.seconds[0].second == 11
    times = [point.t + state.started.wall - BEGAN for point in state.hosts["web1"].points]
    assert times == [pytest.approx(at) for at in (90, 100, 110, 120, 130, 140, 150)]
    result = run_result(state, 1)
    assert result is not None and result.counts.completed == 300
    window = state.segments[-1].hosts["web1"]
    assert window.first.t + state.started.wall == pytest.approx(BEGAN + 100) and window.seconds == 40
    requests = [ForeignRequest(BEGAN + float(n), 0.05, 200) for n in range(60)]
    host = ForeignHost("web1", parsed(intervals_of(4)), "x.json")
    state = fold_all(session_of("x", 0.0, run_of(requests, BY_TOOL["vegeta"]), [host]))
    assert state.hosts["web1"].condition == "lost" and state.hosts["web1"].since == 30
    assert [marker_text(marker) for marker in state.markers if marker.kind == "gap"] == [
        "web1 lost: no samples in the file"
    ]
    with pytest.raises(ValueError, match="lasts 8 days; the maximum is 7"):
        list(session_of("x", 0.0, None, [ForeignHost("web1", parsed(intervals_of(3, 4 * 86_400)), "x.json")]))
    run = run_of([ForeignRequest(BEGAN + 5000.0, 1, 200)], BY_TOOL["vegeta"])
    host = ForeignHost("web1", parsed(intervals_of(3)), "x.json")
    said = "web1: x.json: samples of 2026-11-23 .* UTC; the load was at another time"
    with pytest.raises(ValueError, match=said):
        list(session_of("x", 0.0, run, [host]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("memory.memfree"), "missing required field `memfree`.*write it with sadf -j FILE -- -A"),
        (without("cpu-load"), "no CPU utilization .sar -u.; write it with sadf"),
        (lambda one: one["timestamp"].update(utc=0), "times are local"),
        (lambda one: one["timestamp"].update(date="9998-01-01"), "'9998-01-01' is out of range"),
        (lambda one: one["timestamp"].update(time="x"), "(?i)invalid isoformat"),
        (lambda one: one["timestamp"].update(time="00:00:00"), "not in chronological order"),
        (lambda one: one["memory"].update({"memused-percent": 99.0}), "total memory is ambiguous"),
        (lambda one: one["memory"].update(memfree=-1), "Expected `int` >= 0"),
        (lambda one: one["io"]["io-reads"].update(rtps=1e30), "Expected `float` <= "),
        (lambda one: one["cpu-load"].clear(), "no CPU utilization"),
        (lambda one: one["disk"][0].update({"disk-device": "x" * 65}), "length <= 64"),
    ],
)
def test_what_does_not_fit_is_named(change: Callable[[Interval], object], said: str) -> None:
    intervals = intervals_of(3)
    change(intervals[-1])
    with pytest.raises(ValueError, match=said):
        state_of(intervals)


def test_what_is_no_file_of_sadf_is_refused() -> None:
    assert is_sysstat('{"sysstat": {\n') and is_sysstat('{\n  "sysstat": {\n') and not is_sysstat('{"summary": {')
    with pytest.raises(ValueError, match="fewer than two intervals"):
        parsed([interval(BEGAN)])
    for text in ('{"sysstat": {', '{"sysstat": {"hosts": []}}', '{"sysstat": ' + "[" * 50_000, '{"sysstat": {}}\x00'):
        with pytest.raises(ValueError, match="write it with sadf -j FILE -- -A"):
            parse_sysstat([text])
    with pytest.raises(ValueError, match="larger than 128 MiB; choose a time range: sadf -j FILE -s 14:00:00 -e 15"):
        parse_sysstat(['{"sysstat"', " " * (128 << 20)])


def test_the_command(tmp_path: Path) -> None:
    host, recorded = tmp_path / "sa.json", tmp_path / "sa.cockpit"
    host.write_text(file_of(intervals_of(10)))
    done = cockpit("import", host, "-o", recorded)
    assert done.returncode == 0 and "sa.json: sysstat" in done.stderr
    lines = cockpit("export", recorded, "--format", "csv").stdout.splitlines()
    assert "web1.cpu.idle_percent" in lines[0].split(",") and len(lines) == 92
    load = tmp_path / "vegeta.json"
    line = (
        '{{"attack":"","timestamp":"2026-11-23T21:39:4{}.5Z","code":200,"latency":2000000,"bytes_in":5,"url":"{}"}}\n'
    )
    load.write_text("".join(line.format(n, "http://web1/") for n in range(8)))
    both = tmp_path / "both.cockpit"
    done = cockpit("import", load, "--host", f"web1={host}", "--host", f"db1={host}", "-o", both)
    assert done.returncode == 0, done.stderr
    [result] = json.loads(cockpit("report", both, "--json").stdout)
    assert result["completed"] == 8
    for name in ("web1", "db1"):
        assert result["hosts"][name]["cpu.idle"] == pytest.approx(70), result["hosts"][name]
    again = cockpit("compare", f"{both}#1", f"{both}#1")
    assert "web1 CPU/request" in again.stdout


@pytest.mark.parametrize(("flags", "said"), DATA["what_does_not_fit_together_is_refused"])
def test_what_does_not_fit_together_is_refused(tmp_path: Path, flags: list[str], said: str) -> None:
    (tmp_path / "sa.json").write_text(file_of(intervals_of(3)))
    (tmp_path / "hey.csv").write_text("response-time,offset,status-code\n0.5,1,200\n")
    done = cockpit("import", *flags, "-o", "x.cockpit", cwd=tmp_path)
    assert done.returncode == 2 and said in " ".join(done.stderr.split()) and "Traceback" not in done.stderr
    assert not (tmp_path / "x.cockpit").exists()


@pytest.mark.lab
def test_a_file_of_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "sa"
    subprocess.run(["sar", "-o", str(file), "1", "3"], stdout=subprocess.DEVNULL, check=True)
    text = subprocess.run(["sadf", "-j", str(file), "--", "-A"], capture_output=True, text=True, check=True).stdout
    host = parse_sysstat(text.splitlines(keepends=True))
    state = fold_all(session_of("x", 0.0, None, [ForeignHost("here", host, "sa")]))
    last = json.loads(text)["sysstat"]["hosts"][0]["statistics"][-1]
    point, found = state.hosts["here"].points[-1], state.hosts["here"].sar
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal:"))
    assert point.memory.total == 1024 * int(total.split()[1])
    if last["timestamp"]["interval"] and point.cpu is not None and point.io is not None:
        theirs = next(load for load in last["cpu-load"] if load["cpu"] == "all")
        assert point.cpu.idle == pytest.approx(theirs["idle"], abs=0.1)
        assert point.cpu.user == pytest.approx(theirs["usr"] + theirs["guest"], abs=0.1)
        assert point.io.tps == pytest.approx(last["io"]["tps"], abs=1)
        assert found["tasks.cswch"] == pytest.approx(last["process-and-context-switch"]["cswch"], abs=1)
    assert found["queue.plist_sz"] == last["queue"]["plist-sz"]
