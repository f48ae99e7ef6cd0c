"""Charts of a study's HTML report: metrics by load level or run by run, and latency by percentile."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from cockpit.model.histogram import Histogram
from cockpit.model.text import clock
from cockpit.report.charts import Axis, ChartSeries, Point, SvgChart, apart, between, draw, from_zero
from cockpit.report.forest import Dot, DotRow, dot_plot
from cockpit.report.page_charts import percentiles
from cockpit.report.study import cell_name
from cockpit.report.study_table import StudyColumn, columns, value_of
from cockpit.study.judging import level_words
from cockpit.study.results import StudyCell, StudyResult, StudyRunResult

# Maximum number of lines that can be distinguished in a chart.
_MOST_LINES = 8
# Levels further apart than this factor get a logarithmic axis.
_LOG_FROM = 8.0
# Minimum distance between labels of levels, as a share of the width.
_LABEL_DISTANCE = 0.06
# Space beside the levels, and the distance between dots of two variants, as shares of the width.
_PADDING, _DOT_OFFSET = 0.05, 0.006
# The colour of the A/A control and of runs that are not counted.
_OTHER = 7
# Maximum number of levels with a latency chart: the lowest, the highest, and others between them.
_MOST_LEVELS = 6


def varying_columns(result: StudyResult) -> list[StudyColumn]:
    """Return the columns of the table with more than one value in the study."""
    found = []
    for column in columns(result):
        values = {one for cell in result.cells for run in cell.runs if (one := run_value(column, run)) is not None}
        if len(values) > 1:
            found.append(column)
    return found


def run_value(column: StudyColumn, run: StudyRunResult) -> float | None:
    """Return a column's value for one run; None: unknown."""
    return column.value(run.result, [run])


def metric_chart(result: StudyResult, column: StudyColumn) -> str:
    """Return a metric of all variants: by load level if the study has several, else as a row of dots per variant."""
    levels = sorted({cell.level for cell in result.cells if cell.level is not None})
    if len(levels) < 2:
        return dot_plot([_dots(result, cell, column) for cell in result.cells], column.shown)
    return "".join(_by_level(result, column, levels, part) for part in _parts(result))


def _dots(result: StudyResult, cell: StudyCell, column: StudyColumn) -> DotRow:
    found = []
    for run in cell.runs:
        value = run_value(column, run)
        if value is not None:
            found.append(Dot(value, run.counted, _run_words(run, column.shown(value))))
    return DotRow(cell_name(result, cell), found, value_of(column, cell), _colours(result)[cell.variant])


def _colours(result: StudyResult) -> dict[str, int]:
    """Return the colour of each variant, the same in all charts."""
    others = [variant.name for variant in result.study.variants if not variant.control]
    found = {name: at % _OTHER for at, name in enumerate(others)}
    return {variant.name: found.get(variant.name, _OTHER) for variant in result.study.variants}


def _run_words(run: StudyRunResult, shown: str) -> str:
    segments = run.result.segments
    began = f", {clock(segments[0].start)} into session {run.session}" if segments else ""
    return f"round {run.place.round}, run {run.place.run}{began}: {shown}{'' if run.counted else ', not counted'}"


def _by_level(result: StudyResult, column: StudyColumn, levels: Sequence[float], part: str) -> str:
    """Return a chart with a line per variant over the load levels, and a dot per run."""
    cells = [cell for cell in result.cells if cell.pass_name == part and cell.level is not None]
    values = [one for cell in cells for run in cell.runs if (one := run_value(column, run)) is not None]
    values += [one for cell in cells if (one := value_of(column, cell)) is not None]
    if not values:
        return ""
    axis = _level_axis(levels)
    series = [one for at in range(len(result.study.variants)) for one in _lines(result, cells, column, at, axis)]
    latency = column.name[:1] == "p" or column.name in ("max", "mean")
    low, high = min(values), max(values)
    y = between(low, high, column.shown) if latency or low < 0 else from_zero(high, column.shown, 1e-9)
    unit = "arrivals/s" if result.study.plan.open else "connections"
    title = " · ".join(filter(None, (f"by {unit}", part)))
    return draw(SvgChart(title, axis, y, series, tall=True, label=f"{column.head} {title}"))


def _lines(
    result: StudyResult, cells: Iterable[StudyCell], column: StudyColumn, number: int, axis: Axis
) -> Iterable[ChartSeries]:
    """Yield the line of a variant, and the dots of its runs, beside those of the other variants."""
    variants = result.study.variants
    variant = variants[number]
    own = sorted((cell for cell in cells if cell.variant == variant.name), key=lambda cell: cell.level or 0.0)
    if not own:
        return
    colour = _colours(result)[variant.name]
    yield ChartSeries(variant.name, [(cell.level or 0.0, value_of(column, cell)) for cell in own], colour)
    offset = _DOT_OFFSET * (number - (len(variants) - 1) / 2)
    for counted in (True, False):
        dots: list[Point] = [
            (_shifted(axis, cell.level or 0.0, offset), run_value(column, run))
            for cell in own
            for run in cell.runs
            if run.counted is counted
        ]
        yield ChartSeries("", dots, colour if counted else _OTHER, marks=True)


def _shifted(axis: Axis, value: float, share: float) -> float:
    """Return the value whose position is further right by a share of the width."""
    if axis.log:
        return value * math.pow(axis.high / axis.low, share)
    return value + share * (axis.high - axis.low)


def _level_axis(levels: Sequence[float]) -> Axis:
    low, high = levels[0], levels[-1]
    log = low > 0 and high / low > _LOG_FROM
    inner = Axis(low, high, log=log)
    axis = Axis(_shifted(inner, low, -_PADDING), _shifted(inner, high, _PADDING), log=log)
    labels = apart(axis, ((level, f"{level:g}") for level in levels), _LABEL_DISTANCE)
    return Axis(axis.low, axis.high, labels, log)


def latency_charts(result: StudyResult) -> str:
    """Return latency by percentile of all variants, in one chart per load level and pass."""
    found = []
    for level in _drawn_levels(result):
        for part in _parts(result):
            cells = [cell for cell in result.cells if (cell.level, cell.pass_name) == (level, part)]
            lines = [
                (cell.variant, latency, _colours(result)[cell.variant])
                for cell in cells
                if cell.total and (latency := cell.total.counts.latency).count
            ]
            if lines:
                found.append(_latency_chart(result, level, part, lines))
    return f'<div class="charts">{"".join(found)}</div>\n' if found else ""


def _latency_chart(
    result: StudyResult, level: float | None, part: str, lines: Sequence[tuple[str, Histogram, int]]
) -> str:
    some = f"the first {_MOST_LINES} of {len(lines)} variants" if len(lines) > _MOST_LINES else ""
    title = " · ".join(filter(None, ("latency (ms) by percentile", level_words(result.study, level), part, some)))
    return percentiles(title, lines[:_MOST_LINES])


def _drawn_levels(result: StudyResult) -> list[float | None]:
    levels = list(dict.fromkeys(cell.level for cell in result.cells))
    if len(levels) <= _MOST_LEVELS:
        return levels
    last = len(levels) - 1
    return [levels[round(at * last / (_MOST_LEVELS - 1))] for at in range(_MOST_LEVELS)]


def _parts(result: StudyResult) -> list[str]:
    return list(dict.fromkeys(cell.pass_name for cell in result.cells))
