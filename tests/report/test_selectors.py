"""A partial read of a recording gives the same state as a fold of all its events."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.analysis.sides import side_of_segments
from cockpit.cli import main
from cockpit.model.events import AnyEvent
from cockpit.model.fold import fold, fold_all
from cockpit.model.fold_load import cut
from cockpit.model.state import State
from cockpit.recording.reader import Recording, last_state
from cockpit.report.page import page
from cockpit.report.selectors import parse_source, side_of
from tests.recording.test_pages import lab_events, record_pages
from tests.report.test_compare import recorded
from tests.session.events import small_session
from tests.study import sessions

RECORDINGS = Path(__file__).parents[1] / "recordings"
LAB = ("spare-servers", "two-hosts", "under-load")


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


@pytest.mark.parametrize("again", [False, True], ids=["as recorded", "recorded again in short pages"])
@pytest.mark.parametrize("name", LAB)
def test_last_state_equals_fold_of_all_events(
    name: str, again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = RECORDINGS / f"{name}.cockpit"
    if again:
        record_pages(tmp_path / "s.cockpit", lab_events(name), monkeypatch)
        path = tmp_path / "s.cockpit"
    with Recording(path) as recording:
        folded = fold_all(recording.events())
        assert (recording.latest_checkpoint(recording.end).number > 0) >= again
        state = last_state(recording)
        assert state.segments == folded.segments
        assert page(state) == page(folded)
        assert recording.lost == ()


@pytest.mark.parametrize("time_range", [(6.0, 12.0), (15.0, 24.0), (36.5, 50.0), (41.0, 44.25)])
def test_time_range_equals_fold_of_all_events(paged: Path, time_range: tuple[float, float]) -> None:
    text = f"{paged}@{time_range[0]}s..{time_range[1]}s"
    with Recording(paged) as recording:
        recording.annotate(time_range[1] - 1, "a note")
        side = side_of(recording, parse_source(text), text)
        folded = cut_at(list(recording.events()), time_range)
        segments = [
            segment
            for segment in folded.segments
            if segment.last > segment.start and time_range[0] <= segment.start < time_range[1]
        ]
        assert segments and side == replace(side_of_segments(folded, segments, text), state=side.state)


def test_study_progress_is_read_from_last_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = list(sessions.events(sessions.STUDY, (1, 2, 3), {"few": 400.0, "more": 500.0}))
    record_pages(tmp_path / "s.cockpit", events, monkeypatch)
    with Recording(tmp_path / "s.cockpit") as recording:
        anchor = recording.latest_checkpoint(recording.end)
        assert anchor.number > 0 and anchor.state.study is not None
        assert last_state(recording) == fold_all(events)


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "{file}"),
        ("compare", "{file}#1", "{file}#2", "--force"),
        ("check", "{file}", "--threshold", "rate > 1"),
        ("export", "{file}", "--format", "jsonl"),
        ("export", "{file}", "--format", "csv"),
        ("baseline", "set", "x", "{file}"),
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[2:]),
)
def test_each_corrupt_event_is_reported_with_a_line(
    arguments: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = recorded(tmp_path / "s.cockpit", list(small_session()))
    command = [argument.format(file=path) for argument in arguments]
    assert main(command) == 0
    assert "damaged" not in capsys.readouterr().err
    database = sqlite3.connect(path)
    for number in (10, 20):
        database.execute("UPDATE events SET body = x'00ff' WHERE seq = ?", (number,))
    database.commit()
    database.close()
    assert main([argument.format(file=path) for argument in arguments]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "damaged" in line]
    assert all(re.match(r"cockpit: s\.cockpit: 1 event from 00:00:0\d to 00:00:0\d is damaged", line) for line in lines)
    assert len(lines) == (4 if arguments[0] == "compare" else 2)


def test_damaged_series_are_reported_by_html_report(paged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = sqlite3.connect(paged)
    database.execute("UPDATE pages SET series = x'00ff' WHERE first = 1")
    database.commit()
    database.close()
    assert main(["report", str(paged), "--format", "html"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("cockpit: s.cockpit: ticks and samples from 00:00:00 to ")
    assert captured.err.count("\n") == 1
    assert captured.out.startswith("<!doctype html>")
