"""Warnings about a run, a segment or a comparison: reasons not to trust its metrics. `warning_words` renders them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from statistics import median

import msgspec

from cockpit.analysis.windows import DiscardReason, Window
from cockpit.analysis.words.timeline import lost_words
from cockpit.metrics.catalogue import is_latency
from cockpit.metrics.results import RunResult
from cockpit.model.counts import Counts, Group
from cockpit.model.fold.load import SILENCE
from cockpit.model.host.window import means
from cockpit.model.load.plan import RunTotals, is_redirect, redirect_target
from cockpit.model.state import Segment

# With fewer responses, fewer than ten are above p99.
ENOUGH_FOR_P99 = 1000

# Share of unfinished requests from which a warning is due.
UNFINISHED = 0.01

# A shorter segment (s) is unreliable: servers are still spawning and a second's noise is as large as the effect.
SHORT = 5.0

# A segment in which the generator was the bottleneck for a larger share of the time is not trusted.
BOUND = 0.1

# Share of time that the generator waits for a CPU from which latencies are not trusted. On a quiet machine, kernel
# threads cause up to 1.5%, some microseconds at a time. Other programs cause milliseconds at a time, and delay more
# than 3% of the responses: p99 then measures both generator and server.
CPU_WAIT = 0.03

# Share of time in stalls that affects p99, and seconds of stalls from which a warning is due.
OMITTED = 0.01
_STALLED = 0.5

# Difference of CPU speed between the sides (share) from which a warning is due.
SPEED_CHANGE = 0.1

# Maximum number of percentiles of a summary that are named.
_NAMED = 12

# Latencies that the slowest tenth of the responses hardly affects.
_LOW_LATENCIES = ("p50", "mean", "min")


class Affected(StrEnum):
    """The metrics that a warning is about."""

    ALL = "all"
    RATE = "rate"
    TIMED = "rate and latency"
    LATENCY = "latency"
    TAIL = "latencies above p90"


class WarningKind(StrEnum):
    """The reason for a warning; the comments name its subject and values."""

    NOT_FOUND = "not found"  # statuses; count, status
    REFUSED = "refused"  # statuses; count, status
    REDIRECTED = "redirected"  # URL to load; count, total, status
    GENERATOR_SATURATED = "generator saturated"  # share
    OTHER_LOAD = "other load"  # host; share
    CPU_WAIT = "CPU wait"  # share
    STALLED = "stalled"  # seconds, share
    RUN_FAILED = "run failed"  # detail
    PARTIAL = "partial"  # detail
    STOPPED = "stopped"
    DROPPED = "dropped"  # count
    UNSENT = "unsent"  # count, limit
    QUEUED = "queued"  # count, limit
    UNCLOSED = "unclosed"  # count
    LOAD_ALTERED = "load altered"
    ERRORS = "errors"  # count, total
    UNTIMED_ERRORS = "untimed errors"  # count, total
    TIMED_ERRORS = "timed errors"  # count, total
    FEW_SAMPLES = "few samples"  # count
    IN_FLIGHT = "in flight"  # count
    SHORT = "short"  # seconds, limit
    PREFLIGHT = "preflight"  # text as recorded
    LOAD_DIFFERS = "load differs"  # differences
    QUEUED_SECONDS = "queued seconds"  # seconds
    HOST_UNREAD = "host unread"  # host; seconds
    TOTALS_ONLY = "totals only"  # tool
    INTERPOLATED = "interpolated"  # percentiles as text; count
    SPEED_DIFFERS = "CPU speed differs"  # host; share
    SHARED_CPU = "shared CPU"
    INVALID_LINES = "invalid lines"  # host; count, total
    LOG_UNREAD = "log unread"  # host; seconds
    LOG_ROTATED = "log rotated"  # host; count
    ROUNDS_EXCLUDED = "rounds excluded"  # the cause of the first; count, total


_AFFECTED = {
    WarningKind.GENERATOR_SATURATED: Affected.TIMED,
    WarningKind.CPU_WAIT: Affected.LATENCY,
    WarningKind.STALLED: Affected.LATENCY,
    WarningKind.DROPPED: Affected.RATE,
    WarningKind.UNSENT: Affected.RATE,
    WarningKind.QUEUED: Affected.LATENCY,
    WarningKind.ERRORS: Affected.TIMED,
    WarningKind.UNTIMED_ERRORS: Affected.TIMED,
    WarningKind.TIMED_ERRORS: Affected.TIMED,
    WarningKind.FEW_SAMPLES: Affected.TAIL,
    WarningKind.TOTALS_ONLY: Affected.TIMED,
    WarningKind.INTERPOLATED: Affected.LATENCY,
    WarningKind.IN_FLIGHT: Affected.TIMED,
    WarningKind.SHARED_CPU: Affected.TIMED,
    WarningKind.INVALID_LINES: Affected.TIMED,
    WarningKind.LOG_UNREAD: Affected.TIMED,
}


class RunWarning(msgspec.Struct, frozen=True, kw_only=True):
    """A warning. `subject` is untrusted text, `values` are numbers by name: see WarningKind. Shares are from 0 to
    1."""

    kind: WarningKind
    subject: str = ""
    values: dict[str, float] = {}

    @property
    def affected(self) -> Affected:
        return _AFFECTED.get(self.kind, Affected.ALL)

    def is_about(self, metric: str) -> bool:
        """Return whether it affects this metric (named as in thresholds) and not all metrics alike."""
        match self.affected:
            case Affected.ALL:
                return False
            case Affected.RATE:
                return metric == "rate"
            case Affected.TIMED:
                return metric == "rate" or is_latency(metric)
            case Affected.LATENCY:
                return is_latency(metric)
            case Affected.TAIL:
                return is_latency(metric) and metric not in _LOW_LATENCIES


# Warnings that explain a run and change no metric's meaning.
_NEUTRAL = frozenset(
    {
        *(WarningKind.STOPPED, WarningKind.LOAD_ALTERED, WarningKind.PREFLIGHT, WarningKind.REDIRECTED),
        *(WarningKind.UNCLOSED, WarningKind.LOG_ROTATED),
    }
)


def alters_reading(warning: RunWarning) -> bool:
    """Return whether the warning changes how metrics are read."""
    return warning.kind not in _NEUTRAL


def warning_of(kind: WarningKind, subject: str = "", **values: float) -> RunWarning:
    return RunWarning(kind=kind, subject=subject, values=values)


def generator_bound(seconds: float, saturated: float) -> bool:
    """Return whether the generator was the bottleneck for more than a tenth of the time."""
    return seconds > 0 and saturated > BOUND * seconds


def run_warnings(result: RunResult) -> list[RunWarning]:
    """Return the warnings of a run, the most serious first, then those from before its start."""
    counts, warnings = result.counts, _common_warnings(result)
    errors = sum(counts.errors.values())
    if result.altered:
        warnings.append(warning_of(WarningKind.LOAD_ALTERED))
    if errors:
        warnings.append(warning_of(_errors_kind(result), count=errors, total=counts.sent))
    if counts.completed < ENOUGH_FOR_P99:
        warnings.append(warning_of(WarningKind.FEW_SAMPLES, count=counts.completed))
    if counts.abandoned > UNFINISHED * counts.sent:
        warnings.append(warning_of(WarningKind.IN_FLIGHT, count=counts.abandoned))
    return [*warnings, *_preflight_warnings(result)]


def _preflight_warnings(of: RunResult | Segment) -> list[RunWarning]:
    return [warning_of(WarningKind.PREFLIGHT, text) for text in of.warnings]


def _errors_kind(result: RunResult) -> WarningKind:
    """Return how latencies treat errors: cockpit times timeouts only, summaries of other tools no errors, their lists
    of requests all errors."""
    counts = result.counts
    if result.totals is not None:
        return WarningKind.UNTIMED_ERRORS
    errors = sum(counts.errors.values())
    all_timed = counts.latency.count >= counts.completed + errors > counts.completed + counts.errors.get("timeout", 0)
    return WarningKind.TIMED_ERRORS if all_timed else WarningKind.ERRORS


def segment_warnings(segment: Segment) -> list[RunWarning]:
    """Return the warnings of a segment, the most serious first."""
    warnings = _common_warnings(segment)
    if segment.end is not None and segment.seconds < SHORT and not segment.warmup:
        warnings.append(warning_of(WarningKind.SHORT, seconds=segment.seconds, limit=SHORT))
    # Notes on the logs; those on a load are in reports only.
    return [*warnings, *(_preflight_warnings(segment) if segment.plan.traffic else ())]


def _common_warnings(of: RunResult | Segment) -> list[RunWarning]:
    counts = of.counts
    warnings = [*_refused_warnings(counts), *_redirect_warnings(of), *totals_warnings(of.totals)]
    if generator_bound(of.seconds, of.saturated):
        warnings.append(warning_of(WarningKind.GENERATOR_SATURATED, share=min(1.0, of.saturated / of.seconds)))
    if share := hidden_stall_share(of):
        warnings.append(warning_of(WarningKind.STALLED, seconds=of.stalled, share=share))
    for name, window in of.hosts.items():
        share = means(window).get("cpu.other", 0.0) / 100
        warnings += [warning_of(WarningKind.OTHER_LOAD, name, share=share)] if share > BOUND else []
    if of.cpu_wait > CPU_WAIT:
        warnings.append(warning_of(WarningKind.CPU_WAIT, share=of.cpu_wait))
    if of.reason == "failed":
        warnings.append(warning_of(WarningKind.RUN_FAILED, of.detail))
    if of.losses:
        warnings.append(warning_of(WarningKind.PARTIAL, lost_words(of.losses)))
    if of.reason == "stopped":
        warnings.append(warning_of(WarningKind.STOPPED))
    return [*warnings, *_log_warnings(of), *_count_warnings(counts, of.plan.max_in_flight)]


def _log_warnings(of: RunResult | Segment) -> Iterator[RunWarning]:
    for host, log in of.logs.items():
        if log.unread:
            yield warning_of(WarningKind.LOG_UNREAD, host, seconds=log.unread)
        if log.invalid_lines:
            total = log.completed + log.invalid_lines
            yield warning_of(WarningKind.INVALID_LINES, host, count=log.invalid_lines, total=total)
        if log.rotations:
            yield warning_of(WarningKind.LOG_ROTATED, host, count=log.rotations)


def _count_warnings(counts: Counts, limit: int) -> list[RunWarning]:
    warnings = []
    if counts.dropped:
        warnings.append(warning_of(WarningKind.DROPPED, count=counts.dropped))
    if counts.unsent:
        warnings.append(warning_of(WarningKind.UNSENT, count=counts.unsent, limit=limit))
    if counts.queued:
        warnings.append(warning_of(WarningKind.QUEUED, count=counts.queued, limit=limit))
    if counts.unclosed > UNFINISHED * counts.completed:
        warnings.append(warning_of(WarningKind.UNCLOSED, count=counts.unclosed))
    return warnings


def totals_warnings(totals: RunTotals | None) -> list[RunWarning]:
    """Return the warnings of a run that was imported from a summary."""
    if totals is None:
        return []
    warnings = [warning_of(WarningKind.TOTALS_ONLY, totals.tool)]
    if totals.percentiles:
        names = ", ".join(map(_percentile_name, totals.percentiles)) if len(totals.percentiles) <= _NAMED else ""
        warnings.append(warning_of(WarningKind.INTERPOLATED, names, count=len(totals.percentiles)))
    return warnings


def _percentile_name(percent: float) -> str:
    return {0.0: "min", 100.0: "max"}.get(percent, f"p{percent:g}")


def hidden_stall_share(of: RunResult | Segment) -> float:
    """Return the share of the time in stalls that the latencies hide (coordinated omission); else 0.

    Closed load sends nothing while it waits, so that a stall delays only one request per connection. At a constant
    rate, the share of delayed requests would be the stall's share of the time.
    """
    if of.plan.open or of.seconds <= 0 or of.stalled < _STALLED:
        return 0.0
    share, latency = min(1.0, of.stalled / of.seconds), of.counts.latency
    slow = sum(latency.between((round(SILENCE * 1e9), 1 << 53))) / latency.count if latency.count else 0.0
    return share if share >= OMITTED and slow < share / 2 else 0.0


def _refused_warnings(counts: Counts) -> list[RunWarning]:
    """Warn if every response has a status of 400 or above that was not expected."""
    statuses = sorted(status for status, count in counts.statuses.items() if count)
    unwanted = counts.refused + sum(counts.unexpected.values())
    if not statuses or statuses[0] < 400 or unwanted < counts.completed:
        return []
    kind = WarningKind.NOT_FOUND if set(statuses) <= {404, 410} else WarningKind.REFUSED
    return [warning_of(kind, ", ".join(map(str, statuses)), count=counts.completed, status=statuses[0])]


def _redirect_warnings(of: RunResult | Segment) -> list[RunWarning]:
    """Warn if at least half of the responses, of the run or of one request of its mix, are unexpected redirects."""
    counts = of.counts
    statuses = [status for status, count in counts.statuses.items() if count and is_redirect(status)]
    if not counts.redirect or not statuses:
        return []
    expecting = {request.name for request in of.plan.mix if request.expect and request.expect.statuses}
    groups = [group for name, group in counts.groups.items() if name not in expecting]
    parts = [(_redirects(part), part.completed) for part in (counts, *groups)]
    count, total = max(parts, key=lambda part: part[0] / part[1] if part[1] else 0.0)
    if 2 * count < total:
        return []
    target = redirect_target(of.plan.mix[0].url if of.plan.mix else of.plan.url, counts.redirect)
    return [warning_of(WarningKind.REDIRECTED, target, count=count, total=total, status=min(statuses))]


def _redirects(of: Counts | Group) -> int:
    return sum(count for status, count in of.statuses.items() if is_redirect(status))


def speed_warnings(before: Sequence[Window], after: Sequence[Window]) -> tuple[RunWarning, ...]:
    """Warn of each host whose CPU speed changed between the sides, as measured by the probe's loop."""
    speeds = [
        {
            host: [point.speed for window in side for point in window.hosts.get(host, ()) if point.speed]
            for host in side[0].hosts
        }
        for side in (before, after)
    ]
    ratios = {
        host: median(speeds[1][host]) / median(values)
        for host, values in speeds[0].items()
        if values and speeds[1].get(host)
    }
    return tuple(
        warning_of(WarningKind.SPEED_DIFFERS, host, share=ratio)
        for host, ratio in ratios.items()
        if abs(ratio - 1) > SPEED_CHANGE
    )


def comparison_warnings(windows: Sequence[Window], differences: Sequence[str]) -> tuple[RunWarning, ...]:
    """Return the warnings of a comparison of windows; `differences` are those between the loads."""
    warnings = [warning_of(WarningKind.LOAD_DIFFERS, ", ".join(differences))] if differences else []
    if queued := sum(window.flawed.get(DiscardReason.QUEUED, 0) for window in windows):
        warnings.append(warning_of(WarningKind.QUEUED_SECONDS, seconds=queued))
    unread = Counter[str]()
    for window in windows:
        unread.update(window.unread)
    warnings += [warning_of(WarningKind.HOST_UNREAD, host, seconds=seconds) for host, seconds in unread.items()]
    if (share := max(window.cpu_wait for window in windows)) > CPU_WAIT:
        warnings.append(warning_of(WarningKind.CPU_WAIT, share=share))
    for totals in dict.fromkeys(segment.totals for window in windows for segment in window.segments):
        warnings += totals_warnings(totals)
    return tuple(warnings)
