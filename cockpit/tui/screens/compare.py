"""One row of the runs table against another: verdict, what differs, figures side by side, latencies over each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Static

from cockpit.analysis.comparison import Comparison, compare
from cockpit.analysis.comparison_words import Row, columns, different, overlaid, tables
from cockpit.analysis.sides import Side, side_of_rows
from cockpit.analysis.words import method_lines, verdict_words
from cockpit.model.errors import UsageError
from cockpit.model.state import State
from cockpit.model.text import neutral
from cockpit.session.loop import Session
from cockpit.tui.cells import EMPTY, Line, beside, length
from cockpit.tui.scene import by_number
from cockpit.tui.theme import VARIABLES

# Seconds between two looks at a row that still grows; all of it is worked out anew.
_REFRESH = 2.0
# From this width on the tables stand in two columns.
_BROAD = 100
_BUCKETS = 16
_SPAN, _SHARES = 16, 17
_BEFORE, _AFTER = VARIABLES["cockpit-chart"], VARIABLES["cockpit-mark"]
_STYLES = {
    "strong": f"bold {VARIABLES['cockpit-strong']}",
    "dim": VARIABLES["cockpit-dim"],
    "warn": VARIABLES["cockpit-warn"],
    "rule": VARIABLES["cockpit-rule"],
    "before": _BEFORE,
    "after": _AFTER,
    "both": f"{_BEFORE} on {_AFTER}",
}


class CompareScreen(ModalScreen[None]):
    """The rows of these numbers; while the session goes on it follows them."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,c,q,enter", "dismiss(None)", "close")]
    DEFAULT_CSS = """
    CompareScreen { align: center middle; background: transparent; }
    CompareScreen > VerticalScroll {
        width: 100%; height: 100%; padding: 0 1; border: solid $cockpit-chart; background: $surface;
    }
    CompareScreen Static { width: 1fr; }
    """

    def __init__(self, session: Session, before: int, after: int) -> None:
        super().__init__()
        self.session = session
        self.rows = (before, after)
        self._drawn: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        with VerticalScroll() as room:
            room.border_title, room.border_subtitle = "compare", "Esc closes"
            yield Static()

    def on_mount(self) -> None:
        self.set_interval(_REFRESH, self.frame)
        self.frame()

    def on_resize(self, event: Resize) -> None:
        self.frame()

    def frame(self) -> None:
        """Draws the rows, if they or the room for them are others than those drawn last."""
        state = self.session.state
        width = max(30, self.size.width - 6)
        now = (*(by_number(state.segments, number) for number in self.rows), width)
        if now != self._drawn:
            self._drawn = now
            self.query_one(Static).update(_text(comparison_lines(state, *self.rows, width)))


def comparison_lines(state: State, before: int, after: int, width: int) -> list[Line]:
    """All that the screen shows, in `width` cells; a line that says why where there is nothing to compare."""
    try:
        found = compare(_side(state, before), _side(state, after))
    except UsageError as error:
        return [((neutral(str(error)), "warn"),)]
    lines: list[Line] = [
        (("before  ", "before"), (_named(state, before), "")),
        (("after   ", "after"), (_named(state, after), "")),
        EMPTY,
        *_verdict(found),
    ]
    for title, rows in different(found):
        lines += [EMPTY, *_table(f"{title} that differ", rows)]
    blocks = [_table(title, rows) for title, rows in tables(found)]
    return [*lines, EMPTY, *_arranged(blocks, len(found.hosts), width), *_distribution(found, width)]


def _side(state: State, number: int) -> Side:
    row = by_number(state.segments, number)
    return side_of_rows(state, [row] if row else [], f"row {number}")


def _named(state: State, number: int) -> str:
    row = by_number(state.segments, number)
    return f"row {number}: {neutral(row.label)}, {row.seconds:.1f} s" if row else f"row {number}"


def _verdict(found: Comparison) -> Iterator[Line]:
    for verdict in found.verdicts:
        yield ((verdict_words(verdict), "strong"),)
        for line in method_lines(verdict):
            yield ((f"  {line}", "warn" if line.startswith("!") else "dim"),)


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
    """In two columns where there is room: figures of the load left, those of the `hosts` last ones right."""
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


def _text(lines: Sequence[Line]) -> Text:
    made = Text(no_wrap=False)
    for line in lines:
        for text, role in line:
            made.append(text, _STYLES.get(role, ""))
        made.append("\n")
    return made
