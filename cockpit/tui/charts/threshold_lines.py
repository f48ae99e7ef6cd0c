"""Thresholds on the charts: a dashed line at the limit, with a sign for the threshold's state."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.analysis.thresholds import Status, ThresholdResult
from cockpit.metrics.catalogue import is_latency
from cockpit.model.text import sanitize
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Line, Piece, clip, length

_LINE = "╌"
_EMPTY = " ┊"
# Sign and role by state; unknown: no data yet, or the interval includes the limit of a stored baseline.
_HOLDS, _FAILED, _UNKNOWN = ("✓", "better_value"), ("✗", "failed"), ("?", "dim")


def is_latency_line(result: ThresholdResult) -> bool:
    """Return whether the threshold limits a latency, which the latency chart shows."""
    return result.limit is not None and is_latency(result.threshold.name.removeprefix("response."))


def is_rate_line(result: ThresholdResult) -> bool:
    return result.limit is not None and result.threshold.name == "rate"


def other_thresholds(context: DrawContext, *, failed: bool = False) -> list[Line]:
    """Return state and text of the thresholds that no chart draws; `failed`: only failed thresholds."""
    others = [result for result in context.thresholds if not is_latency_line(result) and not is_rate_line(result)]
    signed = [(state_of(result), sanitize(result.threshold.text)) for result in others]
    return [(sign, (f" {text}", sign[1])) for sign, text in signed if sign == _FAILED or not failed]


def state_of(result: ThresholdResult) -> Piece:
    """Return sign and role of the threshold's state."""
    if result.value is None or result.status is Status.INCONCLUSIVE:
        return _UNKNOWN
    return _HOLDS if result.status is Status.HOLDS else _FAILED


def threshold_line(results: Sequence[ThresholdResult], width: int) -> Line:
    """Return a line for the thresholds of one limit: dashes, and their texts at the right end."""
    signed = [(state_of(result), sanitize(result.threshold.text)) for result in results]
    texts = clip(tuple((f" {sign} {text} ", role) for (sign, role), text in signed), width)
    return ((_LINE * (width - length(texts)), signed[0][0][1]), *texts)


def threshold_cells(result: ThresholdResult, drawn: str) -> dict[int, Piece]:
    """Return the cells of the threshold's line by index in `drawn`: dashes in empty cells, and the text in the last
    gap that is wide enough, otherwise at the left end over other cells."""
    sign, role = state_of(result)
    text = f" {sign} {sanitize(result.threshold.text)} "[: len(drawn)]
    cells: dict[int, Piece] = {at: (_LINE, role) for at, char in enumerate(drawn) if char in _EMPTY}
    blank = "".join(" " if at in cells else "x" for at in range(len(drawn)))
    start = max(0, blank.rfind(" " * len(text)))
    return cells | {start + at: (char, role) for at, char in enumerate(text)}
