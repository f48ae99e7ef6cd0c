"""Thresholds on the charts: a dashed line at the limit, with a sign for the threshold's state."""

from __future__ import annotations

from cockpit.analysis.thresholds import Status, ThresholdResult
from cockpit.model.metrics import is_latency
from cockpit.model.text import neutral
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Line, Piece

_LINE = "╌"
_EMPTY = " ┊"
# Sign and role by state; unknown: no data yet, or the interval includes the limit of a stored baseline.
_HOLDS, _FAILED, _UNKNOWN = ("✓", "better_value"), ("✗", "failed"), ("?", "dim")


def is_latency_line(one: ThresholdResult) -> bool:
    """Return whether the threshold limits a latency, which the latency chart shows."""
    return one.limit is not None and is_latency(one.threshold.name.removeprefix("response."))


def is_rate_line(one: ThresholdResult) -> bool:
    return one.limit is not None and one.threshold.name == "rate"


def other_thresholds(context: DrawContext, *, failed: bool = False) -> list[Line]:
    """Return state and text of the thresholds that no chart draws; `failed`: only failed thresholds."""
    others = [one for one in context.thresholds if not is_latency_line(one) and not is_rate_line(one)]
    signed = [(state_of(one), neutral(one.threshold.text)) for one in others]
    return [(sign, (f" {text}", sign[1])) for sign, text in signed if sign == _FAILED or not failed]


def state_of(one: ThresholdResult) -> Piece:
    """Return sign and role of the threshold's state."""
    if one.found is None or one.status is Status.INCONCLUSIVE:
        return _UNKNOWN
    return _HOLDS if one.status is Status.HOLDS else _FAILED


def threshold_cells(one: ThresholdResult, drawn: str) -> dict[int, Piece]:
    """Return the cells of the threshold's line by index in `drawn`: dashes in empty cells, and the text in the last
    gap that is wide enough, otherwise at the left end over other cells."""
    sign, role = state_of(one)
    text = f" {sign} {neutral(one.threshold.text)} "[: len(drawn)]
    cells: dict[int, Piece] = {at: (_LINE, role) for at, char in enumerate(drawn) if char in _EMPTY}
    blank = "".join(" " if at in cells else "x" for at in range(len(drawn)))
    start = max(0, blank.rfind(" " * len(text)))
    return cells | {start + at: (char, role) for at, char in enumerate(text)}
