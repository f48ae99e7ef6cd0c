"""Do we, ab, wrk and httperf say the same of one Apache? On the lab, whose servers have a CPU of their own.

In each round our figure is held against those of the peers that measure the same thing: within their range it agrees,
outside of it by a factor. Left out is what would not be the same: wrk's latencies of new connections are without the
connect, and its connections leave so many ports at rest that connects become slow for whoever is next; httperf tells
no p99.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.bench.table import Bar, at_most, neighbours, show
from tests.lab.agreement import Goes, Result, Results, closed, in_turns, make_steady, opened, table
from tests.lab.lab import Host, Lab
from tests.lab.requirements import missing

COCKPIT = "cockpit"
ROUNDS = 5
REQUESTS = 10_000
# httperf tells its median to half a millisecond; finer differences than that are the scheduler's.
GRAIN = 0.0005

# What is compared, how far apart (as a factor) it may be, and what difference says nothing. A p99 strays the more.
_FIGURES = (("rate", 1.25, 0.0), ("p50", 1.25, GRAIN), ("p99", 1.5, GRAIN))


def agreement() -> bool:
    """All three: closed with new and with kept connections, and open."""
    if lacking := missing():
        return show(f"agreement: left out, the lab lacks {', '.join(lacking)}", [], [])
    with Lab.start() as lab, tempfile.TemporaryDirectory() as name, neighbours(lab.web1.pid):
        make_steady(lab.web1)
        plans = [
            closed(lab.web1.url, Path(name), kept=False, requests=REQUESTS),
            closed(lab.web1.url, Path(name), kept=True, requests=REQUESTS),
            opened(lab.web1.url, requests=3000),
        ]
        plans[0][1].pop("wrk")
        held = [_row(lab.web1, *plan) for plan in plans]
    return all(held)


def _row(web1: Host, title: str, goes: Goes) -> bool:
    print(f"{title} ...")
    results = in_turns(web1, goes, ROUNDS)
    bars = [bar for name, limit, grain in _FIGURES for bar in _agreement(results, name, limit, grain)]
    return show(title, table(results), bars)


def _agreement(results: Results, name: str, limit: float, grain: float) -> list[Bar]:
    """One figure, where there is a peer that tells it."""
    peers = [peer for peer in results if peer != COCKPIT and _known(results[peer][0], name)]
    if not peers:
        return []
    rounds = zip(results[COCKPIT], zip(*(results[peer] for peer in peers), strict=True), strict=True)
    apart = median(
        _apart(getattr(ours, name), [getattr(one, name) for one in theirs], grain) for ours, theirs in rounds
    )
    return [at_most(f"{name}, x apart from {' and '.join(peers)}", apart, limit)]


def _known(result: Result, name: str) -> bool:
    return getattr(result, name) is not None


def _apart(ours: float, theirs: Sequence[float], grain: float) -> float:
    """By what factor a figure lies outside of others; 1 within them."""
    low, high = min(theirs), max(theirs)
    return 1.0 if low - grain <= ours <= high + grain else max(low / ours, ours / high)
