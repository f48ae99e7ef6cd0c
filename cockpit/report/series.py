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
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple

from cockpit.model.host_state import HostPoint, HostState
from cockpit.model.load_seconds import LoadSecond
from cockpit.model.state import Segment, State
from cockpit.model.text import sanitize

# Maximum number of rows of a gap without load and readings.
_MAX_GAP = 60
Cell = str | int | float | None

_LOAD: dict[str, Callable[[LoadSecond], Cell]] = {
    "covered_s": lambda one: round(one.end - one.start, 3),
    "completed": lambda one: one.completed,
    "rate_per_s": lambda one: round(one.rate, 3),
    "failed": lambda one: one.failed,
    "errors": lambda one: one.errors,
    "queued": lambda one: one.queued,
    "p50_ms": lambda one: round(1000 * one.p50, 4),
    "p99_ms": lambda one: round(1000 * one.p99, 4),
    "max_ms": lambda one: round(1000 * one.max, 4),
    "connections": lambda one: one.connections,
    "in_flight": lambda one: one.in_flight,
    "stalled": lambda one: int(one.stalled),
    "generator.cpu_percent": lambda one: round(100 * one.generator, 1),
    "generator.cpu_wait_percent": lambda one: round(100 * one.cpu_wait, 1),
    "generator.lag_p99_ms": lambda one: round(1000 * one.lag_p99, 4),
    "generator.saturated": lambda one: int(one.saturated),
}


def _part(name: str, metric: str) -> Callable[[HostPoint], Cell]:

    def read(point: HostPoint) -> Cell:
        group = getattr(point, name)
        value = None if group is None else getattr(group, metric)
        return None if value is None else round(value, 3)

    return read


def _of_group(metric: str, unit: int = 0) -> Callable[[HostPoint], Cell]:
    """Return a reader of the control group. `unit` is the unit of a whole number, in bytes; 0: a share."""

    def read(point: HostPoint) -> Cell:
        value = None if point.group is None else getattr(point.group, metric)
        return value if value is None or not unit else int(value) * unit

    return read


_HOST: dict[str, Callable[[HostPoint], Cell]] = {
    **{f"cpu.{n}_percent": _part("cpu", n) for n in ("user", "nice", "system", "iowait", "steal", "idle")},
    "cpu.other_percent": lambda point: point.other,
    **{f"memory.{n}_bytes": _part("memory", n) for n in ("total", "used", "free", "shared", "buff_cache", "available")},
    **{f"io.{n}_per_s": _part("io", n) for n in ("tps", "rtps", "wtps")},
    **{f"io.{n}_blocks_per_s": _part("io", n) for n in ("bread", "bwrtn")},
    **{f"net.{n}_packets_per_s": _part("net", n) for n in ("rxpck", "txpck")},
    **{f"net.{n}_KiB_per_s": _part("net", n) for n in ("rxkb", "txkb")},
    **{f"net.{n}_per_s": _part("net", n) for n in ("errors", "drops")},
    "load.1": lambda point: point.load[0],
    "load.5": lambda point: point.load[1],
    "load.15": lambda point: point.load[2],
    "load.running": lambda point: point.running,
    "load.blocked": lambda point: point.blocked,
    "processes.count": lambda point: point.count,
    "processes.spawned_per_s": lambda point: _rounded(point.spawned),
    "processes.exited_per_s": lambda point: _rounded(point.exited),
    "processes.defunct": lambda point: point.defunct,
    "processes.rss_bytes": lambda point: point.rss,
    "processes.unshared_bytes": lambda point: point.unshared,
    "processes.pss_bytes": lambda point: point.pss,
    **{f"cgroup.{n}_percent": _of_group(n) for n in ("cpu", "quota", "throttled", "scpu", "sio", "smem")},
    **{f"cgroup.{n}_bytes": _of_group(f"kb{n}", 1024) for n in ("memory", "limit")},
    "probe.round_trip_ms": lambda point: round(1000 * point.round_trip, 3),
}


class SeriesColumn(NamedTuple):
    """A column. `host` is the name of the host, "" for columns of load and of the session. `kind` is the type of the
    cells, which may be None except in `t_s` and `utc`."""

    name: str
    kind: type[str] | type[int] | type[float] | type[bool]
    host: str = ""

    @property
    def title(self) -> str:
        return f"{no_formula(self.host)}.{self.name}" if self.host else self.name


_FLAGS = {"stalled", "generator.saturated"}
_WHOLE = {
    *("t_s", "run", "segment", "completed", "failed", "errors", "queued", "connections", "in_flight"),
    *("load.running", "load.blocked", "processes.count", "processes.defunct"),
}


def _column(name: str, host: str = "") -> SeriesColumn:
    if name in _FLAGS:
        return SeriesColumn(name, bool, host)
    if name == "utc":
        return SeriesColumn(name, str, host)
    return SeriesColumn(name, int if name in _WHOLE or name.endswith("_bytes") else float, host)


def series_columns(state: State) -> list[SeriesColumn]:
    """Return the columns of the table, in the order of the cells of `series_rows`."""
    of_hosts = [_column(name, host.config.name) for host in state.hosts.values() for name in _HOST]
    return [*map(_column, ("t_s", "utc", "run", "segment", *_LOAD)), *of_hosts]


def series_rows(state: State) -> Iterator[list[Cell]]:
    """Yield the rows of the table, one per second; of a gap without load and readings the first `_MAX_GAP`."""
    hosts = list(state.hosts.values())
    wall = wall_of(state)
    seconds = {second.second: second for second in state.seconds}
    known = {0, int(state.t), *seconds, *(int(point.t) for host in hosts for point in host.points)}
    for t in _with_short_gaps(sorted(known)):
        second = seconds.get(t)
        segment = segment_at(state, t) if second else None
        cells: list[Cell] = [t, utc(wall + t), segment.run if segment else None, segment.number if segment else None]
        cells += [metric(second) if second else None for metric in _LOAD.values()]
        for host in hosts:
            point = _newest(host, t)
            cells += [_metric(point, name) for name in _HOST]
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


def _metric(point: HostPoint | None, name: str) -> Cell:
    """Return a cell; None without a reading, for processes that /proc hides, and for memory that an imported file
    lacks."""
    if point is None or (point.hidden and name.startswith("processes.")):
        return None
    if not point.memory.total and name.startswith("memory."):
        return None
    return _HOST[name](point)


def load_metrics_at(state: State, t: int) -> dict[str, float]:
    """Return the load of a second by column; empty without load."""
    seconds = state.seconds
    at = bisect_left(seconds, t, key=attrgetter("second"))
    if at == len(seconds) or seconds[at].second != t:
        return {}
    return _known({name: read(seconds[at]) for name, read in _LOAD.items()})


def host_metrics_at(host: HostState, t: int) -> dict[str, float]:
    """Return the newest reading of a host within a second, by column; empty without one."""
    point = _newest(host, t)
    return {} if point is None else _known({name: _metric(point, name) for name in _HOST})


def _known(cells: Mapping[str, Cell]) -> dict[str, float]:
    return {name: value for name, value in cells.items() if isinstance(value, int | float) and math.isfinite(value)}


_START = attrgetter("start")


def segment_at(state: State, t: int) -> Segment | None:
    """Return the segment at the middle of a second, else the last one that began before the end of the second."""
    begun = bisect_right(state.segments, t + 0.5, key=_START) or bisect_left(state.segments, t + 1.0, key=_START)
    return state.segments[begun - 1] if begun else None


def _newest(host: HostState, t: int) -> HostPoint | None:
    at = bisect_right(host.points, float(t + 1), key=attrgetter("t"))
    return host.points[at - 1] if at and host.points[at - 1].t >= t else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def utc(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _line(cells: list[Cell] | list[str]) -> str:
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
