"""A session as OpenMetrics text with timestamps, for `promtool tsdb create-blocks-from openmetrics`.

Gauges are those of `--prometheus` (export.gauges), in base units. A sample is at the end of its second.

Format: https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from cockpit.export.gauges import Gauge, gauge_of
from cockpit.export.series import CellValue, SeriesColumn, series_columns, series_rows, wall_of
from cockpit.model.state import State
from cockpit.model.text import sanitize


def openmetrics(state: State) -> Iterator[str]:
    """Yield the lines with their ends, family by family, the samples of each host in order of time."""
    columns, rows = series_columns(state), list(series_rows(state))
    session = sanitize(state.started.name) if state.started else ""
    families: dict[Gauge, list[int]] = {}
    for at, column in enumerate(columns):
        if column.metric is not None:
            families.setdefault(gauge_of(column.metric), []).append(at)
    for gauge, places in families.items():
        yield f"# TYPE {gauge.name} gauge\n"
        if unit := gauge.unit:
            yield f"# UNIT {gauge.name} {unit}\n"
        yield f"# HELP {gauge.name} {gauge.help}\n"
        for place in places:
            yield from _samples(gauge, columns[place], ((row, row[place]) for row in rows), session, wall_of(state))
    yield "# EOF\n"


def _samples(
    gauge: Gauge, column: SeriesColumn, cells: Iterable[tuple[list[CellValue], CellValue]], session: str, wall: float
) -> Iterator[str]:
    """Yield the samples of a column. Samples of load have the run and the segment of the runs table as labels."""
    for row, value in cells:
        if not isinstance(value, int | float) or not math.isfinite(value):
            continue
        t, _, run, number = row[:4]
        labels = {"session": session}
        labels |= {"host": sanitize(column.host)} if column.host else {"run": str(run), "segment": str(number)}
        text = ",".join(f'{name}="{_escaped(label)}"' for name, label in labels.items())
        yield f"{gauge.name}{{{text}}} {gauge.value(value)!r} {wall + float(t or 0) + 1:.3f}\n"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
