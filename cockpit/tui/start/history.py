"""The checks of profiles over months: a row per profile, and below it the change points and a chart per metric."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static

from cockpit.document.model import Block, Document, Part, Plot, Role
from cockpit.document.text import to_text
from cockpit.model.errors import UsageError
from cockpit.model.text import count_text, sanitize
from cockpit.recording.check_history import CheckedTarget
from cockpit.tui.charts import braille
from cockpit.tui.dialogs.prompt import Dialog
from cockpit.tui.key_names import close_binding, key_hints
from cockpit.tui.key_table import SELECT, DialogKey, StartKey, ViewKey, key_names
from cockpit.tui.terminal.styled_line import EMPTY, Line, clip, content, fit, left_and_right, right

# Lines of a chart, cells of the panel, and maximum cells of a name.
_HIGH, _WIDTH, _NAME = 3, 108, 34
_ROLES: dict[Role, str] = {
    "": "text",
    "good": "better_value",
    "bad": "worse_value",
    "warn": "warn",
    "soft": "dim",
    "question": "text",
    "code": "text",
}
_PAGES = key_names(ViewKey.PAGE_UP, ViewKey.PAGE_DOWN)
_NONE = "No checks yet. cockpit check PROFILE|URL keeps its results here; --release NAME names the release."
# Text in a role, between control characters that no text of a document contains.
_IN_ROLE = re.compile("\x01([a-z]*)\x02([^\x01\x03]*)\x03|([^\x01]+)")


class HistoryReader(NamedTuple):
    """`targets` returns the checked profiles and URLs, `document_of` the history of one of them; both are called in a
    thread. The latter raises UsageError."""

    targets: Callable[[], Sequence[CheckedTarget]] = tuple
    document_of: Callable[[str], Document] = lambda target: Document(target, ())


class HistoryScreen(Dialog[None]):
    """Shows the history of the selected profile."""

    BINDINGS: ClassVar[list[BindingType]] = [
        close_binding(StartKey.HISTORY, "enter"),
        Binding(ViewKey.PAGE_UP.key, "page(-1)", ViewKey.PAGE_UP.description, priority=True),
        Binding(ViewKey.PAGE_DOWN.key, "page(1)", ViewKey.PAGE_DOWN.description, priority=True),
    ]
    DEFAULT_CSS = """
    HistoryScreen > Vertical { width: 108; height: 90%; }
    HistoryScreen OptionList {
        height: auto; max-height: 6; border: none; padding: 0; background: $surface; color: $cockpit-text;
        scrollbar-size: 1 1;
    }
    HistoryScreen OptionList:focus { background-tint: transparent; border: none; }
    HistoryScreen OptionList > .option-list--option-highlighted {
        color: $cockpit-strong; background: $cockpit-band; text-style: none;
    }
    HistoryScreen VerticalScroll { height: 1fr; border-top: solid $cockpit-rule; scrollbar-size: 1 1; }
    HistoryScreen Static { width: 1fr; height: auto; }
    """

    def __init__(self, reader: HistoryReader) -> None:
        super().__init__()
        self._reader = reader
        self._targets: Sequence[CheckedTarget] = ()

    def compose(self) -> ComposeResult:
        with Vertical() as room:
            room.border_title = Content("checks over time")
            room.border_subtitle = key_hints((SELECT, " profile"), (_PAGES, " scroll"), (DialogKey.CLOSE, " close"))
            yield OptionList(id="targets", compact=True)
            with VerticalScroll(can_focus=False):
                yield Static("loading …", id="text")

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self.run_worker(self._find())

    async def _find(self) -> None:
        self._targets = await asyncio.to_thread(self._reader.targets)
        width = self._width
        lines = [_row(checked, width) for checked in self._targets]
        self.query_one(OptionList).add_options([content([line]) for line in lines])
        if lines:
            self.query_one(OptionList).highlighted = 0
        else:
            self.query_one("#text", Static).update(Content(_NONE))

    @property
    def _width(self) -> int:
        """The cells of a line, without border, padding and scroll bar."""
        return max(20, min(_WIDTH, self.app.size.width) - 5)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self.run_worker(self._show(self._targets[event.option_index].target), exclusive=True)

    async def _show(self, target: str) -> None:
        text = self.query_one("#text", Static)
        text.update("computing the change points …")
        try:
            lines = [*document_lines(await asyncio.to_thread(self._reader.document_of, target), self._width)]
        except UsageError as error:
            lines = [((sanitize(str(error)), "warn"),)]
        text.update(content(lines))
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll the history."""
        room = self.query_one(VerticalScroll)
        room.scroll_relative(y=pages * (room.size.height - 1), animate=False)


def _row(checked: CheckedTarget, width: int) -> Line:
    newest = checked.newest
    day = datetime.fromtimestamp(newest.wall).strftime("%Y-%m-%d")
    failed = (f"  exit {newest.exit_code}", "warn") if newest.exit_code else ("", "")
    start: Line = (
        (fit(sanitize(checked.target), min(_NAME, width // 3)), ""),
        (f"  {right(count_text(checked.checks, 'check'), 10)}", "dim"),
        (f"  {sanitize(newest.release, 40)}", ""),
    )
    return left_and_right(start, (failed, (f"  {day}", "dim")), width)


def document_lines(document: Document, width: int) -> Iterator[Line]:
    """Yield a document as lines of the screen, with a chart of several lines per plot."""
    yield ((sanitize(document.title), "title"),)
    yield from _block_lines(document.lead, width)
    for part in document.sections:
        if isinstance(part, Part) and part.blocks:
            yield from (EMPTY, ((sanitize(part.title), "title"),))
            yield from _block_lines(part.blocks, width)


def _block_lines(blocks: Sequence[Block | Part], width: int) -> Iterator[Line]:
    for block in blocks:
        if isinstance(block, Part):
            yield from _block_lines(block.blocks, width)
        elif isinstance(block, Plot):
            yield from _chart(block, width)
        else:
            text = to_text(Document("", [block]), lambda words, role: f"\x01{role}\x02{words}\x03")
            for line in text.splitlines():
                pieces = ((piece[2] or piece[3] or "", piece[1] or "") for piece in _IN_ROLE.finditer(line))
                yield clip(tuple((words, _ROLES[role]) for words, role in pieces), width)  # type: ignore[index]


def _chart(plot: Plot, width: int) -> Iterator[Line]:
    """Yield title and range, a chart from 0 on that fills the width, and a line per sign at its place. A series that
    never changed has no chart."""
    [series] = plot.series
    known = [y or 0.0 for _, y in series.points]
    low, high = min(known), max(known)
    span = f"{plot.y.form(low)} to {plot.y.form(high)}" if low < high else f"always {plot.y.form(low)}"
    yield left_and_right(((sanitize(plot.title), ""),), ((span, "dim"),), width)
    if low == high:
        return
    edges = [round(at * len(known) / (2 * width)) for at in range(2 * width + 1)]
    columns = [plot.y.at(max(known[start : max(end, start + 1)] or known[-1:])) for start, end in pairwise(edges)]
    yield from (((row, "chart"),) for row in braille.area(columns, 1.0, _HIGH))
    for sign in plot.signs:
        words = f"▲ {sanitize(sign.words)}"
        # Its left edge is at the first check after the change.
        at = int(width * (sign.x + 0.5) / len(known))
        before = at if at + len(words) <= width else max(0, at + 1 - len(words))
        words = words if before == at else f"{sanitize(sign.words)} ▲"
        yield ((" " * before, ""), (words, "mark"))
