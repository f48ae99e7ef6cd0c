"""A growing session as JSON lines: each second, change, marker and run once, with the values of the CSV export."""

import csv

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.analysis.words.timeline import marker_text
from cockpit.export.ndjson import AnyLine, ChangeLine, MarkerLine, RunLine, SecondLine, SessionLine, SessionLines
from cockpit.export.series import series_csv
from cockpit.model.events import SessionStarted
from cockpit.model.fold.fold import fold, fold_all
from cockpit.model.load.plan import AccessLog, LoadPlan
from cockpit.model.state import State
from tests.session.events import small_session

STATE = fold_all(small_session())
# Columns that are not metrics.
_OTHER = ("t_s", "utc", "run", "segment")


@pytest.fixture(scope="module")
def found() -> list[AnyLine]:
    """Return the new lines of a session after each of its events."""
    lines, state, found = SessionLines(), State(), []
    for event in small_session():
        state = fold(state, event)
        found += lines.new_lines(state)
    return [*found, *lines.new_lines(state, last=True)]


def test_seconds_wait_for_the_lines_of_access_logs() -> None:
    log = AccessLog(host="web1", file="/var/log/access.log")
    traffic = replace(STATE, plans={1: LoadPlan(url="http://web1/", traffic=(log,))})
    seconds = [sum(isinstance(line, SecondLine) for line in SessionLines().new_lines(s)) for s in (STATE, traffic)]
    assert seconds == [58, 48]


def _place(line: AnyLine) -> tuple[int, bool] | None:
    """Return the run of a line, and whether the line is its result; None for lines without a run."""
    if isinstance(line, SecondLine):
        return (line.run, False) if line.run else None
    return (line.result.run, True) if isinstance(line, RunLine) else None


def test_each_line_is_emitted_once_and_decodes_by_type(found: list[AnyLine]) -> None:
    assert isinstance(found[0], SessionLine) and found[0].hosts == ("web1",)
    assert [line.t for line in found if isinstance(line, SecondLine)] == [float(t) for t in range(61)]
    [first, second] = [line.result for line in found if isinstance(line, RunLine)]
    assert (first.run, second.run) == (1, 2) and first.completed + second.completed == 8000
    places = [place for line in found if (place := _place(line))]
    assert places == sorted(places), "a result follows the seconds of its run"
    markers = [(line.t, line.kind, line.text) for line in found if isinstance(line, MarkerLine)]
    assert (
        sorted(markers) == sorted((marker.t, marker.kind, marker_text(marker)) for marker in STATE.markers) and markers
    )
    changes = [line for line in found if isinstance(line, ChangeLine)]
    assert [line.change for line in changes] == [change.letter for change in STATE.changes]
    assert changes[0].settings[0].new == "30" and changes[0].outcome == "applied"
    assert [msgspec.json.decode(msgspec.json.encode(line), type=AnyLine) for line in found] == found


def test_second_lines_equal_csv_rows(found: list[AnyLine]) -> None:
    rows = {int(row["t_s"]): row for row in csv.DictReader(series_csv(STATE))}
    for line in (line for line in found if isinstance(line, SecondLine)):
        row = rows[int(line.t)]
        place = (line.utc, str(line.run or ""), str(line.segment or ""))
        assert place == (row["utc"], row["run"], row["segment"])
        cells = dict(line.load)
        for host, metrics in line.hosts.items():
            cells |= {f"{host}.{name}": value for name, value in metrics.items()}
        known = {name: float(value) for name, value in row.items() if value and name not in _OTHER}
        assert known == {name: float(value) for name, value in cells.items()}


def test_no_lines_before_session_start() -> None:
    assert list(SessionLines().new_lines(State(), last=True)) == []
    state = fold_all([SessionStarted(t=0.0, wall=0.0, version="1", name="x")])
    assert [type(line) for line in SessionLines().new_lines(state)] == [SessionLine]
