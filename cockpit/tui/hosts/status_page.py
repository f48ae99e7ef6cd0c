"""A status page: its scoreboard, then all metrics with the page's names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import wrap

from rich.cells import cell_len

from cockpit.model.host.state import StatusPane
from cockpit.model.text import sanitize, si
from cockpit.servers.registry import STATUS_PAGES
from cockpit.tui.terminal.styled_line import Line, Piece, fit, right, side_by_side

_SCOREBOARD = "scoreboard"

# Cells of a value and of its rate, and minimum cells of a name.
_VALUE, _RATE, _NAME = 12, 11, 16


def page_rows(pane: StatusPane, now: float, role: str, width: int) -> tuple[Line, Sequence[Line]]:
    """Return header (kind, URL, age) and rows: texts, then metrics in up to three columns."""
    head: list[Piece] = [(pane.page.kind, "strong"), (f"  {sanitize(pane.page.url)}", "dim")]
    if pane.t is not None:
        head.append((f"  {max(0.0, now - pane.t):.0f} s ago", "dim"))
    rows: list[Line] = [((line, "warn"),) for line in wrap(sanitize(pane.detail), max(12, width))]
    if pane.t is None:
        return tuple(head), rows or [(("not read yet", "dim"),)]
    for name, text in pane.text.items():
        states = STATUS_PAGES[pane.page.kind].scoreboard if name.lower() == _SCOREBOARD else {}
        rows += _scoreboard(text, states, width) if states else _text(name, text, width)
    return tuple(head), rows + _metrics(pane, role, width)


def _scoreboard(board: str, states: Mapping[str, str], width: int) -> list[Line]:
    """Return the number of workers per state, then the scoreboard without open slots at its end."""
    counted = Counter(board)
    meaning = [(f"{counted[sign]} ", word) for sign, word in states.items() if counted[sign]]
    lines: list[Line] = []
    for line in wrap("  ".join(number + word.replace(" ", "\u00a0") for number, word in meaning), max(12, width)):
        lines.append(((line.replace("\u00a0", " "), ""),))
    slots = sanitize(board).rstrip(".")
    lines += [((slots[at : at + width], "chart"),) for at in range(0, len(slots), max(1, width))]
    return lines


def _text(name: str, text: str, width: int) -> list[Line]:
    lines = wrap(f"{sanitize(name)} {sanitize(text)}", max(12, width))
    return [((line, "dim"),) for line in lines]


def _metrics(pane: StatusPane, role: str, width: int) -> list[Line]:
    cells = [(name, value, pane.rates.get(name)) for name, value in pane.values.items()]
    if not cells:
        return []
    longest = max(cell_len(sanitize(name)) for name, _, _ in cells)
    needed = max(_NAME, longest) + _VALUE + _RATE
    columns = max(1, min(3, (width + 3) // (needed + 3)))
    each = min(needed, (width - 3 * (columns - 1)) // columns)
    row_count = -(-len(cells) // columns)
    lines = [_metric(*cell, role, each) for cell in cells]
    return side_by_side([lines[at : at + row_count] for at in range(0, len(lines), row_count)], each, ("   ", ""))


def _metric(name: str, value: float, rate: float | None, role: str, width: int) -> Line:
    per_second = f"{si(rate)}/s" if rate is not None else ""
    room = width - _VALUE - _RATE
    return (
        (fit(sanitize(name), max(4, room)), "dim"),
        (right(_plain(value), _VALUE), role),
        (right(per_second, _RATE), role),
    )


def _plain(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e10 else si(value, 4)
