"""The alert in the header: a stalled server; failed requests by kind, with the time of the first."""

from __future__ import annotations

from cockpit.analysis.failures import Failures, Stall, failures, stall
from cockpit.model.state import Segment, State
from cockpit.model.text import elapsed, share_words, si
from cockpit.tui.charts.threshold_lines import other_thresholds
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Line, clip, join_fitting, length

# Seconds without a response from which the header shows it.
_NOTABLE = 1.0


def alert(context: DrawContext, width: int) -> Line:
    """Return the parts that fit, the most serious first; empty if there is nothing to report."""
    state, segment = context.state, context.segment
    failing = failures(state, segment) if segment else None
    stalled = stall(state)
    if stalled is not None and stalled.seconds < _NOTABLE:
        stalled = None
    parts = _stall_parts(stalled) if stalled else []
    if segment is not None and failing is not None:
        parts += _failure_parts(failing, state, segment, bool(parts))
    parts += other_thresholds(context, failed=True)
    return clip(parts[0], width) if parts and length(parts[0]) > width else join_fitting(parts, width)


def _stall_parts(stall: Stall) -> list[Line]:
    return [
        ((f" NO RESPONSE for {stall.seconds:.1f} s ", "alarm"),),
        ((f"{stall.in_flight} in flight, oldest {stall.oldest:.1f} s", "failed"),),
    ]


def _failure_parts(failing: Failures, state: State, segment: Segment, stalled: bool) -> list[Line]:
    start = next(each.start for each in state.segments if each.run == segment.run)
    now = failing.failing
    if now is None:
        last = elapsed(max(0.0, failing.last - start))
        return [((f"x {failed_words(failing)}", "failed"),), ((f"last at {last}", "dim"),)]
    since = elapsed(max(0.0, now.since - start))
    parts: list[Line] = [((f"{si(now.rate)}/s failed ({share_words(now.share)}): {_kinds(failing)}", "failed"),)]
    if stalled:
        return parts
    words = f" TARGET DOWN since {since} " if now.down else f" x FAILING since {since} "
    return [((words, "alarm"),), *parts]


def failed_words(failing: Failures) -> str:
    """Return the failed requests of a segment with their kinds: `2k of 9k failed (22.2%): refused 2000`."""
    return f"{si(failing.failed)} of {si(failing.ended)} failed ({share_words(failing.share)}): {_kinds(failing)}"


def _kinds(failing: Failures) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in failing.kinds)
