"""A growing session as JSON lines: each second, change, marker and run once, with the values of the CSV export."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import msgspec

from cockpit.model.events import SessionStarted
from cockpit.model.fold import fold, fold_all
from cockpit.model.state import State
from cockpit.report.series import series_csv
from cockpit.stream.lines import AnyLine, ChangeLine, MarkerLine, RunLine, SecondLine, SessionLine, SessionLines
from tests.session.events import small_session

# Columns that are not metrics.
_OTHER = ("t_s", "utc", "run", "segment")


def session_lines() -> Iterator[AnyLine]:
    """Yield the new lines of a session after each of its events."""
    lines, state = SessionLines(), State()
    for event in small_session():
        state = fold(state, event)
        yield from lines.new_lines(state)
    yield from lines.new_lines(state, last=True)


def test_each_line_is_emitted_once() -> None:
    found = list(session_lines())
    assert isinstance(found[0], SessionLine) and found[0].hosts == ("web1",)
    assert [line.t for line in found if isinstance(line, SecondLine)] == [float(t) for t in range(61)]
    [first, second] = [line.result for line in found if isinstance(line, RunLine)]
    assert (first.run, second.run) == (1, 2) and first.completed + second.completed == 8000
    state = fold_all(small_session())
    markers = [(line.t, line.kind, line.text) for line in found if isinstance(line, MarkerLine)]
    assert sorted(markers) == sorted((marker.t, marker.kind, marker.text) for marker in state.markers) and markers
    changes = [line for line in found if isinstance(line, ChangeLine)]
    assert [line.change for line in changes] == [change.letter for change in state.changes]
    assert changes[0].settings[0].new == "30" and changes[0].outcome == "applied"


def test_second_lines_equal_csv_rows() -> None:
    rows = {int(row["t_s"]): row for row in csv.DictReader(series_csv(fold_all(small_session())))}
    for line in session_lines():
        if not isinstance(line, SecondLine):
            continue
        row = rows[int(line.t)]
        assert (line.utc, str(line.run or "")) == (row["utc"], row["run"])
        assert str(line.segment or "") == row["segment"]
        cells = dict(line.load)
        for host, metrics in line.hosts.items():
            cells |= {f"{host}.{name}": value for name, value in metrics.items()}
        known = {name: float(value) for name, value in row.items() if value and name not in _OTHER}
        assert known == {name: float(value) for name, value in cells.items()}


def test_lines_decode_by_type() -> None:
    encoded = [msgspec.json.encode(line) for line in session_lines()]
    assert [msgspec.json.decode(line, type=AnyLine) for line in encoded] == list(session_lines())


def test_no_lines_before_session_start() -> None:
    assert list(SessionLines().new_lines(State(), last=True)) == []
    state = fold_all([SessionStarted(t=0.0, wall=0.0, version="1", name="x")])
    assert [type(line) for line in SessionLines().new_lines(state)] == [SessionLine]
