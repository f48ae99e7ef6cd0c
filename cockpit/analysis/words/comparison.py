"""Text rows of a comparison, shared by terminal, screen and report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cockpit.analysis.comparison import Comparison, MetricPair, distribution
from cockpit.analysis.words.factors import factor_words, is_factor
from cockpit.metrics.catalogue import entry, host_entry, latency_parts
from cockpit.metrics.units import BYTES, KIBIBYTES, LATENCY, NUMBER, PERCENT, SPAN, Unit, number_text, value_text
from cockpit.model.histogram import Histogram
from cockpit.model.text import milliseconds, sanitize, si

# Units that are shown in each cell.
_NAMED = (BYTES, KIBIBYTES, PERCENT, SPAN)
# Maximum length of a knob's value (characters).
_CUT = 200


class ComparisonRow(NamedTuple):
    """The four cells of a table row; a row with only a name is a heading."""

    name: str
    before: str = ""
    after: str = ""
    change: str = ""


def tables(comparison: Comparison) -> Iterator[tuple[str, list[ComparisonRow]]]:
    """Yield (title, rows) for load, latency, failures, and each host."""
    latency = comparison.after.result.counts.latency_name
    times = [pair for pair in comparison.metrics if _is_latency(pair)]
    yield "load", rows_of([pair for pair in comparison.metrics if not _is_latency(pair)])
    yield f"{latency} time, ms", rows_of([pair for pair in times if (pair.before, pair.after) != (None, None)])
    if comparison.errors:
        yield "failures", rows_of(comparison.errors)
    for name, pairs in comparison.hosts.items():
        yield sanitize(name), rows_of(pairs)


def rows_of(pairs: Sequence[MetricPair]) -> list[ComparisonRow]:
    """Return the rows of a table; its relative differences are all factors if one of its metrics doubled or halved."""
    factors = any(is_factor(pair.change) for pair in pairs if _is_relative(pair) and pair.change is not None)
    rows = []
    for pair in pairs:
        before, after = (value_words(pair.name, value) for value in (pair.before, pair.after))
        rows.append(ComparisonRow(sanitize(pair.name), before, after, change_of(pair, factors)))
    return rows


def differences(comparison: Comparison) -> Iterator[tuple[str, list[ComparisonRow]]]:
    """Yield (title, rows) of the differences in settings and environment."""
    for title, differing in (("settings", comparison.settings), ("environment", comparison.environment)):
        if differing:
            rows = ((difference.name, difference.before, difference.after) for difference in differing)
            yield title, [ComparisonRow(*(sanitize(text, _CUT) for text in row)) for row in rows]


def value_words(name: str, value: float | None) -> str:
    """Return a value as text: bytes and percentages with their unit, others without if the name implies it."""
    if value is None:
        return "–"
    unit = _unit(name)
    named = unit in _NAMED or (unit is LATENCY and latency_parts(name) is None)
    return (value_text if named else number_text)(unit, value, 4)


def _unit(name: str) -> Unit:
    """Return the unit of a metric of a run, or of a host, named without the host."""
    unit = entry(name).unit
    return host_entry(name).unit if unit is NUMBER else unit


def change_of(pair: MetricPair, factors: bool) -> str:
    """Return the difference without a statistical test: in points for percentages, else relative."""
    if pair.before is None or pair.after is None:
        return ""
    if pair.before == pair.after:
        return "="
    sign = "+" if pair.after > pair.before else "−"
    if _unit(pair.name) is PERCENT:
        return f"{sign}{abs(pair.after - pair.before):.1f}"
    if pair.change is None or pair.change <= -1:
        return f"{sign}{si(abs(pair.after - pair.before))}"
    return factor_words(pair.change) if factors else f"{sign}{100 * abs(pair.change):.1f}%"


def _is_relative(pair: MetricPair) -> bool:
    return _unit(pair.name) is not PERCENT


def overlaid(first: Histogram, second: Histogram, most: int, width: int) -> list[tuple[str, str, str]]:
    """Draw both latency distributions over each other, one line per bucket: (range, bars, shares).

    A cell is `█` if both reach it, `▀` only the first, `▄` only the second; `width` cells hold the largest share of
    either. Empty without data.
    """
    shares = distribution(first, second, most)
    largest = max((*shares.before, *shares.after), default=0.0)
    if largest <= 0:
        return []
    lines = []
    for low, high, before, after in zip(shares.edges, shares.edges[1:], shares.before, shares.after, strict=False):
        span = f"{milliseconds(low / 1e9):>6} – {milliseconds(high / 1e9):<6}"
        lines.append((span, bars(before / largest, after / largest, width), f"{_share(before)} {_share(after)}"))
    return lines


def bars(before: float, after: float, width: int) -> str:
    """Draw two bars (0 to 1) in one line of half cells, the upper half for `before`. Any value above 0 is visible."""
    cells = [max(1, round(share * width)) if share > 0 else 0 for share in (before, after)]
    both, longest = min(cells), max(cells)
    rest = "▀" if cells[0] > cells[1] else "▄"
    return ("█" * both + rest * (longest - both)).ljust(width)


def _share(share: float) -> str:
    return f"{100 * share:6.1f}%" if share >= 0.0005 else ("      ·" if not share else "  <0.1%")


def _is_latency(pair: MetricPair) -> bool:
    return latency_parts(pair.name) is not None


def columns(rows: Sequence[ComparisonRow]) -> tuple[int, int, int, int]:
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(4)]
    return widths[0], widths[1], widths[2], widths[3]
