"""Comparison of a segment with its baseline: the full verdict, differing settings, metrics side by side, and the
latency distributions overlaid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from cockpit.analysis.comparison import Comparison, compare
from cockpit.analysis.verdicts.sides import side_of_segments
from cockpit.analysis.words.comparison import ComparisonRow, columns, differences, overlaid, tables
from cockpit.analysis.words.timeline import segment_label
from cockpit.model.errors import UsageError
from cockpit.model.state import Segment
from cockpit.model.text import sanitize
from cockpit.tui.dialogs.prompt import Dialog
from cockpit.tui.draw_context import DrawContext, View, by_number
from cockpit.tui.key_names import bindings, close_binding, key_hints
from cockpit.tui.key_table import CompareKey, DialogKey, MainKey, key_names
from cockpit.tui.runs.scaling import scaling_lines
from cockpit.tui.runs.verdict_lines import method_lines, verdict_details, verdict_lines
from cockpit.tui.terminal.styled_line import EMPTY, Line, Piece, content, length, side_by_side

# Seconds between updates of a growing segment.
_REFRESH = 2.0
# Minimum width (cells) for tables in two columns.
_BROAD = 100
_BUCKETS = 16
_SPAN, _SHARES = 16, 17
_HINTS = (
    *(("↑ ↓", " scroll"), (key_names(CompareKey.LEFT, CompareKey.RIGHT), " other segment")),
    *((CompareKey.BASELINE, " baseline"), (CompareKey.METHOD, " method"), (DialogKey.CLOSE, " close")),
)


class CompareScreen(Dialog[None]):
    """Compares a segment, initially the selected one, while the session continues; `set_view` sets the baseline."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(CompareKey), close_binding(MainKey.COMPARE, "enter")]
    DEFAULT_CSS = """
    CompareScreen > VerticalScroll { width: 100%; height: 100%; }
    CompareScreen Static { width: 1fr; }
    """

    def __init__(self, context: Callable[[], DrawContext], set_view: Callable[[View], None]) -> None:
        super().__init__()
        self.context, self.set_view = context, set_view
        segment = context().segment
        self.number = segment.number if segment else 0
        self._drawn: tuple[object, ...] = ()
        self._with_method = False

    def compose(self) -> ComposeResult:
        with VerticalScroll() as room:
            room.border_title = "compare"
            room.border_subtitle = key_hints(*_HINTS)
            yield Static(id="text")

    def on_mount(self) -> None:
        self.set_interval(_REFRESH, self.frame)
        self.frame()

    def on_resize(self) -> None:
        self.frame()

    def action_segment(self, step: int) -> None:
        """Select the next or previous segment."""
        last = len(self.context().state.segments)
        self.number = max(1, min(self.number + step, last))
        self.query_one(VerticalScroll).scroll_home(animate=False)
        self.frame()

    def action_baseline(self) -> None:
        """Make this segment the baseline."""
        self.set_view(replace(self.context().view, baseline=self.number))
        self.frame()

    def action_method(self) -> None:
        """Show or hide how the verdict was reached."""
        self._with_method = not self._with_method
        self.frame()
        if self._with_method:
            self.query_one(VerticalScroll).scroll_end(animate=False)

    def frame(self) -> None:
        """Draw the comparison if the segments, the baseline or the width changed."""
        context = self.context()
        segment = by_number(context.state.segments, self.number)
        width = max(30, self.size.width - 6)
        shown = (context.view.baseline, width, self._with_method)
        if segment is None or (now := (segment, context.before(segment), *shown)) == self._drawn:
            return
        self._drawn = now
        lines = comparison_lines(context, segment, width)
        lines += [EMPTY, *method_lines(context, segment, width)] if self._with_method else []
        self.query_one(Static).update(content(lines))


def comparison_lines(context: DrawContext, segment: Segment, width: int) -> list[Line]:
    lines = [*verdict_lines(context, segment, width), *scaling_lines(context.state, segment, width)]
    before = context.before(segment)
    if before is None:
        return lines
    names = [
        EMPTY,
        (("before  ", "before"), (_segment_name(before), "")),
        (("after   ", "after"), (_segment_name(segment), "")),
    ]
    try:
        sides = (side_of_segments(context.state, [each], f"segment {each.number}") for each in (before, segment))
        comparison = compare(*sides)
    except UsageError as error:
        return [*lines, *names, EMPTY, ((sanitize(str(error)), "warn"),)]
    if comparison.load:
        lines += [EMPTY, (("Independent of the load:", "strong"),)]
        lines += [line for verdict in comparison.verdicts for line in verdict_details(verdict, width)]
    lines += names
    for title, rows in differences(comparison):
        lines += [EMPTY, *comparison_table(f"{title} that differ", rows)]
    blocks = [comparison_table(title, rows) for title, rows in tables(comparison)]
    return [*lines, EMPTY, *_arranged(blocks, len(comparison.hosts), width), *_distribution(comparison, width)]


def _segment_name(segment: Segment) -> str:
    return f"segment {segment.number}: {sanitize(segment_label(segment))}, {segment.seconds:.1f} s"


def comparison_table(title: str, rows: Sequence[ComparisonRow]) -> list[Line]:
    """Return a header and a line per row."""
    last = "differs by" if any(row.change for row in rows) else ""
    widths = columns([ComparisonRow(title, "before", "after", last), *rows])
    roles = zip(("before", "after", last), widths[1:], ("before", "after", "dim"), strict=True)
    lines: list[Line] = [
        ((f"{title:<{widths[0]}}", "strong"), *((f"  {name:>{cell_width}}", role) for name, cell_width, role in roles))
    ]
    for row in rows:
        cells = (f"  {cell:>{cell_width}}" for cell, cell_width in zip(row[1:], widths[1:], strict=True))
        lines.append(((f"{row.name:<{widths[0]}}", "dim"), *((cell, "") for cell in cells)))
    return lines


def _arranged(blocks: Sequence[list[Line]], hosts: int, width: int) -> list[Line]:
    """Return two columns if there is room: metrics of the load left, the `hosts` last blocks right."""
    half, parts = width // 2 - 2, (blocks[: len(blocks) - hosts], blocks[len(blocks) - hosts :])
    left, right = ([line for block in part for line in (*block, EMPTY)] for part in parts)
    if not right or width < _BROAD or any(length(line) > half for line in (*left, *right)):
        return [*left, *right]
    return [*side_by_side([left, right], half), EMPTY]


def _distribution(comparison: Comparison, width: int) -> list[Line]:
    before, after = (side.result.counts.latency for side in (comparison.before, comparison.after))
    drawn = overlaid(before, after, _BUCKETS, max(8, width - _SPAN - _SHARES - 3))
    if not drawn:
        return []
    name = comparison.after.result.counts.latency_name
    lines: list[Line] = [((f"{name} time, ms  ", "strong"), ("▀ before  ", "before"), ("▄ after", "after"))]
    for span, bars, shares in drawn:
        lines.append(((f"{span} ", "dim"), *_coloured(bars), (f" {shares}", "")))
    return lines


def _coloured(bars: str) -> Iterator[Piece]:
    """Yield the pieces of two overlaid bars: their common cells, then the rest of the longer bar."""
    both = bars.count("█")
    if both:
        yield "▀" * both, "both"
    yield bars[both:], "before" if "▀" in bars else "after"
