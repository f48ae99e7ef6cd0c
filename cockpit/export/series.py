"""A session as a table, and as CSV: one column per metric with its unit in the name, one row per second, except in
long gaps without load and readings.

`t_s` is the session second, `utc` the wall clock of cockpit's machine. Load columns: `run`, `segment` (number in the
runs table), and the responses within that second; empty without load. Host columns, named as in thresholds: the newest
sample within that second; empty without one.
"""

from __future__ import annotations

import csv
import io
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple

from cockpit.metrics.catalogue import SAMPLE_METRICS, SECOND_METRICS, Metric
from cockpit.model.host.state import HostPoint, HostState
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.state import Segment, State
from cockpit.model.text import sanitize

# Maximum number of rows of a gap without load and readings.
_MAX_GAP = 60
CellValue = str | int | float | None


class SeriesColumn(NamedTuple):
    """A column. `host` is the name of the host, "" for columns of load and of the session. `kind` is the type of the
    cells, which may be None except in `t_s` and `utc`; `metric` is None for columns of the session."""

    name: str
    kind: type[str] | type[int] | type[float] | type[bool]
    host: str = ""
    metric: Metric | None = None

    @property
    def title(self) -> str:
        return f"{no_formula(self.host)}.{self.name}" if self.host else self.name


_SESSION = (SeriesColumn("t_s", int), SeriesColumn("utc", str), SeriesColumn("run", int), SeriesColumn("segment", int))


def series_columns(state: State) -> list[SeriesColumn]:
    """Return the columns of the table, in the order of the cells of `series_rows`."""
    of_load = [SeriesColumn(each.column, each.unit.kind, metric=each) for each in SECOND_METRICS]
    hosts = [host.config.name for host in state.hosts.values()]
    of_hosts = [SeriesColumn(each.column, each.unit.kind, host, each) for host in hosts for each in SAMPLE_METRICS]
    return [*_SESSION, *of_load, *of_hosts]


def series_rows(state: State) -> Iterator[list[CellValue]]:
    """Yield the rows of the table, one per second; of a gap without load and readings the first `_MAX_GAP`."""
    hosts = list(state.hosts.values())
    wall = wall_of(state)
    seconds = {second.second: second for second in state.seconds}
    known = {0, int(state.t), *seconds, *(int(point.t) for host in hosts for point in host.points)}
    for t in _with_short_gaps(sorted(known)):
        second = seconds.get(t)
        segment = segment_at(state, t) if second else None
        cells: list[CellValue] = [
            t,
            utc(wall + t),
            segment.run if segment else None,
            segment.number if segment else None,
        ]
        cells += [_of_second(metric, second) if second else None for metric in SECOND_METRICS]
        for host in hosts:
            point = _newest(host, t)
            cells += [_of_sample(metric, point) for metric in SAMPLE_METRICS]
        yield cells


def _with_short_gaps(known: Iterable[int]) -> Iterator[int]:
    """Yield the seconds between the known ones too: all of them would be years in a file with two distant ticks."""
    latest = 0
    for second in known:
        yield from range(latest, min(second, latest + _MAX_GAP))
        latest = second
    yield latest


def series_csv(state: State) -> Iterator[str]:
    """Yield the lines of the table with their ends, the titles first."""
    yield _line([column.title for column in series_columns(state)])
    yield from map(_line, series_rows(state))


def wall_of(state: State) -> float:
    """Return the start of the session (epoch s)."""
    return state.started.wall if state.started else 0.0


def _of_second(metric: Metric, second: LoadSecond) -> CellValue:
    assert metric.second is not None
    return _cell(metric, metric.second(second))


def _of_sample(metric: Metric, point: HostPoint | None) -> CellValue:
    """Return a cell; None without a reading, for processes that /proc hides, and for memory that an imported file
    lacks."""
    assert metric.sample is not None
    if point is None or (point.hidden and metric.name.startswith("processes.")):
        return None
    if not point.memory.total and metric.name.startswith("memory."):
        return None
    value = metric.sample(point)
    return None if value is None else _cell(metric, value)


def _cell(metric: Metric, value: float) -> float:
    unit = metric.unit
    return int(value) if unit.kind is not float else round(value * unit.per_column, unit.digits)


def load_metrics_at(state: State, t: int) -> dict[str, float]:
    """Return the load of a second by column; empty without load."""
    seconds = state.seconds
    at = bisect_left(seconds, t, key=attrgetter("second"))
    if at == len(seconds) or seconds[at].second != t:
        return {}
    return _known({metric.column: _of_second(metric, seconds[at]) for metric in SECOND_METRICS})


def host_metrics_at(host: HostState, t: int) -> dict[str, float]:
    """Return the newest reading of a host within a second, by column; empty without one."""
    point = _newest(host, t)
    return {} if point is None else _known({metric.column: _of_sample(metric, point) for metric in SAMPLE_METRICS})


def _known(cells: Mapping[str, CellValue]) -> dict[str, float]:
    return {name: value for name, value in cells.items() if isinstance(value, int | float) and math.isfinite(value)}


_START = attrgetter("start")


def segment_at(state: State, t: int) -> Segment | None:
    """Return the segment at the middle of a second, else the last one that began before the end of the second."""
    begun = bisect_right(state.segments, t + 0.5, key=_START) or bisect_left(state.segments, t + 1.0, key=_START)
    return state.segments[begun - 1] if begun else None


def _newest(host: HostState, t: int) -> HostPoint | None:
    at = bisect_left(host.points, float(t + 1), key=attrgetter("t"))
    return host.points[at - 1] if at and host.points[at - 1].t >= t else None


def utc(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _line(cells: list[CellValue] | list[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


Value = str | int | float | bool | None
# Spreadsheets treat cells with these prefixes as formulas: https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_text(head: Iterable[str], lines: Iterable[Iterable[Value]]) -> str:
    """Return CSV with a header: numbers in full precision, true and false, empty cells for unknown values."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(head)
    writer.writerows([_csv_cell(value) for value in line] for line in lines)
    return out.getvalue()


def no_formula(value: str) -> str:
    """Return text of any origin as a cell that is harmless in terminals and that no spreadsheet treats as a formula."""
    shown = sanitize(value)
    return f"'{shown}" if value.startswith(_FORMULA) or shown.startswith(_FORMULA) else shown


def _csv_cell(value: Value) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return no_formula(value) if isinstance(value, str) else repr(value)
