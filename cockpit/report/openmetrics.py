"""A session as OpenMetrics text with timestamps, for `promtool tsdb create-blocks-from openmetrics`.

Gauges have the names of the CSV (report.series) and of `--prometheus`. A sample is at the end of its second.

Format: https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from cockpit.model.state import State
from cockpit.model.text import neutral
from cockpit.report.series import Cell, SeriesColumn, series_columns, series_rows, wall_of

# Columns that are no metrics: place and time of the others.
_PLACES = ("t_s", "utc", "run", "row")


def metric_name(group: str, name: str) -> str:
    """Return the name of a gauge by the column of the CSV: `cockpit_host_cpu_idle_percent`; `group` is load or host."""
    return f"cockpit_{group}_{name.replace('.', '_').lower()}"


def openmetrics(state: State) -> Iterator[str]:
    """Yield the lines, each with its end: a family after the other, the samples of each host in the order of time."""
    columns, rows = series_columns(state), list(series_rows(state))
    session = neutral(state.started.name) if state.started else ""
    families: dict[str, list[int]] = {}
    for at, column in enumerate(columns):
        if column.name not in _PLACES:
            families.setdefault(metric_name("host" if column.host else "load", column.name), []).append(at)
    for family, places in families.items():
        column = columns[places[0]]
        yield f"# TYPE {family} gauge\n"
        yield f"# HELP {family} {'of a host' if column.host else 'load'}: {column.name}\n"
        for place in places:
            yield from _samples(family, columns[place], ((row, row[place]) for row in rows), session, wall_of(state))
    yield "# EOF\n"


def _samples(
    family: str, column: SeriesColumn, cells: Iterable[tuple[list[Cell], Cell]], session: str, wall: float
) -> Iterator[str]:
    """Yield the samples of a column; of load the run and the row of the runs table are labels."""
    for row, value in cells:
        if not isinstance(value, int | float) or not math.isfinite(value):
            continue
        t, _, run, number = row[: len(_PLACES)]
        labels = {"session": session}
        labels |= {"host": neutral(column.host)} if column.host else {"run": str(run), "row": str(number)}
        text = ",".join(f'{name}="{_escaped(label)}"' for name, label in labels.items())
        yield f"{family}{{{text}}} {value!r} {wall + float(t or 0) + 1:.3f}\n"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
