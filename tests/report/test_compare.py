"""Comparison of two recordings, runs or time ranges; a partial read equals a fold of all events."""

import json
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from cockpit.analysis.comparison import compare
from cockpit.analysis.verdicts.outcome import Outcome
from cockpit.analysis.verdicts.sides import Side, side_of_segments
from cockpit.analysis.words.comparison import bars
from cockpit.cli import main
from cockpit.model.errors import UsageError
from cockpit.model.events import AnyEvent, ChangeBegun, ChangeEnded, RunEnded, RunStarted
from cockpit.model.fold.fold import fold, fold_all
from cockpit.model.fold.load import cut
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import Stage
from cockpit.model.state import State
from cockpit.model.tick import Tick
from cockpit.model.tls import TlsParameters
from cockpit.recording.reader import Recording, last_state
from cockpit.recording.writer import RecordingWriter
from cockpit.report.comparison import CompareJson, compare_json, comparison_text
from cockpit.session.selectors import is_recording, parse_source, run_of, side_of
from tests.data import data_of
from tests.recording.test_pages import record_pages
from tests.session.events import PLAN, small_session
from tests.study import sessions

DATA = data_of(__file__)
HANDSHAKES = ("full_handshakes", "resumed_handshakes")


def recorded(path: Path, events: list[AnyEvent]) -> Path:
    writer = RecordingWriter(path)
    writer.record(events)
    writer.close()
    assert not writer.trouble
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("compare") / "small.cockpit", list(small_session()))


def open_side(text: str) -> Side:
    source = parse_source(text)
    with Recording(source.path) as recording:
        return side_of(recording, source, text)


def open_run(text: str) -> Side:
    source = parse_source(text)
    with Recording(source.path) as recording:
        return run_of(recording, source, text)


def test_recordings_runs_and_time_ranges_are_recognized(file: Path, tmp_path: Path) -> None:
    assert parse_source(f"{file}#2").run == 2
    assert parse_source(f"{file}@10s..20s").time_range == ("10s", "20s")
    assert parse_source(f"{file}#x").run is None
    odd = file.with_name("a#1")
    odd.touch()
    assert parse_source(str(odd)).path == odd
    assert parse_source(f"{odd}#2") == (odd, 2, None)
    assert is_recording(f"{file}#2")
    assert is_recording("gone.cockpit")
    assert not is_recording("http://a/#2")
    profile, plain = tmp_path / "p.toml", tmp_path / "renamed"
    profile.write_text("[target]")
    assert not is_recording(str(profile))
    plain.write_bytes(file.read_bytes())
    assert is_recording(str(plain))


def test_runs_and_time_ranges_are_compared(file: Path) -> None:
    found = compare(open_side(f"{file}@5s..15s"), open_side(f"{file}#2"))
    (setting,) = found.settings
    assert (setting.name, setting.before, setting.after) == ("MaxSpareServers", "10", "30")
    assert found.load == ()
    metrics = {metric.name: metric for metric in found.metrics}
    assert (metrics["completed"].before, metrics["completed"].after) == (2000, 4000)
    assert metrics["rate"].before == pytest.approx(200)
    assert metrics["rate"].change == pytest.approx(0, abs=0.001)
    idle = next(metric for metric in found.hosts["web1"] if metric.name == "cpu.idle")
    assert idle.before == pytest.approx(50, abs=1)
    verdict = found.verdicts[0]
    assert verdict.outcome is Outcome.INCONCLUSIVE
    side = open_side(f"{file}@6s..12s")
    assert side.result.seconds == pytest.approx(6, abs=0.11)
    assert side.result.counts.completed == pytest.approx(1200, abs=20)
    assert side.result.counts.service.count == side.result.counts.completed
    assert side.knobs == {"MaxSpareServers": "10"}


def test_invalid_sides_are_refused(file: Path) -> None:
    for side, problem in DATA["invalid_sides_are_refused_cases"]:
        with pytest.raises(UsageError, match=problem):
            open_side(f"{file}{side}")
    assert [segment.run for segment in open_run(str(file)).segments] == [2], "the last run is the default"
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
            counts = {"sent": done, "completed": done, "statuses": {200: done, 400: int(n == 0)}, "service": times}
            events.append(Tick(t=start + 0.1, start=start, run=run, worker=0, **counts))
        events.append(RunEnded(t=begin + 60, run=run, reason="completed"))
    return events


def test_verdict_has_interval(tmp_path: Path) -> None:
    file = recorded(tmp_path / "two.cockpit", two_rates(200, 600))
    found = compare(open_side(f"{file}#1"), open_side(f"{file}#2"))
    verdict = found.verdicts[0]
    rate = verdict.headline
    assert rate is not None and rate.low is not None and rate.high is not None
    assert (verdict.outcome, rate.name) == (Outcome.BETTER, "rate")
    assert 0.5 < rate.low < 2 < rate.high < 6
    assert "rate ×3.0 (" in comparison_text(found)
    assert [(one.name, one.before, one.after) for one in found.errors] == [("status 400", 1, 1)]
    # Two time ranges of the same run do not differ.
    same = compare(open_side(f"{file}@1s..31s"), open_side(f"{file}@31s..61s"))
    assert same.verdicts[0].outcome in (Outcome.EQUIVALENT, Outcome.INCONCLUSIVE)


def test_other_tls_parameters_are_a_difference(tmp_path: Path) -> None:
    def side(cipher: str) -> Side:
        parameters = TlsParameters("TLSv1.3", cipher, alpn="h2")
        ticks = {"full_handshakes": {parameters.key: 2}, "resumed_handshakes": {parameters.key: 3}}
        events = [replace(event, **ticks) if isinstance(event, Tick) else event for event in small_session()]
        return open_side(f"{recorded(tmp_path / cipher, events)}#1")

    first, second = side("AES"), side("CHACHA")
    comparison = compare(first, second)
    assert {"tls.full", "tls_resumed.p99"} <= {metric.name for metric in comparison.metrics}
    differences = {each.name: (each.before, each.after) for each in comparison.environment}
    assert differences["TLS"] == ("TLSv1.3 AES, ALPN h2", "TLSv1.3 CHACHA, ALPN h2")
    full, resumed = (sum(getattr(each, name) for each in first.state.seconds) for name in HANDSHAKES)
    assert full > 0 and resumed == 1.5 * full


def test_load_levels_are_compared_at_same_load(tmp_path: Path) -> None:
    levels = tuple(Stage(duration=10, concurrency=number) for number in (10, 20))
    plan = replace(PLAN, stages=levels, duration=None)
    events: list[AnyEvent] = []
    for event in small_session():
        if isinstance(event, RunStarted):
            event = replace(event, plan=plan)
        elif isinstance(event, Tick):
            event = replace(event, stage=int(event.start - (5 if event.run == 1 else 35) >= 10))
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


def test_text_has_all_sections_and_json_matches_schema(file: Path) -> None:
    text = comparison_text(compare(open_side(f"{file}#2"), open_side(f"{file}@5s..15s")))
    for piece in ("MaxSpareServers", "p99.9", "web1", "cpu.idle", "inconclusive", "█", "before  "):
        assert piece in text
    assert all(len(line) < 200 for line in text.splitlines())
    found = compare_json(compare(open_side(f"{file}@5s..15s"), open_side(f"{file}#2")))
    assert msgspec.convert(msgspec.to_builtins(found), CompareJson) == found
    assert sum(found.distribution.before) == pytest.approx(1)
    assert len(found.distribution.edges) == len(found.distribution.before) + 1
    assert "CompareJson" in msgspec.json.schema(CompareJson)["$defs"]
    overlaid = [bars(1.0, 0.5, 8), bars(0.25, 0.5, 8), bars(0.0, 0.001, 4), bars(0.0, 0.0, 4)]
    assert overlaid == ["████▀▀▀▀", "██▄▄    ", "▄   ", "    "]


def test_different_loads_are_refused(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = replace(PLAN, concurrency=40)
    events = [replace(event, plan=plan) if isinstance(event, RunStarted) else event for event in small_session()]
    sides = f"{file}#2", f"{recorded(tmp_path / 'doubled.cockpit', events)}#2"
    assert main(["compare", *sides]) == 2
    refused = capsys.readouterr()
    assert refused.out == ""
    assert "different load (concurrency 20 → 40); compare with --force" in refused.err
    assert main(["compare", *sides, "--force", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["load"] == ["concurrency 20 → 40"]
    assert main(["compare", *sides, "--force"]) == 0
    assert "! the load differs: concurrency 20 → 40" in capsys.readouterr().out


def test_versions_of_http_are_compared(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = replace(PLAN, http="2", streams=10)
    events = [replace(event, plan=plan) if isinstance(event, RunStarted) else event for event in small_session()]
    sides = f"{file}#2", f"{recorded(tmp_path / 'http2.cockpit', events)}#2"
    assert main(["compare", *sides, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["load"] == []
    assert main(["compare", *sides]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"protocol +HTTP/1.1 +.*HTTP/2, 10 streams per connection", printed)
    assert "c=20 h2×10" in printed or "HTTP/2 · 10 streams per connection" in printed


@pytest.fixture
def paged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small session in short pages."""
    record_pages(tmp_path / "s.cockpit", list(small_session()), monkeypatch)
    return tmp_path / "s.cockpit"


def cut_at(events: Sequence[AnyEvent], instants: Sequence[float]) -> State:
    """Fold all events, with segments that end at these times."""
    state, waiting = State(), list(instants)
    for event in events:
        while waiting and event.t >= waiting[0]:
            state = cut(state, waiting.pop(0))
        state = fold(state, event)
    return state


def test_time_range_equals_fold_of_all_events(paged: Path) -> None:
    with Recording(paged) as recording:
        for first, last in ((6.0, 12.0), (15.0, 24.0), (36.5, 50.0), (41.0, 44.25)):
            text = f"{paged}@{first}s..{last}s"
            recording.annotate(last - 1, "a note")
            side = side_of(recording, parse_source(text), text)
            folded = cut_at(list(recording.events()), (first, last))
            segments = [part for part in folded.segments if part.last > part.start and first <= part.start < last]
            assert segments and side == replace(side_of_segments(folded, segments, text), state=side.state)


def test_study_progress_is_read_from_last_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = list(sessions.events(sessions.STUDY, (1, 2, 3), {"few": 400.0, "more": 500.0}))
    record_pages(tmp_path / "s.cockpit", events, monkeypatch)
    with Recording(tmp_path / "s.cockpit") as recording:
        anchor = recording.latest_checkpoint(recording.end)
        assert anchor.number > 0 and anchor.state.study is not None
        assert last_state(recording) == fold_all(events)


def test_corrupt_events_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = recorded(tmp_path / "s.cockpit", list(small_session()))
    for damaged in (False, True):
        for command, reads in DATA["corrupt_events_are_reported_cases"]:
            assert main(command.replace("FILE", str(path)).split()) == 0
            lines = [line for line in capsys.readouterr().err.splitlines() if "damaged" in line]
            assert len(lines) == (2 * reads if damaged else 0), command
            range_of_event = r"cockpit: s\.cockpit: 1 event from 00:00:0\d to 00:00:0\d is damaged"
            assert all(re.match(range_of_event, line) for line in lines)
        alter(path, "UPDATE events SET body = x'00ff' WHERE seq IN (10, 20)")


def alter(path: Path, statement: str) -> None:
    database = sqlite3.connect(path)
    database.execute(statement)
    database.commit()
    database.close()


def test_damaged_series_are_reported_by_html_report(paged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alter(paged, "UPDATE pages SET series = x'00ff' WHERE first = 1")
    assert main(["report", str(paged), "--format", "html"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("cockpit: s.cockpit: ticks and samples from 00:00:00 to ")
    assert captured.err.count("\n") == 1
    assert captured.out.startswith("<!doctype html>")
