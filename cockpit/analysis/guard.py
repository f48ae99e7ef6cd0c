"""Limits of a change on real users: which of them the newest seconds exceed. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from cockpit.analysis.thresholds import GROWING, Status, Threshold, ThresholdResult, check_thresholds, parse_threshold
from cockpit.analysis.windows import WHOLE
from cockpit.metrics.catalogue import percent_of
from cockpit.metrics.results import RunResult, segments_result
from cockpit.model.counts import Counts
from cockpit.model.errors import UsageError
from cockpit.model.histogram import Histogram
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.state import State

# The newest seconds that are checked.
SPAN = 10.0
# Requests that must fail, or be slower than the limit, before a share or a percentile counts as exceeded.
EVIDENCE = 3
# Seconds without any count of requests after which no limit can be checked.
BLIND = 5.0


def parse_guard(text: str) -> tuple[Threshold, ...]:
    """Parse limits, separated by commas. Raises UsageError."""
    limits = tuple(parse_threshold(part) for part in text.split(","))
    for limit in limits:
        if limit.of_baseline or limit.name in GROWING or limit.name.startswith("generator."):
            raise UsageError(f"{limit.text!r}: no limit of single seconds; write 'errors < 2%' or 'p99 < 500ms'")
    return limits


def guarded_result(state: State, since: float) -> RunResult | None:
    """Return the metrics of the newest SPAN seconds, not before `since`; None if no whole second has been counted.
    Hosts are those of the current segment."""
    segment = state.segment
    if segment is None or state.running is None:
        return None
    newest = (second for second in state.seconds[-int(SPAN) - 2 :] if second.end > state.t - SPAN)
    seconds = [second for second in newest if second.start >= since]
    failed, errors = sum(second.failed for second in seconds), sum(second.errors for second in seconds)
    counts = Counts(
        completed=sum(second.completed for second in seconds),
        errors={"": errors} if errors else {},
        refused=failed - errors,
        service=Histogram.merged(second.latency for second in seconds),
    )
    length = sum(second.end - second.start for second in seconds)
    if length < WHOLE:
        return None
    return segments_result([replace(segment, counts=counts, logs={})], segment.plan, length)


def exceeded(state: State, limits: Sequence[Threshold], since: float) -> ThresholdResult | None:
    """Return the first limit that fails in the newest seconds, not before `since`; None: all hold, or no data."""
    result = guarded_result(state, since)
    if result is None:
        return None
    failed = (each for each in check_thresholds(limits, result) if each.status is Status.FAILED)
    return next((each for each in failed if each.value is not None and _is_evident(each, result.counts)), None)


def _is_evident(failed: ThresholdResult, counts: Counts) -> bool:
    """Return whether enough requests are beyond the limit: a single one may be 5% of a quiet second."""
    if failed.threshold.name == "failed.share":
        return counts.failed >= EVIDENCE
    if percent_of(failed.threshold.name) is None:
        return True
    rank = 100 * (counts.latency.count - EVIDENCE + 1) / counts.latency.count
    return counts.latency.count >= EVIDENCE and counts.latency.percentile(rank) > failed.threshold.value


def newest_count(state: State, host: str) -> float:
    """Return the session time (s) until which requests have been counted in the current run; 0: none has. Those in the
    log of the host, if it is one of several."""
    segment = state.segment
    logged = [log.host for log in segment.plan.traffic] if segment else []
    seconds: Sequence[LoadSecond] = state.seconds[-int(BLIND) - 2 :]
    if len(logged) > 1 and host in logged:
        seconds = [second.part_of_log(logged.index(host)) for second in seconds]
    return max((second.end for second in seconds if second.unread < 1), default=0.0)
