"""The cursor in the charts over time: its keys, and the values under it, in words. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace

from cockpit.analysis.time_ranges import TimeRange
from cockpit.model.host_state import HostState
from cockpit.model.text import clock, milliseconds, neutral, si
from cockpit.tui.charts.markers import all_markers
from cockpit.tui.charts.window import ChartWindow, closer, wider
from cockpit.tui.draw_context import DrawContext, View
from cockpit.tui.terminal.styled_line import Line

# Keys that move the cursor while it is in the charts, whatever the session does with them.
ALONG = ("left", "right", "home", "end", "pageup", "pagedown", "left_square_bracket", "right_square_bracket")

# In a running replay the text of a marker stays for this many seconds.
_READ = 5.0


def begun(scene: DrawContext, window: ChartWindow) -> View:
    """The cursor on the newest second that is drawn, or gone again."""
    if scene.view.cursor is not None:
        return gone(scene.view)
    newest = scene.second
    return placed_at(scene, window, min(scene.now, newest.second if newest else scene.now))


def placed_at(scene: DrawContext, window: ChartWindow, t: float) -> View:
    """The cursor at an instant of the session that has come already; the arrows move it."""
    at = max(0.0, min(t, scene.now)) // window.span * window.span
    return replace(scene.view, cursor=at, entered=False, room="column")


def moved(scene: DrawContext, window: ChartWindow, cells: int) -> View:
    """Move the cursor by cells; the window follows it into the past."""
    here = scene.cursor(window)
    return scene.view if here is None else placed_at(scene, window, here + cells * window.span)


def to_marker(scene: DrawContext, window: ChartWindow, step: int) -> View:
    """To the next (1) or previous (-1) marker or beginning of a row, in another cell than this one."""
    here = scene.cursor(window)
    if here is None:
        return scene.view
    times = sorted({*(marker.t for marker in all_markers(scene.state)), *(row.start for row in scene.state.segments)})
    ahead = [t for t in times if (window.cell(t) - window.cell(here)) * step > 0]
    return placed_at(scene, window, (ahead[0] if step > 0 else ahead[-1])) if ahead else scene.view


def gone(view: View) -> View:
    """The arrows choose rows of the runs table again."""
    return replace(view, cursor=None)


def zoomed(scene: DrawContext, window: ChartWindow, step: int) -> View:
    """More time across (1), or less (-1); the cursor stays in its place."""
    span = wider(window, scene.now) if step > 0 else closer(window)
    cursor = scene.cursor(window)
    return replace(scene.view, span=span, cursor=None if cursor is None else cursor // span * span)


def named(scene: DrawContext, window: ChartWindow) -> tuple[float, float]:
    """Return (from, to): the text of markers between them is shown: under the cursor, or recent ones."""
    cursor = scene.cursor(window)
    if cursor is not None:
        return cursor, cursor + window.span
    return max(0.0, scene.now - _READ), scene.now


def load_under(scene: DrawContext, window: ChartWindow) -> list[Line]:
    """Return the values under the cursor, the most important first; nothing without a cursor."""
    cursor = scene.cursor(window)
    if cursor is None:
        return []
    parts: list[Line] = [((clock(cursor), "strong"),)]
    found = scene.stretch(cursor, window.span)
    busy = [((words, "text"),) for host in scene.state.hosts.values() for words in _busy(host, cursor, window.span)]
    if found is None:
        return [*parts, (("no load", "dim"),), *busy]
    parts.append(((si(found.rate), "strong"), (" req/s", "text")))
    if found.failed:
        parts.append(((f"x {si(found.failed)} failed", "warn"),))
    if found.saturated:
        parts.append(((f"▒ {found.saturated} s saturated" if found.seconds > 1 else "▒ saturated", "warn"),))
    if scene.view.latency != "heat map" and found.latency.count:
        parts.append(latency_words(found))
    parts += busy
    row = next((row for row in reversed(scene.state.segments) if row.start < cursor + window.span), None)
    parts += [((f"row {row.number}", "dim"),)] if row else []
    return [*parts, ((f"{si(found.least)} to {si(found.most)}", "dim"),)] if found.seconds > 1 else parts


def latency_words(found: TimeRange) -> Line:
    """`p50 1.2 p99 9.8 max 61 ms`."""
    figures = (("p50", found.p50), ("p99", found.p99), ("max", found.latency.max))
    words = [piece for name, value in figures for piece in ((f"{name} ", "dim"), (f"{milliseconds(value)} ", "strong"))]
    return (*words, ("ms", "dim"))


def _busy(host: HostState, start: float, span: float) -> Iterator[str]:
    """The mean CPU of a host over a cell, or at the last sample before, at most a few seconds old."""
    low, high = (bisect_left(host.points, t, key=lambda point: point.t) for t in (start, start + max(1.0, span)))
    shares = [100 - point.cpu.idle for point in host.points[low:high] if point.cpu]
    if shares:
        yield f"{neutral(host.config.name)} cpu {sum(shares) / len(shares):.0f} %"


def crossed(line: Line, at: int) -> Line:
    """Return the line with the cursor in that cell: a thin line if the cell is empty, else its content highlighted."""
    made: list[tuple[str, str]] = []
    passed = 0
    for text, role in line:
        place = at - passed
        if 0 <= place < len(text):
            made += [(text[:place], role), _lit(text[place]), (text[place + 1 :], role)]
        else:
            made.append((text, role))
        passed += len(text)
    return tuple(made) if at < passed else (*made, (" " * (at - passed), ""), _lit(" "))


def _lit(char: str) -> tuple[str, str]:
    return ("│", "strong") if char in " ┊" else (char, "focus")


def times(window: ChartWindow, cursor: float | None, *scales: str) -> Line:
    """Return instants under the axis, that of the cursor first, and on the right the longest of `scales` that fits: the
    time per cell; overlapping labels are left out."""
    found: list[tuple[int, str, str]] = []

    def put(at: int, text: str, role: str) -> bool:
        clear = all(at + len(text) < start or start + len(other) < at for start, other, _ in found)
        fits = at >= 0 and at + len(text) <= window.cells and clear
        if fits:
            found.append((at, text, role))
        return fits

    right = window.cells - min(len(scale) for scale in scales)
    if cursor is not None:
        at, label = window.cell(cursor), clock(cursor)
        # Rather on the left of the cursor than over the scale, and rather there than none.
        before, behind = (at - len(label), f"{label}▲"), (at, f"▲{label}")
        for start, text in (behind, before) if at + len(label) + 1 < right else (before, behind, (at, "▲")):
            if not found:
                put(start, text, "strong")
    any(put(window.cells - len(scale), scale, "dim") for scale in sorted(scales, key=len, reverse=True))
    for at in range(0, window.cells, window.labels):
        put(at, clock(window.instant(at)), "dim")
    line: list[tuple[str, str]] = []
    end = 0
    for at, text, role in sorted(found):
        line += [(" " * (at - end), ""), (text, role)]
        end = at + len(text)
    return tuple(line)
