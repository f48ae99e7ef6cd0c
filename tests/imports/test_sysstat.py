"""sysstat's intervals as samples of a host: the rates of the session are those of the file; and beside a run."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.imports.runs import run_of
from cockpit.imports.session import ForeignHost, session_of
from cockpit.imports.sysstat import SysstatHost, is_sysstat, parse_sysstat
from cockpit.model.fold import fold_all
from cockpit.model.metrics import run_result
from cockpit.model.state import State
from tests.commands import cockpit
from tests.imports.test_session import BY_TOOL, ForeignRequest

BEGAN = 1_795_469_960
Interval = dict[str, Any]


# fmt: off
def interval(at: float, seconds: int = 10) -> Interval:
    """An interval that ends at `at` (epoch s), as `sadf -j FILE -- -A` of sysstat 12.6 writes it, shortened."""
    when = datetime.fromtimestamp(at, UTC)
    cpu = {"nice": 0.0, "iowait": 1.5, "steal": 0.5, "irq": 0.0, "soft": 3.0, "guest": 0.0, "gnice": 0.0, "idle": 70.0}
    return {
        "timestamp": {"date": f"{when:%Y-%m-%d}", "time": f"{when:%H:%M:%S}", "utc": 1, "interval": seconds},
        "cpu-load": [{"cpu": name, "usr": 20.0, "sys": 5.0, **cpu} for name in ("all", "0", "1")],
        "process-and-context-switch": {"proc": 2.5, "cswch": 9417.0},
        "interrupts": [{"intr": "sum", "all": 3623.0}],
        "swap-pages": {"pswpin": 0.0, "pswpout": 1.5},
        "paging": {
            "pgpgin": 68.0, "pgpgout": 12.0, "fault": 708.0, "majflt": 4.0, "pgfree": 5795.0,
            "pgscank": 1.0, "pgscand": 2.0, "pgsteal": 3.0, "vmeff-percent": 100.0,
        },
        "io": {
            "tps": 15.0,
            "io-reads": {"rtps": 12.0, "bread": 136.0},
            "io-writes": {"wtps": 2.0, "bwrtn": 32.0},
            "io-discard": {"dtps": 1.0, "bdscd": 0.0},
        },
        "memory": {
            "memfree": 500_000, "avail": 800_000, "memused": 200_000, "memused-percent": 20.0, "buffers": 50_000,
            "cached": 150_000, "commit": 600_000, "commit-percent": 50.0, "active": 90_000, "inactive": 80_000,
            "dirty": 700, "slab": 100_000, "swpfree": 150_000, "swpused": 50_000, "swpcad": 1_000,
        },
        "queue": {"runq-sz": 3, "plist-sz": 322, "ldavg-1": 1.88, "ldavg-5": 2.08, "ldavg-15": 3.35, "blocked": 1},
        "disk": [
            {
                "disk-device": "vda", "tps": 15.0, "rd_sec": 136.0, "wr_sec": 32.0, "dc_sec": 0.0, "rkB": 68.0,
                "wkB": 16.0, "dkB": 0.0, "areq-sz": 5.6, "aqu-sz": 0.06, "await": 4.0, "util-percent": 2.5,
            },
            {"disk-device": "loop0", "tps": 0.0, "rd_sec": 0.0, "wr_sec": 0.0, "await": 0.0, "util-percent": 0.0},
        ],
        "network": {
            "net-dev": [
                {"iface": "lo", "rxpck": 9.0, "txpck": 9.0, "rxkB": 90.0, "txkB": 90.0},
                {"iface": "eth0", "rxpck": 7287.0, "txpck": 7000.0, "rxkB": 28020.34, "txkB": 538.76},
            ],
            "net-edev": [{"iface": "eth0", "rxerr": 1.0, "txerr": 0.5, "coll": 0.0, "rxdrop": 2.0, "txdrop": 0.0}],
            "net-sock": {"totsck": 61, "tcpsck": 43, "udpsck": 2, "rawsck": 1, "ip-frag": 0, "tcp-tw": 9},
            "net-tcp": {"active": 673.0, "passive": 1.0, "iseg": 7287.0, "oseg": 7000.0},
            "net-etcp": {"atmptf": 0.0, "estres": 0.5, "retrans": 7.0, "isegerr": 0.0, "orsts": 3.0},
        },
        "psi": {
            "psi-cpu": {"some_avg10": 51.0, "some_avg60": 61.0, "some_avg300": 60.0, "some_avg": 88.98},
            "psi-io": {"some_avg": 0.25, "full_avg": 0.12},
            "psi-mem": {"some_avg": 0.0, "full_avg": 0.0},
        },
    }
# fmt: on


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
    state = state_of([interval(BEGAN + 10 * n) for n in range(4)])
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
    assert "not in the file, shown as 0 or none: processes" in state.markers[0].text


def without(*keys: str) -> Callable[[Interval], object]:
    def drop(one: Interval) -> None:
        for key in keys:
            *parents, last = key.split(".")
            table = one
            for parent in parents:
                table = table[parent]
            del table[last]

    return drop


def test_an_older_file_without_some_activities() -> None:
    """sysstat 11: -u instead of -u ALL, no pressure, no MemAvailable, and memused with buffers and cache in it."""
    intervals = [interval(BEGAN + 600 * n, 600) for n in range(3)]
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


def test_a_file_of_a_few_activities() -> None:
    """`sadf -j FILE -- -u`: what is lacking is unknown."""
    intervals = [interval(BEGAN + 10 * n) for n in range(3)]
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
    host = ForeignHost("web1", parsed([interval(BEGAN + 10 * n) for n in range(100)]), "x.json")
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


def test_a_host_whose_samples_end_during_the_load_is_lost() -> None:
    requests = [ForeignRequest(BEGAN + float(n), 0.05, 200) for n in range(60)]
    host = ForeignHost("web1", parsed([interval(BEGAN + 10 * n) for n in range(4)]), "x.json")
    state = fold_all(session_of("x", 0.0, run_of(requests, BY_TOOL["vegeta"]), [host]))
    assert state.hosts["web1"].condition == "lost" and state.hosts["web1"].since == 30
    assert [marker.text for marker in state.markers if marker.kind == "gap"] == ["web1 lost: no samples in the file"]


def test_a_host_of_another_time_is_refused() -> None:
    run = run_of([ForeignRequest(BEGAN + 5000.0, 1, 200)], BY_TOOL["vegeta"])
    host = ForeignHost("web1", parsed([interval(BEGAN + 10 * n) for n in range(3)]), "x.json")
    said = "web1: x.json: samples of 2026-11-23 .* UTC; the load was at another time"
    with pytest.raises(ValueError, match=said):
        list(session_of("x", 0.0, run, [host]))


def local(one: Interval) -> None:
    one["timestamp"]["utc"] = 0


def late(one: Interval) -> None:
    one["timestamp"]["date"] = "9998-01-01"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("memory.memfree"), "missing required field `memfree`.*write it with sadf -j FILE -- -A"),
        (without("cpu-load"), "missing required field `cpu-load`"),
        (local, "times are local"),
        (late, "'9998-01-01' is out of range"),
        (lambda one: one["timestamp"].update(time="x"), "(?i)invalid isoformat"),
        (lambda one: one["timestamp"].update(time="00:00:00"), "not in chronological order"),
        (lambda one: one["memory"].update({"memused-percent": 99.0}), "total memory is ambiguous"),
        (lambda one: one["memory"].update(memfree=-1), "Expected `int` >= 0"),
        (lambda one: one["io"]["io-reads"].update(rtps=1e30), "Expected `float` <= "),
        (lambda one: one["cpu-load"].clear(), "CPU 'all' is missing"),
        (lambda one: one["disk"][0].update({"disk-device": "x" * 65}), "length <= 64"),
    ],
)
def test_what_does_not_fit_is_named(change: Callable[[Interval], object], said: str) -> None:
    intervals = [interval(BEGAN + 10 * n) for n in range(3)]
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


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_value_anywhere_gives_a_session_or_one_error(data: st.DataObject) -> None:
    intervals = [interval(BEGAN + 10 * n) for n in range(3)]
    table: Any = intervals[data.draw(st.integers(0, 2))]
    odd = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.just([]))
    while True:
        key = data.draw(st.sampled_from(sorted(table)) if isinstance(table, dict) else st.integers(0, len(table) - 1))
        if not isinstance(table[key], dict | list) or not table[key] or data.draw(st.booleans()):
            table[key] = data.draw(odd)
            break
        table = table[key]
    try:
        state = state_of(copy.deepcopy(intervals))
    except ValueError as error:
        assert str(error)
    else:
        assert state.ended


def test_the_command(tmp_path: Path) -> None:
    host, recorded = tmp_path / "sa.json", tmp_path / "sa.cockpit"
    host.write_text(file_of([interval(BEGAN + 10 * n) for n in range(10)]))
    done = cockpit("import", host, "-o", recorded)
    assert done.returncode == 0 and "sa.json: sysstat" in done.stderr
    lines = cockpit("export", recorded, "--format", "csv").stdout.splitlines()
    assert "web1.cpu.idle_percent" in lines[0].split(",") and len(lines) == 92
    hits = [
        {
            "timestamp": f"2026-11-23T21:39:4{n}.5Z",
            "code": 200,
            "latency": 2_000_000,
            "bytes_in": 5,
            "url": "http://web1/",
        }
        for n in range(8)
    ]
    load = tmp_path / "vegeta.json"
    load.write_text("".join(f'{{"attack":"",{json.dumps(hit, separators=(",", ":"))[1:]}\n' for hit in hits))
    both = tmp_path / "both.cockpit"
    done = cockpit("import", load, "--host", f"web1={host}", "--host", f"db1={host}", "-o", both)
    assert done.returncode == 0, done.stderr
    [result] = json.loads(cockpit("report", both, "--json").stdout)
    assert result["completed"] == 8
    for name in ("web1", "db1"):
        assert result["hosts"][name]["cpu.idle"] == pytest.approx(70), result["hosts"][name]
    again = cockpit("compare", f"{both}#1", f"{both}#1")
    assert "web1 CPU/request" in again.stdout


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["hey.csv", "--host", "web1=sa.json"], "hey.csv: the start of the load is missing; add --start 2026"),
        (["hey.csv", "--host", "web1=sa.json", "--start", "now"], "--start now: write it as 2026-11-24T14:05:00Z"),
        (["hey.csv", "--host", "web1=hey.csv"], "--host web1=hey.csv: not a sysstat file"),
        (["hey.csv", "--host", "web1=none.json"], "none.json: cannot be read: No such file"),
        (["hey.csv", "--host", "web.1=sa.json"], "write NAME=FILE, e.g. web1=sadf.json"),
        (["sa.json", "--host", "web1=sa.json"], "two hosts have this name"),
        (["sa.json", "--target", "http://web1/"], "--target: only for load; sa.json has samples of a host only"),
        (["sa.json", "--utc-offset", "+01:00"], "--utc-offset: only for text of sar; sa.json has times in UTC"),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path: Path, flags: list[str], said: str) -> None:
    (tmp_path / "sa.json").write_text(file_of([interval(BEGAN + 10 * n) for n in range(3)]))
    (tmp_path / "hey.csv").write_text("response-time,offset,status-code\n0.5,1,200\n")
    done = cockpit("import", *flags, "-o", "x.cockpit", cwd=tmp_path)
    assert done.returncode == 2 and said in " ".join(done.stderr.split()) and "Traceback" not in done.stderr
    assert not (tmp_path / "x.cockpit").exists()


def test_a_start_that_is_given_places_a_file_without_one(tmp_path: Path) -> None:
    (tmp_path / "sa.json").write_text(file_of([interval(BEGAN + 10 * n) for n in range(5)]))
    (tmp_path / "hey.csv").write_text("response-time,offset,status-code\n0.5,1,200\n")
    flags = ["--host", "web1=sa.json", "--start", "2026-11-23T21:39:45Z", "-o", "x.cockpit"]
    done = cockpit("import", "hey.csv", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = cockpit("export", "x.cockpit", "--format", "csv", cwd=tmp_path).stdout.splitlines()
    [loaded] = [line for line in lines[1:] if line.split(",")[2]]
    assert loaded.split(",")[1] == "2026-11-23T21:39:45Z"


@pytest.mark.skipif(shutil.which("sar") is None, reason="needs sar and sadf")
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


def test_a_file_that_is_too_large_is_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match="larger than 128 MiB; choose a time range: sadf -j FILE -s 14:00:00 -e 15"):
        parse_sysstat(['{"sysstat"', " " * (128 << 20)])
