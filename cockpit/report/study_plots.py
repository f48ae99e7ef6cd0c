"""Plots of a study: metrics by load level or run by run, latencies, and the last runs over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cockpit.document.model import Dot, Marks, Plot, PlotSeries, Point, Table
from cockpit.document.scale import PERCENT, Axis, at_values, between, from_zero
from cockpit.model.text import clock, si
from cockpit.report.plots import latency_plots
from cockpit.report.study_table import StudyColumn, cell_name, columns, hosts_of, value_of
from cockpit.study.judging import level_words
from cockpit.study.results import StudyCell, StudyResult, StudyRunResult

# Maximum number of lines that can be distinguished in a chart.
_MOST_LINES = 8
# Space beside the levels, and the distance between dots of two variants, as shares of the width.
_PADDING, _DOT_OFFSET = 0.05, 0.006
# The colour of the A/A control and of runs that are not counted.
_OTHER = 7
# Maximum number of levels with a latency chart: the lowest, the highest, and others between them.
_MOST_LEVELS = 6
# Time (s) over which a rate over time is averaged.
_EVERY = 5


def varying_columns(result: StudyResult) -> list[StudyColumn]:
    """Return the columns of the table with more than one value in the study."""
    runs = [run for cell in result.cells for run in cell.runs]
    return [column for column in columns(result) if len({run_value(column, run) for run in runs} - {None}) > 1]


def run_value(column: StudyColumn, run: StudyRunResult) -> float | None:
    """Return a column's value for one run; None: unknown."""
    return column.value(run.result, [run])


def metric_plots(result: StudyResult, column: StudyColumn) -> list[Plot | Table]:
    """Return a metric of all variants: by load level if the study has several, else as a row of dots per variant."""
    levels = sorted({cell.level for cell in result.cells if cell.level is not None})
    if len(levels) < 2:
        return [_dots(result, column)]
    return [_by_level(result, column, levels, part) for part in _parts(result)]


def _dots(result: StudyResult, column: StudyColumn) -> Table:
    rows: list[tuple[str, str]] = []
    marks = []
    for cell in result.cells:
        total = value_of(column, cell)
        values = [(run, value) for run in cell.runs if (value := run_value(column, run)) is not None]
        dots = [Dot(value, _run_words(run, column.shown(value)), pale=not run.counted) for run, value in values]
        marks.append(Marks(dots, _colours(result)[cell.variant], reference=total))
        rows.append((cell_name(result, cell), "–" if total is None else column.shown(total)))
    every = [dot.value for row in marks for dot in row.dots]
    axis = between(min(every), max(every), column.shown) if every else None
    return Table(("variant", "counted"), rows, axis, marks)


def _colours(result: StudyResult) -> dict[str, int]:
    """Return the colour of each variant, the same in all charts."""
    plain = [variant.name for variant in result.study.variants if not variant.control]
    colours = {name: at % _OTHER for at, name in enumerate(plain)}
    return {variant.name: colours.get(variant.name, _OTHER) for variant in result.study.variants}


def _run_words(run: StudyRunResult, shown: str) -> str:
    segments = run.result.segments
    began = f", {clock(segments[0].start)} into session {run.session}" if segments else ""
    return f"round {run.place.round}, run {run.place.run}{began}: {shown}{'' if run.counted else ', not counted'}"


def _by_level(result: StudyResult, column: StudyColumn, levels: Sequence[float], part: str) -> Plot:
    cells = [cell for cell in result.cells if cell.pass_name == part and cell.level is not None]
    x = at_values(levels, _PADDING)
    series = [each for at in range(len(result.study.variants)) for each in _lines(result, cells, column, at, x)]
    values = [y for each in series for _, y in each.points if y is not None] or [0.0]
    latency = column.name[:1] == "p" or column.name in ("max", "mean")
    low, high = min(values), max(values)
    y = between(low, high, column.shown) if latency or low < 0 else from_zero(high, column.shown, 1e-9)
    unit = "arrivals/s" if result.study.plan.open else "connections"
    title = " · ".join(filter(None, (f"{column.head} by {unit}", part)))
    return Plot(kind="values", title=title, x=x, y=y, series=series, wide=True)


def _lines(
    result: StudyResult, cells: Sequence[StudyCell], column: StudyColumn, number: int, axis: Axis
) -> Iterator[PlotSeries]:
    """Yield the line of a variant, and the dots of its runs, beside those of the other variants."""
    variants = result.study.variants
    name = variants[number].name
    own = sorted((cell for cell in cells if cell.variant == name), key=lambda cell: cell.level or 0.0)
    colour = _colours(result)[name]
    if own:
        yield PlotSeries(name, [(cell.level or 0.0, value_of(column, cell)) for cell in own], colour)
    offset = _DOT_OFFSET * (number - (len(variants) - 1) / 2)
    for counted in (True, False):
        dots: list[Point] = [
            (axis.shifted(cell.level or 0.0, offset), run_value(column, run))
            for cell in own
            for run in cell.runs
            if run.counted is counted
        ]
        yield PlotSeries("", dots, colour if counted else _OTHER, dots=True)


def study_latency_plots(result: StudyResult) -> list[Plot]:
    """Return the latencies of all variants, per load level and pass; none of capacity searches, whose load varies."""
    levels = list(dict.fromkeys(cell.level for cell in result.cells))
    if len(levels) > _MOST_LEVELS:
        levels = [levels[round(at * (len(levels) - 1) / (_MOST_LEVELS - 1))] for at in range(_MOST_LEVELS)]
    places = [(level, part) for level in levels for part in _parts(result)] if not result.study.until else []
    plots = []
    for level, part in places:
        lines = [
            (cell.variant, latency, _colours(result)[cell.variant])
            for cell in result.cells
            if (cell.level, cell.pass_name) == (level, part) and cell.total
            if (latency := cell.total.counts.latency).count
        ]
        some = f"the first {_MOST_LINES} of {len(lines)} variants" if len(lines) > _MOST_LINES else ""
        of = "".join(f" · {words}" for words in (level_words(result.study, level), part, some) if words)
        plots += latency_plots(lines[:_MOST_LINES], of)
    return plots


def _parts(result: StudyResult) -> list[str]:
    return list(dict.fromkeys(cell.pass_name for cell in result.cells))


def run_plots(result: StudyResult) -> list[Plot]:
    """Return the rate, and the CPU of each host, over the last counted run of each cell of a study without levels."""
    cells = [cell for cell in result.cells if cell.counted]
    if result.study.levels or result.study.until or not cells:
        return []
    rates = [(cell, list(_rates(cell.counted[-1]))) for cell in cells]
    plots = [_over_run(result, f"responses/s in each {_EVERY} s of the last run", rates, None)]
    for host in hosts_of(result):
        busy = [(cell, list(cell.counted[-1].cpu.get(host, ()))) for cell in cells]
        plots.append(_over_run(result, f"CPU of {host} over the last run, percent busy", busy, PERCENT))
    return [plot for plot in plots if plot.series]


def _rates(run: StudyRunResult) -> Iterator[Point]:
    seconds = list(run.window.seconds)
    for at in range(0, len(seconds) - _EVERY + 1, _EVERY):
        part = seconds[at : at + _EVERY]
        yield (
            part[0].start,
            sum(second.completed for second in part) / sum(second.end - second.start for second in part),
        )


def _over_run(
    result: StudyResult, title: str, lines: Sequence[tuple[StudyCell, Sequence[Point]]], y: Axis | None
) -> Plot:
    """Return lines over the time since the start of each run; those of fewer than two points are left out."""
    series = [
        PlotSeries(
            cell_name(result, cell),
            [(at - points[0][0], value) for at, value in points],
            _colours(result)[cell.variant],
        )
        for cell, points in lines[:_MOST_LINES]
        if len(points) > 1
    ]
    values = [value for each in series for _, value in each.points if value is not None]
    longest = max((each.points[-1][0] for each in series), default=1.0)
    x = from_zero(longest, lambda value: f"{value:g} s")
    x = Axis(0.0, longest, tuple(label for label in x.labels if label[0] <= longest))
    return Plot(kind="time", title=title, x=x, y=y or from_zero(max(values, default=1.0), si), series=series)
