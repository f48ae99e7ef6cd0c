"""Signs on the charts: letters and texts of changes and other markers, and lines of changes in progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from cockpit.analysis.words.timeline import marker_sign, marker_text
from cockpit.model.markers import Marker
from cockpit.model.state import State
from cockpit.model.text import sanitize
from cockpit.tui.charts.window import ChartWindow
from cockpit.tui.terminal.styled_line import Line, fit

# Lines of a change in progress: before its reload, and from the reload until it is active.
ASKED, RELOADING = "╌", "━"


class Band(NamedTuple):
    """A change in progress: its request, the start of its reload, and its effect or rollback, in session seconds."""

    requested: float
    reload: float
    effect: float


def bands_of(state: State) -> list[Band]:
    """Return the band of each change from its request to its effect, and of each rollback."""
    bands = []
    for change in state.changes:
        over = change.ended or state.t
        effect = over if change.active_since is None else min(change.active_since, over)
        # After the configuration test, or after the write if there was no test.
        reload = change.stages.get("tested", change.stages.get("written", effect))
        bands.append(Band(change.begun, min(reload, effect), effect))
        if (rollback := change.stages.get("undoing")) is not None:
            bands.append(Band(rollback, rollback, over))
    return bands


def marker_label(marker: Marker) -> str:
    """Return the marker's text without its letter."""
    return sanitize(marker_text(marker)).removeprefix(f"{marker_sign(marker)} ")


def shades(bands: Sequence[Band], window: ChartWindow) -> str:
    """Return one character per cell: ASKED from a change's request on, RELOADING from its reload on, else blank."""
    row = [" "] * window.cells
    for band in bands:
        reload = window.cell(band.reload)
        for at in range(max(0, window.cell(band.requested)), min(window.cell(band.effect), window.cells - 1) + 1):
            row[at] = RELOADING if at >= reload else ASKED
    return "".join(row).rstrip()


def markers_by_cell(markers: Sequence[Marker], window: ChartWindow) -> dict[int, Marker]:
    """Return markers by the cell of their letter; a second marker in a cell moves right if there is room."""
    cells: dict[int, Marker] = {}
    for marker in markers:
        at = window.cell(marker.t)
        if not 0 <= at < window.cells:
            continue
        while at + 1 < window.cells and at in cells:
            at += 1
        cells[at] = marker
    return cells


def letters(markers: dict[int, Marker], window: ChartWindow) -> str:
    row = [" "] * window.cells
    for at, marker in markers.items():
        row[at] = marker_sign(marker)[:1] or "▸"
    return "".join(row).rstrip()


def letters_over_shades(shaded: str, signs: str) -> str:
    """Return the letters with shades between them."""
    width = max(len(shaded), len(signs))
    return "".join(
        shade if sign == " " else sign for shade, sign in zip(shaded.ljust(width), signs.ljust(width), strict=True)
    )


def with_marker_texts(row: str, shown: dict[int, Marker], width: int) -> str:
    """Return the line of letters with the texts of the markers in `shown`.

    A text is put beside its letter where it hides no other letter, otherwise over other letters; it is cut only at
    the edge of the chart.
    """
    row = row.ljust(width)
    for at, marker in shown.items():
        # The shade before a letter stays beside it, so a text on the left ends before the shade.
        words, left, rest = marker_label(marker), row[:at].rstrip(ASKED + RELOADING), row[at + 1 :]
        needed = cell_len(words) + 1
        free = [len(rest) - len(rest.lstrip()) - bool(rest.strip()), len(left) - len(left.rstrip())]
        rooms = free if max(free) >= needed else [len(rest), len(left)]
        needed = min(needed, max(rooms))
        if rooms[0] >= needed:
            row = row[: at + 1] + fit(f" {words}", needed) + rest[needed:]
        else:
            row = left[: len(left) - needed] + fit(words, needed - 1) + " " + row[len(left) :]
    return row.rstrip()


def with_guides(row: str, signs: str) -> Line:
    """Return a line of a chart with a dotted line below each sign: in empty cells, and as a colour in others."""
    pieces: list[tuple[str, str]] = []
    start = 0
    for at, sign in enumerate(signs):
        if sign != " ":
            pieces += [(row[start:at], "chart"), ("┊" if row[at] == " " else row[at], "mark")]
            start = at + 1
    return (*pieces, (row[start:].rstrip(), "chart"))
