"""Warnings about a run or segment: reasons not to trust its metrics, in the same words everywhere."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from cockpit.model.events import Group
from cockpit.model.figures import RunResult, is_latency
from cockpit.model.host_window import means
from cockpit.model.load import is_redirect, redirect_target
from cockpit.model.state import Counts, Segment
from cockpit.model.text import neutral

# With fewer responses a p99 is made of fewer than ten of them.
ENOUGH_FOR_P99 = 1000

# Share of requests left unfinished from which a warning is due.
UNFINISHED = 0.01

# A shorter segment (s) is unreliable: servers are still spawning and a second's noise is as large as the effect.
SHORT = 5.0

# A share of its time, or seconds of it, in which the generator set the pace, from which a row is not to be trusted.
BOUND = 0.1

# Waiting for a CPU for more than this share of the time is worth a word. On a quiet machine the kernel's own threads
# make it wait up to 1.5 %, some microseconds at a time. Beyond that it is others, milliseconds at a time, and more than
# three responses in a hundred find it waiting: p99 then measures both generator and server.
STARVED = 0.03


def generator_bound(seconds: float, saturated: float) -> bool:
    """Whether the generator, not the server, was the bottleneck for more than a tenth of the time."""
    return seconds > 0 and saturated > BOUND * seconds


class Spoils(StrEnum):
    """Which metrics of a run a warning is about."""

    ALL = "all"
    RATE = "rate"
    TIMED = "rate and latency"
    LATENCY = "latency"
    TAIL = "latencies above p90"


class RunWarning(NamedTuple):
    """A reason not to trust a run's metrics: in at most eight characters for a table (or ""), in full, which ones."""

    brief: str
    words: str
    spoils: Spoils = Spoils.ALL

    @property
    def is_about_all(self) -> bool:
        return self.spoils is Spoils.ALL

    def is_about(self, metric: str) -> bool:
        """Return whether it spoils this metric, by the names that thresholds use, and not all of them alike."""
        match self.spoils:
            case Spoils.ALL:
                return False
            case Spoils.RATE:
                return metric == "rate"
            case Spoils.TIMED:
                return metric == "rate" or is_latency(metric)
            case Spoils.LATENCY:
                return is_latency(metric)
            case Spoils.TAIL:
                return is_latency(metric) and metric not in _LOW


# Latencies that ten in a hundred slower responses do not move.
_LOW = ("p50", "mean", "min")


def doubts(result: RunResult) -> tuple[str, ...]:
    """Return the warnings of a run, the most serious first, then those from before its start."""
    return tuple(one.words for one in run_warnings(result))


def run_warnings(result: RunResult) -> tuple[RunWarning, ...]:
    """Return reasons not to trust a run, in the order of `doubts`."""
    found = [*_refused(result), *_redirected(result), *_saturated(result)]
    found += [*_crowded(result), *_starved(result), *_not_whole(result), *_held(result), *_unclosed(result)]
    if result.altered:
        found.append(RunWarning("", "the load was altered during the run: compare its segments, not the whole run"))
    errors = sum(result.counts.errors.values())
    if errors:
        words = (
            f"{errors} of {result.counts.sent} requests got no complete response: rate and latency are of the others"
        )
        found.append(RunWarning("", words, Spoils.TIMED))
    if result.counts.completed < ENOUGH_FOR_P99:
        words = f"few samples ({result.counts.completed} responses): percentiles above p90 are uncertain"
        found.append(RunWarning("", words, Spoils.TAIL))
    if result.counts.abandoned > UNFINISHED * result.counts.sent:
        words = f"{result.counts.abandoned} requests were in flight at the end and are not counted"
        found.append(RunWarning("", words, Spoils.TIMED))
    return (*found, *(RunWarning("", neutral(warning)) for warning in result.warnings))


def row_doubts(row: Segment) -> list[tuple[str, str]]:
    """Return the warnings of a segment, the most serious first."""
    found = [*_refused(row), *_redirected(row), *_saturated(row)]
    found += [*_crowded(row), *_starved(row), *_not_whole(row), *_held(row), *_unclosed(row)]
    if row.altered:
        found.append(RunWarning("load±", "the load was altered during this segment"))
    if row.end is not None and row.seconds < SHORT and not row.warmup:
        found.append(RunWarning("short", f"short: {row.seconds:.1f} s; metrics are unreliable below {SHORT:.0f} s"))
    return [(one.brief, one.words) for one in found]


def _crowded(of: RunResult | Segment) -> list[RunWarning]:
    """Hosts on which other programs took more than a tenth of the CPU."""
    shares = {name: means(window).get("cpu.other", 0.0) for name, window in of.hosts.items()}
    return [
        RunWarning(
            "others",
            f"other programs took {share:.0f}% of the CPU of {neutral(name)}; if they serve the load, watch them",
        )
        for name, share in shares.items()
        if share > 100 * BOUND
    ]


def _refused(of: RunResult | Segment) -> list[RunWarning]:
    """Warn if every response has a status of 400 or above that was not expected."""
    counts = of.counts
    statuses = sorted(status for status, count in counts.statuses.items() if count)
    unwanted = counts.refused + sum(counts.unexpected.values())
    if not statuses or statuses[0] < 400 or unwanted < counts.completed:
        return []
    many = f"all {counts.completed} responses were" if counts.completed > 1 else "the only response was"
    asked = "is the path right?" if set(statuses) <= {404, 410} else "is this the right request?"
    return [RunWarning(f"{statuses[0]}!", f"{many} {', '.join(map(str, statuses))}: {asked}")]


def _redirected(of: RunResult | Segment) -> list[RunWarning]:
    """Half of the responses or more, of the run or of one request of its mix, are redirects that nobody expects."""
    counts = of.counts
    statuses = [status for status, count in counts.statuses.items() if count and is_redirect(status)]
    if not counts.redirect or not statuses:
        return []
    expecting = {request.name for request in of.plan.mix if request.expect and request.expect.statuses}
    groups = [group for name, group in counts.groups.items() if name not in expecting]
    many, total = max([_redirects(counts), *(_redirects(group) for group in groups)], key=_share)
    if 2 * many < total:
        return []
    url = of.plan.mix[0].url if of.plan.mix else of.plan.url
    target = neutral(redirect_target(url, counts.redirect))
    words = f"{many} of {total} responses redirect and are not followed: load {target} instead"
    return [RunWarning(f"{min(statuses)}!", words)]


def _redirects(of: Counts | Group) -> tuple[int, int]:
    """Redirects, and all complete responses."""
    return sum(count for status, count in of.statuses.items() if is_redirect(status)), of.completed


def _share(part: tuple[int, int]) -> float:
    return part[0] / part[1] if part[1] else 0.0


def _unclosed(of: RunResult | Segment) -> list[RunWarning]:
    unclosed = of.counts.unclosed
    if unclosed <= UNFINISHED * of.counts.completed:
        return []
    words = f"the server announced Connection: close {unclosed} times and kept the connection open; cockpit closed it"
    return [RunWarning("unclosed", f"{words}, so local ports stay in TIME_WAIT here")]


def _not_whole(of: RunResult | Segment) -> list[RunWarning]:
    found = []
    if of.reason == "failed":
        found.append(RunWarning("failed", f"the run failed: {neutral(of.detail)}"))
    if of.partial:
        found.append(RunWarning("part", f"metrics are incomplete: {neutral(of.partial)}"))
    if of.reason == "stopped":
        found.append(RunWarning("stop", "the run was stopped before its planned end"))
    return found


def _saturated(of: RunResult | Segment) -> list[RunWarning]:
    if not generator_bound(of.seconds, of.saturated):
        return []
    share = min(100.0, 100 * of.saturated / of.seconds)
    words = f"generator saturated for {share:.0f}% of the time: the server may be faster than measured"
    return [RunWarning("gen!", words, Spoils.TIMED)]


def _starved(of: RunResult | Segment) -> list[RunWarning]:
    if of.cpu_wait <= STARVED:
        return []
    share = f"{100 * of.cpu_wait:.0f}%"
    words = f"the generator waited {share} of the time for a CPU: latencies include that wait"
    return [RunWarning("cpu!", words, Spoils.LATENCY)]


def _held(of: RunResult | Segment) -> list[RunWarning]:
    counts, reached = of.counts, f"the cap of {of.plan.max_in_flight} in flight was reached"
    found = []
    if counts.dropped:
        words = f"{counts.dropped} arrivals were dropped: the queue was full; lower the rate"
        found.append(RunWarning("dropped", f"{words} or raise --max-in-flight", Spoils.RATE))
    if counts.unsent:
        found.append(RunWarning("unsent", f"{counts.unsent} due requests were never sent: {reached}", Spoils.RATE))
    if counts.held_back:
        words = f"{counts.held_back} arrivals were queued: {reached}; response time includes the wait"
        found.append(RunWarning("held", f"{words}, service time does not", Spoils.LATENCY))
    return found
