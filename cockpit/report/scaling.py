"""The Universal Scalability Law in reports: claim, levels, plot and JSON."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.analysis.capacity.scaling import usl_level
from cockpit.analysis.capacity.usl import UslFit, UslLevel, fit_usl
from cockpit.analysis.words.usl import USL_TITLES, usl_details, usl_line, usl_row
from cockpit.document.model import Block, Items, Paragraph, Plot, PlotSeries, Point, Table
from cockpit.document.scale import at_values, from_zero
from cockpit.metrics.results import RunResult
from cockpit.model.text import si
from cockpit.report.encoding import struct_from
from cockpit.study.results import StudyResult

# Points of the curve.
_POINTS = 100


class UslJson(UslFit, frozen=True, kw_only=True):
    """The law, also as text. `peak` is an extrapolation unless its interval is within the levels."""

    text: str


def usl_json(fit: UslFit) -> UslJson:
    return struct_from(UslJson, fit, text=usl_line(fit))


def fits_of(result: RunResult, fits: Iterable[UslFit]) -> tuple[UslFit, ...]:
    """Return the fits whose last level is in this run: each is listed once."""
    numbers = {segment.number for segment in result.segments}
    return tuple(fit for fit in fits if max(level.segment for level in fit.levels) in numbers)


def study_fits(result: StudyResult) -> list[UslFit]:
    """Return a fit for each variant and pass of a study with levels of connections; a level pools its counted runs."""
    if result.study.plan.open or result.study.until:
        return []
    groups: dict[str, list[UslLevel]] = {}
    for cell in result.cells:
        segments = [segment for run in cell.counted for segment in run.result.segments]
        if cell.level is not None and segments:
            label = " · ".join(filter(None, (cell.variant, cell.pass_name)))
            groups.setdefault(label, []).append(usl_level(segments))
    fits = (fit_usl(levels, label) for label, levels in groups.items())
    return [fit for fit in fits if fit is not None]


def fit_blocks(fit: UslFit) -> list[Block]:
    """Return the claim, the parameters and the levels of a fit."""
    rows = list(map(usl_row, fit.levels))
    return [Paragraph(usl_line(fit)), Items(list(usl_details(fit)), "soft"), Table(USL_TITLES, rows)]


def fit_plot(fit: UslFit) -> Plot:
    x = at_values(sorted({float(level.concurrency) for level in fit.levels}))
    places = [x.shifted(x.low, step / _POINTS) for step in range(_POINTS + 1)]
    series = (
        [PlotSeries("fitted law", [(place, fit.rate(place)) for place in places], 1)] if fit.single is not None else []
    )
    for name, excluded, colour in (("measured", False, 0), ("excluded", True, 6)):
        levels = (level for level in fit.levels if (level.excluded is not None) is excluded)
        points: list[Point] = sorted((float(level.concurrency), level.rate) for level in levels)
        series += [PlotSeries(name, points, colour, dots=True)] if points else []
    y = from_zero(max(rate for each in series for _, rate in each.points if rate is not None), si, 1e-9)
    return Plot(kind="values", title="requests/s by connections", x=x, y=y, series=series, wide=True)
