"""Text of sar as a host: the same intervals as the JSON of sadf, in any locale; and subsets of the activities."""

import json
import os
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from cockpit.analysis.words.timeline import marker_text
from cockpit.imports.formats import ForeignRequest
from cockpit.imports.host_samples import COUNTERS
from cockpit.imports.runs import run_of
from cockpit.imports.sar_text import is_sar_text, parse_sar
from cockpit.imports.session import ForeignHost, session_of
from cockpit.imports.sysstat import SysstatHost, parse_sysstat
from cockpit.metrics.results import run_result
from cockpit.metrics.values import metric_value
from cockpit.model.fold.fold import fold_all
from cockpit.model.host.state import HostState
from tests.commands import cockpit
from tests.imports.test_session import BY_TOOL
from tests.waiting import wait_until

# As sar 12.6 prints `sar -u -r -f FILE`: an activity after the other, each with its averages.
TEXT = (Path(__file__).parent / "results" / "sar.txt").read_text()


def read(text: str, offset: float = 0.0) -> SysstatHost:
    return parse_sar(text.splitlines(keepends=True), offset)


def host_of(host: SysstatHost) -> HostState:
    return fold_all(session_of("x", 0.0, None, [ForeignHost("web1", host, "x.txt")])).hosts["web1"]


def times(host: SysstatHost) -> list[str]:
    return [f"{one.timestamp.date} {one.timestamp.time}" for one in host.statistics]


SIZE = 1 << 18
EXPECTED = [f"2026-11-24 14:05:{second}" for second in (10, 20, 30)]


def test_a_subset_has_its_metrics_and_no_others() -> None:
    assert is_sar_text(TEXT.splitlines()[0])
    found = read(TEXT)
    assert (found.nodename, found.release, found.number_of_cpus) == ("web1.example.com", "6.1.0-18-amd64", 2)
    assert times(found) == EXPECTED and [one.timestamp.interval for one in found.statistics] == [10, 10, 10]
    state = fold_all(session_of("x", 0.0, None, [ForeignHost("web1", found, "x.txt")]))
    host = state.hosts["web1"]
    point = host.points[-1]
    assert point.cpu is not None and (point.cpu.user, point.cpu.system, point.cpu.idle) == (40, 10, 50)
    # The total is not in the table: 20.00% of it are 200000 KiB.
    assert point.memory.total == 1_000_000 * 1024 and point.memory.available == 780_000 * 1024
    assert host.sar["ram.kbmemused"] == 220_000 and host.sar["ram.memused"] == pytest.approx(22)
    assert point.io is None and point.net is None
    assert not {"tasks.proc", "queue.runq_sz", "paging.fault"} & set(host.sar)
    lacks = "tasks (-w), I/O (-b), load average (-q), processes"
    assert f"not in the file, shown as 0 or none: {lacks}" in marker_text(state.markers[0])


LOCALES: dict[str, Callable[[str], str]] = {
    "ISO": lambda text: text.replace("11/24/26", "2026-11-24"),
    "en_US": lambda text: re.sub(
        r"^14:(..:..)    ", r"02:\1 PM ", text.replace("11/24/26", "11/24/2026"), flags=re.MULTILINE
    ),
    "en_GB": lambda text: text.replace("11/24/26", "24/11/26"),
    "de_DE": lambda text: re.sub(r"(\d)\.(\d\d)\b(?!\.)", r"\1,\2", text.replace("Average:", "Durchschn.:")).replace(
        "11/24/26", "24.11.2026"
    ),
    "fr_FR": lambda text: text.replace("Average:", "Moyenne :").replace("11/24/26", "24/11/2026"),
    "ja_JP": lambda text: text.replace("Average:", "平均値:").replace("11/24/26", "2026年11月24日"),
    "zh_CN": lambda text: re.sub(
        r"^14:05:(..)", r"14时05分\1秒", text.replace("11/24/26", "2026年11月24日"), flags=re.M
    ),
    "ko_KR": lambda text: re.sub(
        r"^14:05:(..)", r"14시 05분 \1초", text.replace("11/24/26", "2026년 11월 24일"), flags=re.M
    ),
    "zh_HK": lambda text: re.sub(
        r"^14:05:(..)", r"下午 02時05分\1秒 UTC", text.replace("11/24/26", "2026年11月24日 星期二"), flags=re.M
    ),
    "ar_EG": lambda text: re.sub(r"^14:05:(..)", r"UTC 02:05:\1 م", text.replace("11/24/26", "24/11/2026"), flags=re.M),
    "es_MX": lambda text: re.sub(r"^14:05:(..)", r"02:05:\1 p. m.", text.replace("11/24/26", "24/11/26"), flags=re.M),
    "fi_FI": lambda text: re.sub(r"^14:05:", "14.05.", text, flags=re.MULTILINE),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("locale", LOCALES)
def test_the_locale_makes_no_difference(locale: str) -> None:
    assert read(LOCALES[locale](TEXT)).statistics == read(TEXT).statistics


@pytest.mark.parametrize(
    ("date", "text", "day"),
    [
        ("11/12/26", TEXT, "2026-11-12"),
        ("11/12/2026", TEXT, "2026-12-11"),
        ("11/12/2026", LOCALES["en_US"](TEXT), "2026-11-12"),
        ("11-12-2026", TEXT, "2026-12-11"),
        ("13/12/26", TEXT, "2026-12-13"),
    ],
)
def test_day_and_month(date: str, text: str, day: str) -> None:
    changed = re.sub(r"\) \t\S+ ", f") \t{date} ", text, count=1)
    assert times(read(changed))[0].startswith(day)


def test_times_are_of_the_offset_and_may_pass_midnight() -> None:
    assert times(read(TEXT, 3600.0))[0] == "2026-11-24 13:05:10"
    assert times(read(TEXT, -10 * 3600.0))[0] == "2026-11-25 00:05:10"
    late = TEXT.replace("14:05:00", "23:59:50").replace("14:05:10", "23:59:59")
    late = late.replace("14:05:20", "00:00:09").replace("14:05:30", "00:00:19")
    assert times(read(late)) == ["2026-11-24 23:59:59", "2026-11-25 00:00:09", "2026-11-25 00:00:19"]
    noon = LOCALES["en_US"](TEXT).replace("02:05:00 PM", "12:00:00 AM").replace("02:05:10 PM", "12:00:10 AM")
    noon = noon.replace("02:05:20 PM", "11:59:00 AM").replace("02:05:30 PM", "12:00:00 PM")
    assert times(read(noon))[-2:] == ["2026-11-24 11:59:00", "2026-11-24 12:00:00"]


def test_headers_repeat_and_a_restart_begins_anew() -> None:
    head, cpu, memory = TEXT.split("\n\n")
    title, first, second, third, _ = cpu.splitlines()
    later = title.replace("14:05:00", "14:05:20")
    repeated = read("\n".join((head, "", title, first, second, "", later, third, "")))
    assert repeated.statistics == read(f"{head}\n\n{cpu}\n").statistics
    restart = "14:05:15       LINUX RESTART\t(2 CPU)"
    boot = title.replace("14:05:00", "14:05:25")
    fourth = third.replace("14:05:30", "14:05:40")
    host = host_of(read("\n".join((head, "", title, first, restart, "", boot, third, fourth, ""))))
    assert [point.cpu is not None for point in host.points] == [False, False, True]
    assert memory.startswith("14:05:00    kbmemfree")


def test_a_table_that_is_cut_off_is_left_out_and_older_memory_is_read() -> None:
    cut = TEXT[: TEXT.index("14:05:30       480000")]
    assert all(one.memory is None for one in read(cut).statistics)
    swap = "\n14:05:00    kbswpfree kbswpused  %swpused  kbswpcad   %swpcad\n14:05:10    0    0    0.00\n"
    with pytest.raises(ValueError, match="line 16: 3 columns instead of 5"):
        read(TEXT + swap)
    # sysstat 11: no kbavail, and kbmemused and kbmemfree are all of the memory.
    title = "14:05:00 kbmemfree kbmemused %memused kbbuffers kbcached kbcommit %commit kbactive kbinact kbdirty"
    rows = (f"14:05:{second} 480000 520000 52.00 50000 150000 600000 50.00 90000 80000 700" for second in (10, 20, 30))
    head, cpu, _ = TEXT.split("\n\n")
    point = host_of(read("\n".join((head, cpu, title, *rows)))).points[-1]
    assert point.memory.total == 1_000_000 * 1024 and point.memory.free == 480_000 * 1024


def test_devices_have_a_row_each() -> None:
    rows = "\n".join(
        f"14:05:{second}         {name}     15.00     68.00     16.00      0.00      5.60      0.06      4.00      2.50"
        for second in (10, 20, 30)
        for name in ("vda", "0")
    )
    title = "14:05:00          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util"
    pretty = "\n".join(" ".join((time, *rest, name)) for time, name, *rest in map(str.split, rows.splitlines()))
    pretty_title = "14:05:00  tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util DEV"
    for table in (f"{title}\n{rows}\n", f"{pretty_title}\n{pretty}\n"):
        disks = host_of(read(f"{TEXT}\n{table}")).disks
        assert [(disk.name, disk.tps, disk.rkb, disk.await_, disk.util) for disk in disks] == [
            (name, 15, 68, pytest.approx(4), 2.5) for name in ("vda", "0")
        ]
    table = "14:05:00 IFACE rxpck/s txpck/s rxkB/s txkB/s rxcmp/s txcmp/s rxmcst/s %ifutil\n"
    table += "".join(f"14:05:{second} eth0 10 20 30 40 0 0 0 0.5\n" for second in (10, 20, 30))
    table += "\n14:05:00 %scpu-10 %scpu-60 %scpu-300 %scpu\n"
    table += "".join(f"14:05:{second} 1 2 3 0.5\n" for second in (10, 20, 30))
    table += "\n14:05:00 tps rtps wtps dtps bread/s bwrtn/s bdscd/s\n"
    table += "".join(f"14:05:{second} 15 12 2 1 136 32 0\n" for second in (10, 20, 30))
    point = host_of(read(f"{TEXT}\n{table}")).points[-1]
    assert (point.net.rxpck, point.net.txpck, point.net.rxkb) == (10, 20, pytest.approx(30))
    assert (point.io.tps, point.io.rtps, point.io.wtps, point.io.bread, point.io.bwrtn) == (15, 12, 2, 136, 32)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT.split("\n\n")[0], "no CPU utilization .sar -u.; write it with sadf -j FILE -- -A"),
        (
            TEXT.replace("11/24/26", "today"),
            "unknown date format 'today'; add the day of the first row: --date 2026-11-24",
        ),
        (TEXT.replace("11/24/26", "99/99/99"), "unknown date format .99/99/99.; add the day"),
        (TEXT.replace("11/24/26", f"11/{1 << 64}/26"), "unknown date format .11/18446744073709551616/26.; add the day"),
        (TEXT.replace("14:05:20   ", "14:04:00   ", 1), "line 5: the time jumps back; write it with TZ=UTC"),
        (TEXT.replace("14:05:20   ", "14:65:20   ", 1), "line 5: '14:65:20' is not a time"),
        (TEXT.replace("     30.00", "      3.0k", 1), "line 5: '3.0k' is not a number"),
        (
            TEXT.replace("60.00\n14:05:30", "60.00 1\n14:05:30"),
            "line 5: '14:05:20 all' is no known time, or the row has other columns than its header",
        ),
        (TEXT.replace("490000    790000", "490000.5 790000"), "Expected `int`.*write it with sadf"),
        (TEXT + TEXT, "line 14: a second file starts here"),
        (TEXT.replace("     30.00", "  99999.00"), "Expected `float` <= "),
        (TEXT.replace("22.00     50000", "90.00     50000"), "the total memory is ambiguous"),
        (TEXT.replace("all", "0"), "CPU 'all' is missing"),
        (TEXT.replace("(2 CPU)", "(99999 CPU)"), "Expected `int` <= "),
        ("\n".join(TEXT.splitlines()[:4]), "fewer than two intervals"),
    ],
)
def test_what_does_not_fit_is_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        host_of(read(text))


def test_a_line_takes_linear_time() -> None:
    """No pattern backtracks."""
    for character in "0.:,%A \t":
        for line in (f"Linux {character * SIZE}", f"14:05:10 {character * SIZE}", character * SIZE):
            assert not is_sar_text(line)
            with pytest.raises(ValueError, match=r"CPU|second file|columns|number"):
                read(TEXT.splitlines(keepends=True)[0] + line)


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "sar.txt").write_text(TEXT)
    done = cockpit("import", "sar.txt", "-o", "x.cockpit", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "sar.txt: text of sar, from 2026-11-24 on (--date), times read as UTC (--utc-offset)" in done.stderr
    # A run of 10 s, an hour ahead of UTC.
    hits = "response-time,offset,status-code\n" + "".join(f"0.5,{n},200\n" for n in range(10))
    (tmp_path / "hey.csv").write_text(hits)
    flags = ["--host", "web1=sar.txt", "--start", "2026-11-24T13:05:12Z", "-o", "both.cockpit"]
    done = cockpit("import", "hey.csv", *flags, cwd=tmp_path)
    assert done.returncode == 2 and "the load was at another time" in done.stderr
    done = cockpit("import", "hey.csv", *flags, "--utc-offset", "+01:00", cwd=tmp_path)
    assert done.returncode == 0 and "times read as UTC+1 h" in done.stderr, done.stderr
    [found] = json.loads(cockpit("report", "both.cockpit", "--json", cwd=tmp_path).stdout)
    host = found["hosts"]["web1"]
    assert host["cpu.idle"] == pytest.approx(55, abs=6) and host["memory.total"] == 1_000_000 * 1024
    assert "io.tps" not in host and "tasks.cswch" not in host
    done = cockpit("import", "sar.txt", "--utc-offset", "1h", cwd=tmp_path)
    assert done.returncode == 2 and "write it as +01:00" in done.stderr


def test_memory_that_a_file_lacks_is_unknown(tmp_path: Path) -> None:
    head, cpu, _ = TEXT.split("\n\n")
    (tmp_path / "cpu.txt").write_text(f"{head}\n\n{cpu}\n")
    assert cockpit("import", "cpu.txt", "-o", "x.cockpit", cwd=tmp_path).returncode == 0
    lines = cockpit("export", "x.cockpit", "--format", "csv", cwd=tmp_path).stdout.splitlines()
    last = dict(zip(lines[0].split(","), lines[-1].split(","), strict=True))
    assert last["web1.cpu.idle_percent"] == "50.0"
    assert last["web1.memory.used_bytes"] == last["web1.io.tps_per_s"] == ""
    host = ForeignHost("web1", read(f"{head}\n\n{cpu}\n"), "x.txt")
    began = host.host.statistics[0].epoch
    run = run_of([ForeignRequest(began + n / 2, 0.1, 200) for n in range(40)], BY_TOOL["vegeta"])
    result = run_result(fold_all(session_of("x", 0.0, run, [host])), 1)
    assert metric_value(result, "web1.memory.used") is None and metric_value(result, "web1.io.tps") is None
    assert metric_value(result, "web1.cpu.idle") == pytest.approx(55)


@pytest.mark.lab
@pytest.mark.parametrize("environment", [{"LC_ALL": "C"}, {"S_TIME_FORMAT": "ISO"}], ids=["C", "ISO"])
def test_a_file_of_this_machine_as_text_and_as_json(tmp_path: Path, environment: dict[str, str]) -> None:
    file = tmp_path / "sa"
    subprocess.run(["sar", "-o", str(file), "1", "3"], stdout=subprocess.DEVNULL, check=True)
    found = read(_printed(["sar", "-A", "-f", str(file)], environment | {"TZ": "UTC"}))
    expected = parse_sysstat(_printed(["sadf", "-j", str(file), "--", "-A"], {}).splitlines(keepends=True))
    assert found.nodename == expected.nodename and found.number_of_cpus == expected.number_of_cpus
    by_time = {one.timestamp.time: one for one in expected.statistics}
    assert len(found.statistics) >= 2
    # The text has no sectors, and the older name of a column once.
    unprinted = {"rd_sec": None, "wr_sec": None, "dc_sec": None, "avgqu_sz": 0.0}
    for ours in found.statistics:
        theirs = by_time[ours.timestamp.time]
        # Of paging only what becomes a counter is read from the text.
        paging = theirs.paging and {name: rate for name, rate in theirs.paging.items() if name in COUNTERS}
        assert ours.disk == [replace(disk, **unprinted) for disk in theirs.disk]
        # Intervals differ by the rounding of the printed times.
        assert abs(ours.timestamp.interval - theirs.timestamp.interval) <= 1
        other = {"timestamp": 0, "psi": 0, "disk": 0}
        assert asdict(ours) | other == asdict(replace(theirs, paging=paging)) | other
        for resource in ("psi_cpu", "psi_io", "psi_mem"):
            assert getattr(ours.psi, resource) == getattr(theirs.psi, resource)


def _printed(command: list[str], environment: dict[str, str]) -> str:
    """The output; sar ends before its collector has written the last record, so the file is read until it is whole."""

    def output() -> str:
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ) | environment)
        return "" if done.returncode else done.stdout

    return str(wait_until(output))


@given(st.integers(1 << 18, 1 << 28), st.integers(0, 1000))
def test_the_total_of_memory_is_found_within_the_rounding_of_a_share(total: int, seed: int) -> None:
    chance = random.Random(seed)
    lines = []
    for second in (10, 20, 30):
        free, used = round(total * chance.uniform(0.05, 0.5)), round(total * chance.uniform(0.05, 0.3))
        lines.append(f"14:05:{second} {free} {free} {used} {100 * used / total:.2f} 10 {total // 8} 1 1 1 1 1")
    title = "14:05:00 kbmemfree kbavail kbmemused %memused kbbuffers kbcached kbcommit %commit kbactive kbinact kbdirty"
    head, cpu, _ = TEXT.split("\n\n")
    found = read("\n".join((head, cpu, title, *lines)))
    for one in found.statistics:
        assert one.memory is not None and one.memory.total == pytest.approx(total, rel=1.1e-3)
