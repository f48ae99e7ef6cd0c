"""The Universal Scalability Law in reports: chart, lines and JSON."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.analysis.capacity.usl import UslFit
from cockpit.analysis.words.usl import USL_TITLES, usl_details, usl_line, usl_row
from cockpit.metrics.results import RunResult
from cockpit.model.text import si
from cockpit.report.charts import Axis, ChartSeries, Point, SvgChart, apart, draw, from_zero, text
from cockpit.report.encoding import struct_from
from cockpit.report.page_parts import table

# Points of the curve, and the ratio of the levels from which on the axis is logarithmic.
_POINTS = 100
_LOG_FROM = 10.0
_LABEL_DISTANCE = 0.05


class UslJson(UslFit, frozen=True, kw_only=True):
    """The law, also as text. `peak` is an extrapolation unless its interval is within the levels."""

    text: str


def usl_json(fit: UslFit) -> UslJson:
    return struct_from(UslJson, fit, text=usl_line(fit))


def fits_of(result: RunResult, fits: Iterable[UslFit]) -> tuple[UslFit, ...]:
    """Return the fits whose last level is in this run: each is listed once."""
    numbers = {segment.number for segment in result.segments}
    return tuple(fit for fit in fits if max(level.segment for level in fit.levels) in numbers)


def usl_lines(fits: Iterable[UslFit]) -> list[str]:
    lines = []
    for fit in fits:
        lines += ["", f"  {usl_line(fit)}", *(f"    {line}" for line in usl_details(fit))]
        lines += [f"  {''.join(f'{cell:>10}' for cell in row)}" for row in (USL_TITLES, *map(usl_row, fit.levels))]
    return lines


def usl_section(fit: UslFit) -> str:
    """Return the chart of a fit with its levels, as HTML."""
    details = "".join(f"<p class=soft>{text(line)}</p>" for line in usl_details(fit))
    return f"<p>{text(usl_line(fit))}</p>{details}{_chart(fit)}{table(USL_TITLES, list(map(usl_row, fit.levels)))}\n"


def _chart(fit: UslFit) -> str:
    numbers = sorted({level.concurrency for level in fit.levels})
    low, high = float(numbers[0]), float(numbers[-1])
    log = high / low > _LOG_FROM
    axis = Axis(low, high, log=log)
    labels = apart(axis, ((float(number), str(number)) for number in numbers), _LABEL_DISTANCE)
    parts = [step / _POINTS for step in range(_POINTS + 1)]
    places = [low * (high / low) ** part if log else low + (high - low) * part for part in parts]
    curve: list[Point] = [(place, fit.rate(place)) for place in places]
    series = [ChartSeries("fitted law", curve, 1)] if fit.one is not None else []
    for name, excluded, colour in (("measured", False, 0), ("excluded", True, 6)):
        levels = (level for level in fit.levels if (level.excluded is not None) is excluded)
        points: list[Point] = sorted((float(level.concurrency), level.rate) for level in levels)
        series += [ChartSeries(name, points, colour, marks=True)] if points else []
    y = from_zero(max(rate for one in series for _, rate in one.points if rate is not None), si, 1e-9)
    return draw(SvgChart("requests/s by connections", Axis(low, high, labels, log), y, series, tall=True))
