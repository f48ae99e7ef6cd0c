"""Objections make a comparison invalid; warnings are shown beside it."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.analysis.doubt import BOUND, STARVED
from cockpit.analysis.outcome import Cause, Effect, Objection, Period
from cockpit.analysis.windows import Flaw, Window
from cockpit.model.text import neutral

Windows = Sequence[Window]
# A share of failed requests from which rate and latency describe other responses than before.
FAILING = 0.01


def objection(before: Windows, after: Windows, other: Objection | None = None) -> Objection | None:
    """Return why two sides cannot be compared at all. `other` load comes first: it saturates the generator, too."""
    if other is not None:
        return other
    for windows, side in ((before, Period.BEFORE), (after, Period.AFTER)):
        share = max(window.bound_share for window in windows)
        if share > BOUND:
            return Objection(cause=Cause.GENERATOR_SATURATED, side=side, share=share)
        for row in (row for window in windows for row in window.rows):
            if row.altered:
                return Objection(cause=Cause.LOAD_ALTERED, side=side)
            if row.reason == "failed":
                return Objection(cause=Cause.RUN_FAILED, side=side, detail=row.detail)
            if row.partial:
                return Objection(cause=Cause.PARTIAL, side=side, detail=row.partial)
    return None


def saturated_side(before: Windows, after: Windows) -> Period | None:
    """Return the one side on which the generator was saturated; None for none or both."""
    first, second = (any(window.bound_share > BOUND for window in windows) for windows in (before, after))
    if first == second:
        return None
    return Period.BEFORE if first else Period.AFTER


def lost_hosts(before: Windows, after: Windows) -> dict[str, Objection]:
    """Return the hosts that were not read for more than a tenth of a window."""
    found: dict[str, Objection] = {}
    for windows, side in ((before, Period.BEFORE), (after, Period.AFTER)):
        for window in windows:
            for name in window.hosts:
                seconds = window.unread.get(name, 0)
                if seconds > BOUND * len(window.seconds):
                    found.setdefault(name, Objection(cause=Cause.HOST_LOST, side=side, seconds=seconds, host=name))
    return found


def failing(effects: Sequence[Effect]) -> Objection | None:
    """Return an objection if so many more requests failed on one side that rate and latency are of other requests."""
    errors = next((one for one in effects if one.name == "errors"), None)
    if errors is None or errors.before is None or errors.after is None:
        return None
    if max(errors.before, errors.after) <= FAILING or abs(errors.after - errors.before) <= FAILING:
        return None
    side = Period.AFTER if errors.after > errors.before else Period.BEFORE
    return Objection(cause=Cause.REQUESTS_FAILED, side=side, share=max(errors.before, errors.after))


def warnings(windows: Windows) -> tuple[str, ...]:
    """Return what stays in the metrics and should be known."""
    queued = sum(window.flawed.get(Flaw.QUEUED, 0) for window in windows)
    unread: dict[str, int] = {}
    for window in windows:
        for host, seconds in window.unread.items():
            unread[host] = unread.get(host, 0) + seconds
    found = [f"arrivals were queued in {queued} s"] if queued else []
    found += [f"{neutral(host)} was not read for {seconds} s" for host, seconds in unread.items()]
    waits = [window.cpu_wait for window in windows]
    if max(waits) > STARVED:
        shares = "% and ".join(f"{100 * wait:.0f}" for wait in waits)
        if len(waits) > 2:
            shares = f"up to {100 * max(waits):.0f}"
        found.append(f"the generator waited for a CPU {shares}% of the time: latencies include that wait")
    return tuple(found)
