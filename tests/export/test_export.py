"""Exports of a recording in formats of other tools, each parsed by a library for that format."""

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from pyarrow import parquet  # type: ignore[import-untyped]

from cockpit.cli import main
from cockpit.cli.export_formats import export_formats
from cockpit.export.gauges import gauge_of
from cockpit.export.hlog import HlogWriter, encoded
from cockpit.export.openmetrics import openmetrics
from cockpit.export.parquet import series_parquet
from cockpit.export.series import host_metrics_at, series_csv
from cockpit.metrics.catalogue import SAMPLE_METRICS, SECOND_METRICS
from cockpit.metrics.results import run_result
from cockpit.model.errors import UsageError
from cockpit.model.events import AnyEvent, HostSample, decode
from cockpit.model.fold.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.state import State
from cockpit.report.run import run_text
from cockpit.report.run_json import run_json
from tests.report.test_compare import recorded
from tests.session.events import small_session


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("export") / "small.cockpit", list(small_session()))


def exported(file: Path | str, output: Path, *flags: str) -> str:
    assert main(["export", str(file), "-o", str(output), *flags]) == 0
    return output.read_text()


def csv_rows(file: Path, folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(exported(file, folder / "x.csv"))))


def parquet_of(state: State) -> Any:
    return parquet.read_table(io.BytesIO(*series_parquet(state)))


def test_jsonl_has_a_line_per_event(file: Path, tmp_path: Path) -> None:
    lines = exported(file, tmp_path / "x.jsonl").splitlines()
    assert [decode(line) for line in lines] == list(small_session())
    assert json.loads(lines[0])["event"] == "session_started"


def test_csv_has_a_row_per_second(file: Path, tmp_path: Path) -> None:
    rows = csv_rows(file, tmp_path)
    assert [int(row["t_s"]) for row in rows] == list(range(61))
    assert rows[10]["utc"] == "2023-11-14T22:13:30Z"
    loaded = rows[10]
    assert (loaded["run"], loaded["segment"]) == ("1", "1")
    assert float(loaded["rate_per_s"]) == pytest.approx(200, rel=0.01)
    assert float(loaded["web1.cpu.idle_percent"]) == pytest.approx(50, abs=1)
    assert loaded["web1.processes.count"] == "5"
    assert (rows[20]["run"], rows[20]["segment"]) == ("1", "2")
    assert (rows[40]["run"], rows[40]["segment"]) == ("2", "3")
    assert rows[30]["run"] == rows[30]["completed"] == rows[30]["web1.cpu.idle_percent"] == ""
    assert sum(int(row["completed"] or 0) for row in rows) == 8000
    assert {row[name] for row in rows for name in row if ".cgroup." in name} == {""}, "no control group"
    page = tmp_path / "x.html"
    assert main(["report", str(file), "-o", str(page)]) == 0 and "control group" not in page.read_text()


METRICS = {metric.column: metric for metric in (*SECOND_METRICS, *SAMPLE_METRICS)}
FIRST = next(small_session())
GROUP = {"version": 2, "cpu": 0, "periods": 100, "throttled": 10, "quota": 1500, "memory": 256, "limit": 1024}


def with_a_group() -> list[AnyEvent]:
    """The small session on a host whose server has a control group of its own: 1.5 CPUs, 1 MiB."""
    events: list[AnyEvent] = []
    for event in small_session():
        if isinstance(event, HostSample):
            since = round(1000 * event.t)
            grown = GROUP | {"cpu": 500 * since, "periods": 100 + since // 100, "throttled": 10 + since // 500}
            counters = {f"cgroup.{name}": value for name, value in grown.items()} | {"cgroup.waits_cpu": 250 * since}
            event = replace(event, reading=replace(event.reading, counters=counters))
        events.append(event)
    return events


def test_the_control_group_of_the_server_is_in_every_export(tmp_path: Path) -> None:
    file = recorded(tmp_path / "group.cockpit", with_a_group())
    rows = csv_rows(file, tmp_path)
    expected = {
        "cpu_percent": 50,
        "quota_percent": 150,
        "throttled_percent": 20,
        "scpu_percent": 25,
        "kbmemory_KiB": 256,
        "kblimit_KiB": 1024,
    }
    for name, value in expected.items():
        assert float(rows[10][f"web1.cgroup.{name}"]) == pytest.approx(value, rel=0.05), name
    assert rows[10]["web1.cgroup.sio_percent"] == rows[0]["web1.cgroup.cpu_percent"] == ""
    families = text_string_to_metric_families(exported(file, tmp_path / "x.openmetrics"))
    found = {family.name: family.samples[-1].value for family in families if family.samples}
    state = fold_all(with_a_group())
    latest = host_metrics_at(state.hosts["web1"], 10)
    table = parquet_of(state)
    for name, value in expected.items():
        gauge = gauge_of(METRICS[f"cgroup.{name}"])
        assert found[gauge.name] == pytest.approx(gauge.value(value), rel=0.05)
        assert latest[f"cgroup.{name}"] == pytest.approx(value, rel=0.05)
        assert table.column(f"web1.cgroup.{name}")[10].as_py() == pytest.approx(value, rel=0.05)
    result = run_result(state, 1)
    metrics = run_json(result).hosts["web1"]
    for name, value in {"cpu": 50, "quota": 150, "throttled": 20, "scpu": 25, "kbmemory": 256, "memory": 25}.items():
        assert metrics[f"cgroup.{name}"] == pytest.approx(value, rel=0.05)
    assert re.search(r"\n  cgroup .*%scpu 25.0%.*%cpu 50.0%", run_text(result))
    page = tmp_path / "x.html"
    assert main(["report", str(file), "-o", str(page)]) == 0
    for title in ("control group", "memory of the control group", "tasks of the control group that waited"):
        assert f"<figcaption>{title}<" in page.read_text()


def test_csv_marks_stalls_and_has_no_formulas() -> None:
    state = fold_all(small_session())
    silent = LoadSecond(second=10, start=10.0, end=11.0, in_flight=5)
    lines = series_csv(replace(state, closed_seconds=(*state.seconds[:9], silent, *state.seconds[10:]), filling=()))
    marked = [row for row in csv.DictReader(lines) if row["stalled"] == "1"]
    assert [(row["t_s"], row["in_flight"], row["completed"]) for row in marked] == [("10", "5", "0")]
    title = next(series_csv(fold_all([replace(FIRST, hosts=(HostConfig(name="=cmd|' /C calc'!A0"),))])))
    assert "'=cmd" in title
    assert ",=cmd" not in title


def test_openmetrics_have_csv_values_at_end_of_each_second(file: Path, tmp_path: Path) -> None:
    text = exported(file, tmp_path / "x.openmetrics")
    rows = csv_rows(file, tmp_path)
    assert text.endswith("\n# EOF\n")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {family.type for family in families.values()} == {"gauge"}
    wall = 1_700_000_000
    for title in ("rate_per_s", "generator.saturated", "web1.cpu.idle_percent", "web1.processes.count"):
        of_host = title.startswith("web1.")
        gauge = gauge_of(METRICS[title.removeprefix("web1.")])
        family = families[gauge.name]
        assert (family.unit, family.documentation) == (gauge.unit, gauge.help)
        samples = family.samples
        expected = [(wall + int(row["t_s"]) + 1, gauge.value(float(row[title]))) for row in rows if row[title]]
        assert [(float(sample.timestamp), sample.value) for sample in samples] == expected and len(expected) > 30
        of_run = [{"run": row["run"], "segment": row["segment"]} for row in rows if row[title]]
        labels = [{"host": "web1"}] * len(of_run) if of_host else of_run
        assert [sample.labels for sample in samples] == [{"session": FIRST.name, **others} for others in labels]
    events = [replace(FIRST, name='a"b\\c\nd'), *list(small_session())[1:]]
    escaped = list(text_string_to_metric_families("".join(openmetrics(fold_all(events)))))
    assert {sample.labels["session"] for family in escaped for sample in family.samples} == {'a"b\\c·d'}
    assert list(text_string_to_metric_families("".join(openmetrics(fold_all([FIRST])))))


def test_parquet_has_csv_values_with_types(file: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.parquet"
    assert main(["export", str(file), "-o", str(output)]) == 0
    table = parquet.read_table(output)
    rows = csv_rows(file, tmp_path)
    assert table.column_names == list(rows[0])
    types = {name: str(table.schema.field(name).type) for name in table.column_names}
    assert types["utc"] == "timestamp[ms, tz=UTC]" and types["stalled"] == "bool" and types["completed"] == "int64"
    assert types["web1.cpu.idle_percent"] == "double" and types["web1.memory.used_bytes"] == "int64"
    assert len(rows) == table.num_rows
    for values, row in zip(table.to_pylist(), rows, strict=True):
        assert f"{values.pop('utc'):%Y-%m-%dT%H:%M:%SZ}" == row["utc"]
        for name, value in values.items():
            assert value == (float(row[name]) if row[name] else None), name


def test_parquet_of_large_numbers_and_without_pyarrow(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = fold_all(small_session())
    seconds = (replace(state.seconds[0], completed=1 << 70), *state.seconds[1:])
    large, normal = (
        parquet_of(each).column("completed").null_count
        for each in (replace(state, closed_seconds=seconds, filling=()), state)
    )
    assert large == normal + 1
    assert parquet_of(fold_all([FIRST])).num_rows == 1
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["export", str(file), "-o", str(tmp_path / "x.parquet")]) == 2
    error = (
        "cockpit: --format parquet: pyarrow is not installed; install the extra 'parquet': see cockpit help install\n"
    )
    assert capsys.readouterr().err == error
    assert not (tmp_path / "x.parquet").exists()


def intervals_of(path: Path) -> list[HdrHistogram]:
    """Return the histograms of a log, read by HdrHistogram's own reader."""
    reader = HistogramLogReader(str(path), HdrHistogram(1, 1 << 43, 3))
    found = []
    while (interval := reader.get_next_interval_histogram()) is not None:
        found.append(interval)
    reader.close()
    return found


@given(st.lists(st.integers(0, (1 << 53) - 1), max_size=40), st.integers(1, 1 << 40))
def test_histograms_are_encoded_as_by_the_library(values: list[int], times: int) -> None:
    own = Histogram.of(values)
    own = Histogram(own.indices, own.counts * times, own.total_ns * times, own.min_ns, own.max_ns)
    theirs = HdrHistogram.decode(encoded(own))
    found = {index: theirs.get_count_at_index(index) for index in own.indices.tolist()}
    assert list(found.values()) == own.counts.tolist() and theirs.get_total_count() == own.count


def test_hlog_has_histograms_of_single_run(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "x.hlog"
    exported(f"{file}#2", output)
    segments = [segment for segment in fold_all(small_session()).segments if segment.run == 2]
    expected = Histogram.merged(segment.counts.service for segment in segments)
    assert sum(each.get_total_count() for each in intervals_of(output)) == expected.count == 4000
    assert main(["export", str(file), "--format", "hlog"]) == 2
    assert "has 2 runs; choose one as FILE#1" in capsys.readouterr().err
    assert main(["export", f"{file}#3", "--format", "hlog"]) == 2
    assert "no run 3; the recording has 2" in capsys.readouterr().err


def test_hlog_of_running_session_has_its_percentiles(tmp_path: Path) -> None:
    events = list(small_session())
    writer = HlogWriter(tmp_path / "run.hlog")
    for event in events:
        writer.feed([event])
    writer.close()
    assert writer.trouble == ""
    intervals = intervals_of(tmp_path / "run.hlog")
    whole = HdrHistogram(1, 1 << 43, 3)
    for interval in intervals:
        whole.add(interval)
    assert (len(intervals), whole.get_total_count()) == (40, 8000)
    result = run_result(fold_all(events), 1)
    assert abs(whole.get_value_at_percentile(99) / 1e9 - result.counts.service.percentile(99)) < 0.0002
    for path, problem in (("none/run.hlog", "cannot be written"), ("run.hlog", "exists already")):
        with pytest.raises(UsageError, match=problem):
            HlogWriter(tmp_path / path)
    assert intervals_of(tmp_path / "run.hlog"), "the older file is kept"
    writer = HlogWriter(tmp_path / "full.hlog")
    writer._file.close()
    writer._file = Path("/dev/full").open("w")  # noqa: SIM115
    writer.feed(events[:3])
    writer.close()
    assert writer.trouble.endswith("full.hlog: No space left on device")


def test_screen_as_svg_and_cast(file: Path, tmp_path: Path) -> None:
    svg = exported(file, tmp_path / "x.svg", "--at", "12s", "--size", "240x30")
    root = ElementTree.fromstring(svg)
    text = "".join(root.itertext()).replace("\xa0", " ")
    assert "00:00:12" in text
    assert "REPLAY PAUSED" in text
    assert not re.search(r"href|@import|@font-face|url\((?!#)", svg)
    table = exported(file, tmp_path / "y.svg", "--at", "30s", "--keys", "v")
    assert "p90" in "".join(ElementTree.fromstring(table).itertext()).replace("\xa0", " ")
    flags = ("--at", "8s", "--until", "12s", "--every", "2s", "--size", "100x30")
    head, *events = map(json.loads, exported(file, tmp_path / "x.cast", *flags).splitlines())
    assert (head["version"], head["width"], head["height"]) == (2, 100, 30)
    assert head["timestamp"] == 1_700_000_008
    assert [at for at, _, _ in events] == [0.0, 2.0, 4.0, 6.0]
    assert {kind for _, kind, _ in events} == {"o"}
    first = events[0][2]
    # The cursor is hidden until the end.
    assert first.startswith("\x1b[?25l\x1b[2J") and events[-1][2] == "\x1b[?25h"
    for (_, _, text), clock in zip(events, ("00:00:08", "00:00:10", "00:00:12"), strict=False):
        assert clock in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    # Only changed lines are drawn again.
    assert 0 < len(events[1][2]) < len(first)
    # A range without load.
    flags = ("--at", "-32s", "--until", "-28s", "--every", "2s")
    _, *events = map(json.loads, exported(file, tmp_path / "x.cast", *flags).splitlines())
    assert [at for at, _, _ in events] == [0.0, 2.0, 4.0, 6.0]
    assert "00:00:30" in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", events[1][2])


def test_invalid_flags_are_refused_with_single_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for flags, message in (
        ("", f"no format; add --format {'|'.join(export_formats())}, or"),
        ("--format parquet", "--format parquet: binary; write to a file: -o FILE.parquet"),
        ("--format openmetrics --keys p", "--keys: only for cast, svg, not for openm"),
        ("--format csv --at 3s", "--at: only for cast, svg, not for csv"),
        ("--format svg --at 2h", "--at: outside the recording, which is 60 s long"),
        ("--format svg --size 9x9", "--size 9x9: allowed: 20x5 to 500x200"),
        ("--format svg --size big", "--size 'big': write it as 120x40"),
        ("--format cast --at 9s --until 5s", "must be after the start"),
        ("--format cast --every 1ms", "--every: more than 20000 frames"),
    ):
        assert main(["export", str(file), *flags.split()]) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.out == ""
