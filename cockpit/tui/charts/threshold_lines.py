"""Thresholds on the charts: a dashed line at the limit, with a sign for its state."""

from __future__ import annotations

from cockpit.analysis.thresholds import Status, ThresholdResult
from cockpit.model.metrics import is_latency
from cockpit.model.text import neutral
from cockpit.tui.terminal.styled_line import Piece

_LINE = "╌"
_EMPTY = " ┊"
# Sign and role by state; a metric without data has neither held nor failed.
_HOLDS, _FAILED, _UNKNOWN = ("✓", "better_value"), ("✗", "failed"), ("?", "dim")


def is_latency_line(one: ThresholdResult) -> bool:
    """Return whether it limits the latency that the chart shows."""
    return is_latency(one.threshold.name.removeprefix("response."))


def is_rate_line(one: ThresholdResult) -> bool:
    return one.threshold.name == "rate"


def state_of(one: ThresholdResult) -> Piece:
    """Return sign and role of its state."""
    if one.found is None:
        return _UNKNOWN
    return _HOLDS if one.status is Status.HOLDS else _FAILED


def threshold_cells(one: ThresholdResult, drawn: str) -> dict[int, Piece]:
    """Return the cells of its line through `drawn`: in empty cells a dash, and its text where there is most room on
    the right, else at the left end over the others."""
    sign, role = state_of(one)
    text = f" {sign} {neutral(one.threshold.text)} "[: len(drawn)]
    cells: dict[int, Piece] = {at: (_LINE, role) for at, char in enumerate(drawn) if char in _EMPTY}
    blank = "".join(" " if at in cells else "x" for at in range(len(drawn)))
    start = max(0, blank.rfind(" " * len(text)))
    return cells | {start + at: (char, role) for at, char in enumerate(text)}
