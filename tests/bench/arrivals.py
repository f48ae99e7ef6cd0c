"""The open model: do requests leave when they are due, and all of them?"""

from __future__ import annotations

from collections.abc import Callable

from cockpit.model.load import LoadPlan
from tests.bench.goes import Figure, Run, ours
from tests.bench.peers import HTTPERF, httperf
from tests.bench.servers import Site, lacking_nginx, nginx
from tests.bench.table import at_most, described, exactly, neighbours, present, rounds, show

SECONDS = 5
# Requests of one connection of httperf's where it keeps them: its rate is one of connections.
CALLS = 10


def _open(per_second: int, *, kept: bool) -> bool:
    title = f"open model, {per_second}/s for {SECONDS} s, {'kept connections' if kept else 'a new connection each'}"
    if lacking := lacking_nginx():
        return show(f"{title}: left out, {lacking}", [], [])
    print(f"{title} ...")
    runs: list[Run] = []
    with nginx() as site, neighbours(site.pid):
        measured = rounds(_goes(site, per_second, kept, runs))
    due = per_second * SECONDS
    lines = described(measured)
    for run in runs:
        lag = run.merged("lag")
        lines.append(
            f"sent {run.total('sent'):,} of {due:,}, lag p50 {lag.percentile(50) * 1e3:.3f}"
            f" p99 {lag.percentile(99) * 1e3:.3f} max {lag.max * 1e3:.3f} ms"
        )
    bars = [
        at_most("off the rate asked for", max(abs(run.total("sent") / due - 1) for run in runs) * 100, 0.1, " %"),
        # Others on this machine can only add to it, so the round that they disturbed least is the nearest.
        at_most("lag p99", min(run.merged("lag").percentile(99) for run in runs) * 1e3, 2.0, " ms"),
        exactly("queued", max(run.total("queued") for run in runs), 0),
        exactly("errors", max(run.errors for run in runs), 0),
    ]
    return show(title, lines, bars)


def _goes(site: Site, per_second: int, kept: bool, runs: list[Run]) -> dict[str, Callable[[], Figure]]:
    plan = LoadPlan(url=site.small, rate=per_second, duration=float(SECONDS), keepalive=kept)

    def go() -> Figure:
        runs.append(ours(plan))
        return runs[-1].figure

    goes: dict[str, Callable[[], Figure]] = {"cockpit": go}
    if present([HTTPERF]):
        calls = CALLS if kept else 1
        goes["httperf"] = lambda: httperf(site.small, per_second / calls, per_second * SECONDS // calls, calls)
    return goes


def open_2000_new() -> bool:
    """2000 new connections a second."""
    return _open(2000, kept=False)


def open_2000_kept() -> bool:
    """2000 requests a second over kept connections."""
    return _open(2000, kept=True)


def open_5000_new() -> bool:
    """5000 new connections a second."""
    return _open(5000, kept=False)


def open_5000_kept() -> bool:
    """5000 requests a second over kept connections."""
    return _open(5000, kept=True)
