"""Agreement of cockpit, ab, wrk and httperf on one Apache of the lab, which has its own CPU.

In each round cockpit's metric is compared with the peers that measure the same: within their range it agrees, outside
it differs by a factor. Not compared: wrk with new connections (its latencies exclude the connect, and its ports in
TIME_WAIT slow down the connects of the next generator), and p99 of httperf, which it does not report.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.bench.table import Bar, Skipped, at_most, report_other_load, show
from tests.lab.agreement import Generators, Results, closed_load, in_rounds, keep_workers, open_load, table
from tests.lab.lab import Host, Lab
from tests.lab.requirements import missing

COCKPIT = "cockpit"
ROUNDS = 5
REQUESTS = 10_000
# s. The resolution of httperf's median; smaller differences are from the scheduler.
RESOLUTION = 0.0005

# Metric, maximum factor, and the difference that is ignored. A p99 varies more.
_METRICS = (("rate", 1.25, 0.0), ("p50", 1.25, RESOLUTION), ("p99", 1.5, RESOLUTION))


def agreement() -> bool:
    """Compare under closed load with new and with kept connections, and under open load."""
    if absent := missing():
        raise Skipped(f"the lab needs {', '.join(absent)}")
    with Lab.start() as lab, tempfile.TemporaryDirectory() as name, report_other_load(lab.web1.pid):
        keep_workers(lab.web1)
        plans = [
            closed_load(lab.web1.url, Path(name), kept=False, requests=REQUESTS),
            closed_load(lab.web1.url, Path(name), kept=True, requests=REQUESTS),
            open_load(lab.web1.url, requests=3000),
        ]
        plans[0][1].pop("wrk")
        agrees = [_row(lab.web1, *plan) for plan in plans]
    return all(agrees)


def _row(web1: Host, title: str, generators: Generators) -> bool:
    print(f"{title} ...")
    results = in_rounds(web1, generators, ROUNDS)
    bars = [bar for name, limit, resolution in _METRICS for bar in _agreement(results, name, limit, resolution)]
    return show(title, table(results), bars)


def _agreement(results: Results, name: str, limit: float, resolution: float) -> list[Bar]:
    """Compare one metric, if a peer reports it."""
    peers = [peer for peer in results if peer != COCKPIT and getattr(results[peer][0], name) is not None]
    if not peers:
        return []
    rounds = zip(results[COCKPIT], zip(*(results[peer] for peer in peers), strict=True), strict=True)
    factor = median(
        _factor(getattr(ours, name), [getattr(peer, name) for peer in theirs], resolution) for ours, theirs in rounds
    )
    return [at_most(f"{name}, factor vs {' and '.join(peers)}", factor, limit)]


def _factor(ours: float, theirs: Sequence[float], resolution: float) -> float:
    """Return the factor by which a value is outside the range of others; 1 within it."""
    low, high = min(theirs), max(theirs)
    return 1.0 if low - resolution <= ours <= high + resolution else max(low / ours, ours / high)
