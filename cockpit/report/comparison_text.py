"""A comparison for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.analysis.comparison import Comparison
from cockpit.analysis.comparison_words import Row, columns, different, overlaid, tables
from cockpit.analysis.sides import Side
from cockpit.model.text import clock, neutral
from cockpit.report.summary import plan_words
from cockpit.report.verdicts import verdict_lines

_BUCKETS = 20
_BARS = 44


def comparison_text(comparison: Comparison) -> str:
    """Several lines, without a line end after the last."""
    lines = [
        f"before  {side_words(comparison.before)}",
        f"after   {side_words(comparison.after)}",
        f"load    {plan_words(comparison.after.result.plan)}",
    ]
    if comparison.load:
        lines.append(f"  ! the load differs: {', '.join(comparison.load)}")
    lines += verdict_lines(comparison.verdicts)
    for title, rows in different(comparison):
        lines += ["", *_table(Row(f"{title} that differ", "before", "after"), rows)]
    for title, rows in tables(comparison):
        lines += ["", *_table(Row(title, "before", "after", "differs by"), rows)]
    drawn = overlaid(comparison, _BUCKETS, _BARS)
    if drawn:
        name = comparison.after.result.counts.latency_name
        lines += ["", f"  {name} time, ms{'':<{_BARS}}before   after   (█ both, ▀ before alone, ▄ after alone)"]
        lines += [f"  {span} {bars} {shares}" for span, bars, shares in drawn]
    return "\n".join(lines)


def side_words(side: Side) -> str:
    """Return the origin of a side: its name as requested, its segments, and its times in the session."""
    first, last = side.rows[0], side.rows[-1]
    runs = sorted({row.run for row in side.rows})
    told = f"run {runs[0]}" if len(runs) == 1 else f"runs {runs[0]} to {runs[-1]}"
    label = first.label if len(side.rows) == 1 else f"{first.label} and {len(side.rows) - 1} rows more"
    return f"{neutral(side.name)}  {told}, {neutral(label)}, {clock(first.start)} to {clock(last.last)}"


def _table(head: Row, rows: Sequence[Row]) -> list[str]:
    widths = columns([head, *rows])
    lines = []
    for row in (head, *rows):
        figures = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append(f"  {row.name:<{widths[0]}}  {'  '.join(figures)}".rstrip())
    return lines
