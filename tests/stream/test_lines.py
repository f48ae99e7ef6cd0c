"""A growing session as JSON lines: each second, change, marker and run once, with the values of the CSV."""

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

# Columns that are no metrics.
_OTHER = ("t_s", "utc", "run", "row")


def told() -> Iterator[AnyLine]:
    """The lines of a session that is looked at after each event."""
    lines, state = SessionLines(), State()
    for event in small_session():
        state = fold(state, event)
        yield from lines.fresh(state)
    yield from lines.fresh(state, last=True)


def test_a_growing_session_has_each_line_once() -> None:
    found = list(told())
    assert isinstance(found[0], SessionLine) and found[0].hosts == ("web1",)
    assert [line.t for line in found if isinstance(line, SecondLine)] == [float(t) for t in range(61)]
    [run, again] = [line.result for line in found if isinstance(line, RunLine)]
    assert (run.run, again.run) == (1, 2) and run.completed + again.completed == 8000
    state = fold_all(small_session())
    markers = [(line.t, line.kind, line.text) for line in found if isinstance(line, MarkerLine)]
    assert sorted(markers) == sorted((one.t, one.kind, one.text) for one in state.markers) and markers
    changes = [line for line in found if isinstance(line, ChangeLine)]
    assert [line.change for line in changes] == [change.letter for change in state.changes]
    assert changes[0].settings[0].new == "30" and changes[0].outcome == "applied"


def test_a_second_has_the_values_of_the_csv_once_all_of_it_is_in() -> None:
    rows = {int(row["t_s"]): row for row in csv.DictReader(series_csv(fold_all(small_session())))}
    for line in told():
        if not isinstance(line, SecondLine):
            continue
        row = rows[int(line.t)]
        assert line.utc == row["utc"] and str(line.run or "") == row["run"] and str(line.row or "") == row["row"]
        cells = dict(line.load)
        for host, metrics in line.hosts.items():
            cells |= {f"{host}.{name}": value for name, value in metrics.items()}
        known = {name: float(value) for name, value in row.items() if value and name not in _OTHER}
        assert known == {name: float(value) for name, value in cells.items()}


def test_lines_are_told_apart_by_their_type() -> None:
    encoded = [msgspec.json.encode(line) for line in told()]
    assert [msgspec.json.decode(line, type=AnyLine) for line in encoded] == list(told())


def test_nothing_is_told_before_the_session_begins() -> None:
    assert list(SessionLines().fresh(State(), last=True)) == []
    state = fold_all([SessionStarted(t=0.0, wall=0.0, version="1", name="x")])
    assert [type(line) for line in SessionLines().fresh(state)] == [SessionLine]
