"""A segment of the runs table vs its baseline: the verdict in full, differences, metrics side by side,
latencies over each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from cockpit.analysis.comparison import Comparison, compare
from cockpit.analysis.comparison_words import Row, columns, differences, overlaid, tables
from cockpit.analysis.sides import side_of_rows
from cockpit.model.errors import UsageError
from cockpit.model.state import Segment
from cockpit.model.text import neutral
from cockpit.tui.draw_context import DrawContext, View, by_number
from cockpit.tui.runs.verdict_lines import judged, verdict_lines
from cockpit.tui.terminal.content import content
from cockpit.tui.terminal.styled_line import EMPTY, Line, beside, length

# Seconds between updates of a growing segment; each computes all of it.
_REFRESH = 2.0
# From this width on the tables are in two columns.
_BROAD = 100
_BUCKETS = 16
_SPAN, _SHARES = 16, 17


class CompareScreen(ModalScreen[None]):
    """Follows `scene()` while the session runs. It starts with the selected segment, and stays with it until another is
    selected; `look` is called with a new baseline."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "row(-1)", "row before"),
        Binding("right", "row(1)", "next row"),
        Binding("b", "baseline", "baseline"),
        Binding("escape,c,q,enter", "dismiss(None)", "close"),
    ]
    DEFAULT_CSS = """
    CompareScreen { align: center middle; background: transparent; }
    CompareScreen > VerticalScroll {
        width: 100%; height: 100%; padding: 0 1; border: solid $cockpit-chart; background: $surface;
        border-title-color: $cockpit-strong; scrollbar-size: 1 1;
    }
    CompareScreen Static { width: 1fr; }
    """

    def __init__(self, scene: Callable[[], DrawContext], look: Callable[[View], None]) -> None:
        super().__init__()
        self.scene, self.look = scene, look
        row = scene().row
        self.number = row.number if row else 0
        self._drawn: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        with VerticalScroll() as room:
            room.border_title = "compare"
            room.border_subtitle = "↑ ↓ scroll   ← → other row   b baseline   Esc close"
            yield Static(id="text")

    def on_mount(self) -> None:
        self.set_interval(_REFRESH, self.frame)
        self.frame()

    def on_resize(self) -> None:
        self.frame()

    def action_row(self, step: int) -> None:
        """The row above or below in the table."""
        last = len(self.scene().state.segments)
        self.number = max(1, min(self.number + step, last))
        self.query_one(VerticalScroll).scroll_home(animate=False)
        self.frame()

    def action_baseline(self) -> None:
        """Others are compared with this row from now on."""
        self.look(replace(self.scene().view, baseline=self.number))
        self.frame()

    def frame(self) -> None:
        """Draw the segments, if they or their room have changed."""
        scene = self.scene()
        row = by_number(scene.state.segments, self.number)
        width = max(30, self.size.width - 6)
        if row is None or (now := (row, scene.before(row), scene.view.baseline, width)) == self._drawn:
            return
        self._drawn = now
        self.query_one(Static).update(content(comparison_lines(scene, row, width)))


def comparison_lines(scene: DrawContext, row: Segment, width: int) -> list[Line]:
    """All that the screen shows, in `width` cells."""
    lines, before = verdict_lines(scene, row, width), scene.before(row)
    if before is None:
        return lines
    try:
        found = compare(*(side_of_rows(scene.state, [one], f"row {one.number}") for one in (before, row)))
    except UsageError as error:
        return [*lines, EMPTY, ((neutral(str(error)), "warn"),)]
    if found.load:
        lines += [EMPTY, (("Whatever the load:", "strong"),)]
        lines += [line for verdict in found.verdicts for line in judged(verdict, width)]
    lines += [EMPTY, (("before  ", "before"), (_named(before), "")), (("after   ", "after"), (_named(row), ""))]
    for title, rows in differences(found):
        lines += [EMPTY, *_table(f"{title} that differ", rows)]
    blocks = [_table(title, rows) for title, rows in tables(found)]
    return [*lines, EMPTY, *_arranged(blocks, len(found.hosts), width), *_distribution(found, width)]


def _named(row: Segment) -> str:
    return f"row {row.number}: {neutral(row.label)}, {row.seconds:.1f} s"


def _table(title: str, rows: Sequence[Row]) -> list[Line]:
    last = "differs by" if any(row.change for row in rows) else ""
    widths = columns([Row(title, "before", "after", last), *rows])
    roles = zip(("before", "after", last), widths[1:], ("before", "after", "dim"), strict=True)
    lines: list[Line] = [
        ((f"{title:<{widths[0]}}", "strong"), *((f"  {name:>{wide}}", role) for name, wide, role in roles))
    ]
    for row in rows:
        cells = (f"  {cell:>{wide}}" for cell, wide in zip(row[1:], widths[1:], strict=True))
        lines.append(((f"{row.name:<{widths[0]}}", "dim"), *((cell, "") for cell in cells)))
    return lines


def _arranged(blocks: Sequence[list[Line]], hosts: int, width: int) -> list[Line]:
    """Return two columns if there is room: metrics of the load left, those of the `hosts` last ones right."""
    half, parts = width // 2 - 2, (blocks[: len(blocks) - hosts], blocks[len(blocks) - hosts :])
    left, right = ([line for block in part for line in (*block, EMPTY)] for part in parts)
    if not right or width < _BROAD or any(length(line) > half for line in (*left, *right)):
        return [*left, *right]
    return [*beside([left, right], half, max(len(left), len(right))), EMPTY]


def _distribution(found: Comparison, width: int) -> list[Line]:
    drawn = overlaid(found, _BUCKETS, max(8, width - _SPAN - _SHARES - 3))
    if not drawn:
        return []
    name = found.after.result.counts.latency_name
    lines: list[Line] = [((f"{name} time, ms  ", "strong"), ("▀ before  ", "before"), ("▄ after", "after"))]
    for span, bars, shares in drawn:
        lines.append(((f"{span} ", "dim"), *_coloured(bars), (f" {shares}", "")))
    return lines


def _coloured(bars: str) -> Iterator[tuple[str, str]]:
    """Both bars in their own colours, the upper half of a cell and the lower one."""
    both = bars.count("█")
    if both:
        yield "▀" * both, "both"
    yield bars[both:], "before" if "▀" in bars else "after"
