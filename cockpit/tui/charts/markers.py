"""Signs on the charts: letters of changes and other markers, with their text, and the shade of a change in
progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from cockpit.model.state import Change, Marker, State
from cockpit.model.text import clock, neutral
from cockpit.tui.charts.window import ChartWindow
from cockpit.tui.terminal.styled_line import Line, fit

# Shades of a change in progress: before its reload, and from the reload until it is active.
ASKED, RELOADING = "░", "▓"


class Band(NamedTuple):
    """A change in progress: request, start of the reload, active (or rolled back). Session seconds."""

    asked: float
    reload: float
    effect: float


def bands_of(state: State) -> list[Band]:
    """Return the spans of every change from its request to its effect, and of rollbacks."""
    bands = []
    for change in state.changes:
        over = change.ended or state.t
        effect = over if change.active_since is None else min(change.active_since, over)
        bands.append(Band(change.begun, min(_reload_of(change, effect), effect), effect))
        if (back := change.stages.get("undoing")) is not None:
            bands.append(Band(back, back, over))
    return bands


def _reload_of(change: Change, effect: float) -> float:
    """Return the start of its reload: after the test, or after the write if it has none."""
    return change.stages.get("tested", change.stages.get("written", effect))


def all_markers(state: State) -> list[Marker]:
    """Return the session's markers, and markers of changes that have none yet, at the instant at which they became
    active."""
    opened = [
        Marker(
            t=state.t if change.active_since is None else change.active_since,
            kind="change",
            sign=change.letter,
            text=f"{change.label}: {change.outcome or 'under way'}{_when(change)}",
        )
        for change in state.own_changes
        if change.outcome != "applied" and (change.active_since is not None or not change.outcome)
    ]
    return [*state.markers, *opened]


def _when(change: Change) -> str:
    """Return the instant of a rollback: its change was active from the marker until then."""
    return "" if not change.outcome or change.ended is None else f" at {clock(change.ended)}"


def words_of(marker: Marker) -> str:
    """Return the marker's text without its letter."""
    return neutral(marker.text).removeprefix(f"{marker.sign} ")


def shades(bands: Sequence[Band], window: ChartWindow) -> str:
    """Return one cell each: light from a request on, darker from its reload on, else blank."""
    row = [" "] * window.cells
    for band in bands:
        reload = window.cell(band.reload)
        for at in range(max(0, window.cell(band.asked)), min(window.cell(band.effect), window.cells - 1) + 1):
            row[at] = RELOADING if at >= reload else ASKED
    return "".join(row).rstrip()


def placed(markers: Sequence[Marker], window: ChartWindow) -> dict[int, Marker]:
    """Return markers by the cell of their letter; the second of two in one cell moves right if there is room."""
    found: dict[int, Marker] = {}
    for marker in markers:
        at = window.cell(marker.t)
        if not 0 <= at < window.cells:
            continue
        while at + 1 < window.cells and at in found:
            at += 1
        found[at] = marker
    return found


def letters(markers: dict[int, Marker], window: ChartWindow) -> str:
    row = [" "] * window.cells
    for at, marker in markers.items():
        row[at] = marker.sign[:1] or "▸"
    return "".join(row).rstrip()


def over(shaded: str, signs: str) -> str:
    """Return the letters with shades between them."""
    width = max(len(shaded), len(signs))
    return "".join(
        shade if sign == " " else sign for shade, sign in zip(shaded.ljust(width), signs.ljust(width), strict=True)
    )


def with_words(row: str, shown: dict[int, Marker], width: int) -> str:
    """Return the line of letters with the text of the markers of `shown`: clear of others if there is room on
    either side, else over them, cut only at the edge of the chart."""
    row = row.ljust(width)
    for at, marker in shown.items():
        # The shade that leads to a letter stays with it.
        words, left, rest = words_of(marker), row[:at].rstrip(ASKED + RELOADING), row[at + 1 :]
        wide = cell_len(words) + 1
        clear = [len(rest) - len(rest.lstrip()) - bool(rest.strip()), len(left) - len(left.rstrip())]
        rooms = clear if max(clear) >= wide else [len(rest), len(left)]
        wide = min(wide, max(rooms))
        if rooms[0] >= wide:
            row = row[: at + 1] + fit(f" {words}", wide) + rest[wide:]
        else:
            row = left[: len(left) - wide] + fit(words, wide - 1) + " " + row[len(left) :]
    return row.rstrip()


def with_guides(row: str, signs: str, shaded: str) -> Line:
    """Return a line of a chart with a dotted line below every sign, and a shade behind every change: in empty cells a
    glyph, in others a background colour."""
    width = max(len(signs), len(shaded))
    if not width:
        return ((row.rstrip(), "chart"),)
    pieces: list[tuple[str, str]] = []
    start = 0
    for at, (sign, shade) in enumerate(zip(signs.ljust(width), shaded.ljust(width), strict=True)):
        if row[at] == " " and (sign != " " or shade != " "):
            piece = ("┊" if sign != " " else shade, "mark")
        elif row[at] != " " and shade != " ":
            piece = (row[at], "band")
        else:
            continue
        pieces += [(row[start:at], "chart"), piece]
        start = at + 1
    return (*pieces, (row[start:].rstrip(), "chart"))
