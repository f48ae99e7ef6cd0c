"""Comparison of two recordings, runs or time ranges."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import numpy as np
import pytest

from cockpit.analysis.comparison import compare
from cockpit.analysis.comparison_words import bars
from cockpit.analysis.outcome import Outcome
from cockpit.analysis.sides import Side
from cockpit.cli import main
from cockpit.model.errors import UsageError
from cockpit.model.events import AnyEvent, ChangeBegun, ChangeEnded, RunEnded, RunStarted, Tick
from cockpit.model.histogram import Histogram
from cockpit.model.load import Stage
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.report.comparison import CompareJson, compare_json, comparison_text
from cockpit.report.selectors import is_recording, parse_source, run_of, side_of
from tests.session.events import PLAN, small_session


def recorded(path: Path, events: list[AnyEvent]) -> Path:
    writer = RecordingWriter(path)
    writer.record(events)
    writer.close()
    assert not writer.trouble
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("compare") / "small.cockpit", list(small_session()))


OPEN = ExitStack()


@pytest.fixture(scope="module", autouse=True)
def closing() -> Iterator[None]:
    """Keep the opened recordings open until the end of the module."""
    with OPEN:
        yield


def open_side(text: str) -> Side:
    source = parse_source(text)
    return side_of(OPEN.enter_context(Recording(source.path)), source, text)


def open_run(text: str) -> Side:
    source = parse_source(text)
    return run_of(OPEN.enter_context(Recording(source.path)), source, text)


@pytest.fixture(scope="module")
def doubled_load(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small session with twice the connections."""
    plan = msgspec.structs.replace(PLAN, concurrency=40)
    events = [
        msgspec.structs.replace(event, plan=plan) if isinstance(event, RunStarted) else event
        for event in small_session()
    ]
    return recorded(tmp_path_factory.mktemp("compare") / "doubled.cockpit", events)


def test_run_and_time_range_are_parsed_after_file_name(file: Path) -> None:
    assert parse_source(f"{file}#2").run == 2
    assert parse_source(f"{file}@10s..20s").time_range == ("10s", "20s")
    assert parse_source(f"{file}#x").run is None
    odd = file.with_name("a#1")
    odd.touch()
    assert parse_source(str(odd)).path == odd
    assert parse_source(f"{odd}#2") == (odd, 2, None)


def test_recordings_are_recognized(file: Path, tmp_path: Path) -> None:
    assert is_recording(f"{file}#2")
    assert is_recording("gone.cockpit")
    assert not is_recording("http://a/#2")
    profile = tmp_path / "p.toml"
    profile.write_text("[target]")
    assert not is_recording(str(profile))
    plain = tmp_path / "renamed"
    plain.write_bytes(file.read_bytes())
    assert is_recording(str(plain))


def test_two_runs_of_recording_are_compared(file: Path) -> None:
    found = compare(open_side(f"{file}@5s..15s"), open_side(f"{file}#2"))
    assert [(setting.name, setting.before, setting.after) for setting in found.settings] == [
        ("MaxSpareServers", "10", "30")
    ]
    assert found.load == ()
    metrics = {metric.name: metric for metric in found.metrics}
    assert (metrics["completed"].before, metrics["completed"].after) == (2000, 4000)
    assert metrics["rate"].before == pytest.approx(200)
    assert metrics["rate"].change == pytest.approx(0, abs=0.001)
    idle = next(metric for metric in found.hosts["web1"] if metric.name == "cpu.idle")
    assert idle.before == pytest.approx(50, abs=1)
    verdict = found.verdicts[0]
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_time_range_is_cut_at_its_ends(file: Path) -> None:
    side = open_side(f"{file}@6s..12s")
    assert side.result.seconds == pytest.approx(6, abs=0.11)
    assert side.result.counts.completed == pytest.approx(1200, abs=20)
    assert side.result.counts.service.count == side.result.counts.completed
    assert side.knobs == {"MaxSpareServers": "10"}
    # A time range from the first run into the second, over a change.
    with pytest.raises(UsageError, match="a setting was changed between the runs; choose one run, as FILE#1"):
        open_side(f"{file}@6s..50s")


def test_invalid_sides_are_refused(file: Path) -> None:
    with pytest.raises(UsageError, match="#7: no such run; runs of the recording: 1 to 2"):
        open_side(f"{file}#7")
    with pytest.raises(UsageError, match="no counted load; choose a run"):
        open_side(f"{file}@26s..30s")
    with pytest.raises(UsageError, match="empty time range; its end must be after its start"):
        open_side(f"{file}@26s..20s")
    with pytest.raises(UsageError, match="a setting was changed between the runs"):
        open_side(str(file))
    with pytest.raises(UsageError, match="invalid time 'soon'"):
        open_side(f"{file}@soon..20s")


def test_last_run_is_default_if_a_single_run_is_needed(file: Path) -> None:
    assert [segment.run for segment in open_run(str(file)).segments] == [2]
    assert [segment.run for segment in open_run(f"{file}#1").segments] == [1, 1]


def two_rates(first: int, second: int) -> list[AnyEvent]:
    """Return two runs of 60 s with these rates (responses/s) and some noise."""
    noise = np.random.default_rng(5)
    events: list[AnyEvent] = [next(small_session())]
    for run, rate, begin in ((1, first, 1.0), (2, second, 71.0)):
        events.append(RunStarted(t=begin, run=run, plan=PLAN))
        for n in range(600):
            done = max(1, round((rate + noise.normal(0, 10)) / 10))
            times = Histogram.of(noise.lognormal(0, 0.3, done) * 1e9 / rate)
            start = begin + n / 10
            counts = {"sent": done, "completed": done, "statuses": {200: done}, "service": times}
            events.append(Tick(t=start + 0.1, start=start, run=run, worker=0, **counts))
        events.append(RunEnded(t=begin + 60, run=run, reason="completed"))
    return events


def test_verdict_has_interval(tmp_path: Path) -> None:
    file = recorded(tmp_path / "two.cockpit", two_rates(200, 600))
    found = compare(open_side(f"{file}#1"), open_side(f"{file}#2"))
    verdict = found.verdicts[0]
    rate = verdict.headline
    assert rate is not None
    assert (verdict.outcome, rate.name) == (Outcome.BETTER, "rate")
    assert rate.low is not None
    assert rate.high is not None
    assert 0.5 < rate.low < 2 < rate.high < 6
    assert "rate ×3.0 (" in comparison_text(found)
    # Two time ranges of the same run do not differ.
    same = compare(open_side(f"{file}@1s..31s"), open_side(f"{file}@31s..61s"))
    assert same.verdicts[0].outcome in (Outcome.EQUIVALENT, Outcome.INCONCLUSIVE)


def test_load_levels_are_compared_at_same_load(tmp_path: Path) -> None:
    levels = tuple(Stage(duration=10, concurrency=number) for number in (10, 20))
    plan = msgspec.structs.replace(PLAN, stages=levels, duration=None)
    events: list[AnyEvent] = []
    for event in small_session():
        if isinstance(event, RunStarted):
            event = msgspec.structs.replace(event, plan=plan)
        elif isinstance(event, Tick):
            stage = int(event.start - (5 if event.run == 1 else 35) >= 10)
            event = msgspec.structs.replace(event, stage=stage)
        events += [event] if not isinstance(event, ChangeBegun | ChangeEnded) else []
    file = recorded(tmp_path / "levels.cockpit", events)
    found = compare(open_side(f"{file}#1"), open_side(f"{file}#2"))
    assert found.load == ()
    assert [len(side.segments) for side in (found.before, found.after)] == [2, 2]
    assert [verdict.label for verdict in found.verdicts] == ["again · c=10", "again · c=20"]
    # Both runs together are repeats; different load levels are different loads.
    assert len(open_side(str(file)).segments) == 4
    apart = compare(open_side(f"{file}@5s..15s"), open_side(f"{file}@45s..55s"))
    assert apart.load == ("concurrency 10 → 20",)


def test_text_has_all_sections(file: Path) -> None:
    text = comparison_text(compare(open_side(f"{file}#2"), open_side(f"{file}@5s..15s")))
    for piece in ("MaxSpareServers", "p99.9", "web1", "cpu.idle", "inconclusive", "█", "before  "):
        assert piece in text
    assert all(len(line) < 200 for line in text.splitlines())


def test_json_matches_schema(file: Path) -> None:
    found = compare_json(compare(open_side(f"{file}@5s..15s"), open_side(f"{file}#2")))
    assert msgspec.convert(msgspec.to_builtins(found), CompareJson) == found
    assert sum(found.distribution.before) == pytest.approx(1)
    assert len(found.distribution.edges) == len(found.distribution.before) + 1
    assert "CompareJson" in msgspec.json.schema(CompareJson)["$defs"]


def test_different_loads_are_refused(file: Path, doubled_load: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = f"{file}#2", f"{doubled_load}#2"
    assert main(["compare", *sides]) == 2
    refused = capsys.readouterr()
    assert refused.out == ""
    assert "different load (concurrency 20 → 40); compare with --force" in refused.err
    assert main(["compare", *sides, "--force", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["load"] == ["concurrency 20 → 40"]
    assert main(["compare", *sides, "--force"]) == 0
    assert "! the load differs: concurrency 20 → 40" in capsys.readouterr().out


def test_bars_are_overlaid() -> None:
    assert bars(1.0, 0.5, 8) == "████▀▀▀▀"
    assert bars(0.25, 0.5, 8) == "██▄▄    "
    assert bars(0.0, 0.001, 4) == "▄   "
    assert bars(0.0, 0.0, 4) == "    "
