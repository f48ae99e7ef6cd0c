"""Failed requests and stalls of the server at one instant of a session. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from cockpit.analysis.time_ranges import between
from cockpit.model.counts import Counts
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.state import Segment, State

# A stall lasts longer than STALL (s) and longer than _P90_FACTOR times p90.
STALL = 0.3
_P90_FACTOR = 2.0
# Minimum share of a second covered by ticks for a rate.
_COVERED = 0.3


class Stall(NamedTuple):
    """A stall: no response for `seconds`; `oldest` is the age (s) of the oldest request in flight."""

    seconds: float
    in_flight: int
    oldest: float


class OngoingFailures(NamedTuple):
    """Ongoing failures: `rate` (per s) and `share` of the requests in the newest second. `down`: that second had no
    complete response. `since` is the session second of the first failure; if `down`, of the first error before the
    responses stopped."""

    since: float
    rate: float
    share: float
    down: bool


class Failures(NamedTuple):
    """Failed requests of a segment: `failed` of `ended` requests, `kinds` with the most frequent first. `last` is the
    session second of the latest failures; `failing` is None if the newest second had none."""

    failed: int
    ended: int
    kinds: tuple[tuple[str, int], ...]
    last: float
    failing: OngoingFailures | None = None

    @property
    def share(self) -> float:
        return self.failed / self.ended if self.ended else 0.0


def stall(state: State) -> Stall | None:
    """Return the stall of the server under the running load; None if it responds."""
    waiting = [worker for worker in state.in_flight.values() if worker.requests]
    segment = state.segment
    if not waiting or segment is None:
        return None
    oldest = max(worker.oldest for worker in waiting)
    seconds = min(oldest, *(worker.silence for worker in waiting))
    if seconds < max(STALL, _P90_FACTOR * segment.counts.latency.percentile(90)):
        return None
    return Stall(seconds, sum(worker.requests for worker in waiting), oldest)


def in_flight(state: State) -> tuple[int, float]:
    """Return how many requests are in flight, and the age (s) of the oldest."""
    waiting = [worker for worker in state.in_flight.values() if worker.requests]
    return sum(worker.requests for worker in waiting), max((worker.oldest for worker in waiting), default=0.0)


def failures(state: State, segment: Segment) -> Failures | None:
    """Return the failed requests of a segment; None if there are none."""
    counts = segment.counts
    if not counts.failed:
        return None
    seconds = between(state.seconds, int(segment.start), ceil(segment.last))
    last = next((second.second for second in reversed(seconds) if second.failed), segment.last)
    growing = state.running == segment.run and segment is state.segment
    return Failures(
        counts.failed, counts.ended, kinds_of(counts), last, _ongoing_failures(seconds) if growing else None
    )


def kinds_of(counts: Counts) -> tuple[tuple[str, int], ...]:
    """Return failed requests by kind or status, the most frequent first."""
    kinds = {name.replace("_", " "): count for name, count in counts.errors.items()}
    kinds |= {f"unexpected {name}": count for name, count in counts.unexpected.items()}
    if counts.refused:
        kinds |= {str(status): count for status, count in counts.statuses.items() if status >= 400}
    return tuple(sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0])))


def _ongoing_failures(seconds: Sequence[LoadSecond]) -> OngoingFailures | None:
    if not seconds:
        return None
    begun = len(seconds) > 1 and seconds[-1].end - seconds[-1].start < _COVERED
    newest = seconds[-2] if begun else seconds[-1]
    if not newest.failed:
        return None
    down, since = not newest.completed, newest
    for second in reversed(seconds):
        if second.second >= newest.second:
            continue
        if not (second.errors if down else second.failed):
            break
        since = second
        if down and second.completed:
            break
    ended, span = newest.completed + newest.errors, newest.end - newest.start
    rate = newest.failed / span if span > 0 else 0.0
    return OngoingFailures(max(since.start, since.second), rate, newest.failed / max(1, ended), down)
