"""The alert in the header: a stalled server; failed requests by kind, with the time of the first; other programs that
take CPU before the load starts."""

from __future__ import annotations

from statistics import fmean

from cockpit.analysis.failures import Failures, failures, stall
from cockpit.analysis.verdicts.other_load import TAKES
from cockpit.model.state import Segment, State
from cockpit.model.text import elapsed, sanitize, share_words, si
from cockpit.session.controls import Mode
from cockpit.tui.charts.threshold_lines import other_thresholds
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Line, clip, join_fitting, length

# Seconds without a response from which the header shows it.
_NOTABLE = 1.0
# Newest readings of other load; single readings are off by some percentage points.
_READINGS = 5


def alert(context: DrawContext, width: int) -> Line:
    """Return the parts that fit, the most serious first; empty if there is nothing to report."""
    state, segment = context.state, context.segment
    failing = failures(state, segment) if segment else None
    parts: list[Line] = []
    if (stalled := stall(state)) is not None and stalled.seconds >= _NOTABLE:
        parts.append(((f" NO RESPONSE for {stalled.seconds:.1f} s ", "alarm"),))
        parts.append(((f"{stalled.in_flight} in flight, oldest {stalled.oldest:.1f} s", "failed"),))
    if segment is not None and failing is not None:
        parts += _failure_parts(failing, state, segment, bool(parts))
    parts += other_thresholds(context, failed=True)
    if context.mode is Mode.LIVE and state.running is None:
        parts += _other_load(state)
    return clip(parts[0], width) if parts and length(parts[0]) > width else join_fitting(parts, width)


def _other_load(state: State) -> list[Line]:
    """Return the CPU that other programs take on hosts without load, if it would limit verdicts."""
    shares = {
        host.config.name: fmean(known)
        for host in state.hosts.values()
        if (known := [point.other for point in host.points[-_READINGS:] if point.other is not None])
    }
    taken = [f"{share:.0f}% of {sanitize(name)}" for name, share in shares.items() if share >= 100 * TAKES]
    return [((f"other programs take {', '.join(taken)}: stop them before a test", "warn"),)] if taken else []


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
