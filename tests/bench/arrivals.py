"""Open load: all requests are sent, on time."""

from __future__ import annotations

from collections.abc import Callable

from cockpit.model.load import LoadPlan
from tests.bench.measurement import CockpitRun, Measurement, run_cockpit
from tests.bench.peers import HTTPERF, httperf
from tests.bench.servers import Site, missing_nginx, nginx
from tests.bench.table import at_most, available, exactly, report_other_load, rounds, show, summary_lines

SECONDS = 5
# Requests per kept connection of httperf: its rate counts connections.
CALLS = 10


def _open(per_second: int, *, kept: bool) -> bool:
    title = f"open load, {per_second}/s for {SECONDS} s, {'kept connections' if kept else 'a new connection each'}"
    if absent := missing_nginx():
        return show(f"{title}: skipped, {absent}", [], [])
    print(f"{title} ...")
    runs: list[CockpitRun] = []
    with nginx() as site, report_other_load(site.pid):
        measured = rounds(_generators(site, per_second, kept, runs))
    due = per_second * SECONDS
    lines = summary_lines(measured)
    for run in runs:
        lag = run.merged("lag")
        lines.append(
            f"sent {run.total('sent'):,} of {due:,}, lag p50 {lag.percentile(50) * 1e3:.3f}"
            f" p99 {lag.percentile(99) * 1e3:.3f} max {lag.max * 1e3:.3f} ms"
        )
    bars = [
        at_most(
            "deviation from the requested rate", max(abs(run.total("sent") / due - 1) for run in runs) * 100, 0.1, "%"
        ),
        # Other load only adds lag: the round with the least lag is the best estimate.
        at_most("lag p99", min(run.merged("lag").percentile(99) for run in runs) * 1e3, 2.0, " ms"),
        exactly("queued", max(run.total("queued") for run in runs), 0),
        exactly("errors", max(run.errors for run in runs), 0),
    ]
    return show(title, lines, bars)


def _generators(
    site: Site, per_second: int, kept: bool, runs: list[CockpitRun]
) -> dict[str, Callable[[], Measurement]]:
    plan = LoadPlan(url=site.small, rate=per_second, duration=float(SECONDS), keepalive=kept)

    def measure() -> Measurement:
        runs.append(run_cockpit(plan))
        return runs[-1].measurement

    generators: dict[str, Callable[[], Measurement]] = {"cockpit": measure}
    if available([HTTPERF]):
        calls = CALLS if kept else 1
        generators["httperf"] = lambda: httperf(site.small, per_second / calls, per_second * SECONDS // calls, calls)
    return generators


def open_2000_new() -> bool:
    """Send 2000 requests/s with new connections."""
    return _open(2000, kept=False)


def open_2000_kept() -> bool:
    """Send 2000 requests/s over kept connections."""
    return _open(2000, kept=True)


def open_5000_new() -> bool:
    """Send 5000 requests/s with new connections."""
    return _open(5000, kept=False)


def open_5000_kept() -> bool:
    """Send 5000 requests/s over kept connections."""
    return _open(5000, kept=True)
