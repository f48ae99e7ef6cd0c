"""A baseline: what a run came to, under a name, for later runs to be held against.

It keeps the run's histograms, so that any percentile can be asked of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cockpit.model.figures import LATENCIES, RunResult, figure, host_figures, is_latency, latency, latency_figure
from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.load import LoadPlan

FORMAT = 1
_PLAIN = ("rate", "completed", "sent", "failed", "errors", "duration", "bytes", "generator.cpu", "generator.lag_p99")


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """`wall` is when the run's session began (epoch s), `source` what it was made from, in words. `figures` are plain
    figures by the names that thresholds use, `histograms` by LATENCIES, `hosts` figures by host name."""

    format: int = FORMAT
    name: str
    source: str
    wall: float
    plan: LoadPlan
    figures: Mapping[str, float]
    histograms: Mapping[str, Histogram]
    hosts: Mapping[str, Mapping[str, float]]

    def figure(self, name: str) -> float | None:
        """The figure as thresholds name it; None where there is no data for it."""
        head, _, rest = name.partition(".")
        if name in self.figures:
            return self.figures[name]
        if head in self.hosts and rest in self.hosts[head]:
            return self.hosts[head][rest]
        kind, which = (head, rest) if head in LATENCIES else ("response", name)
        return latency_figure(self.histograms.get(kind, EMPTY), which) if is_latency(which) else None


def baseline_of(name: str, source: str, wall: float, result: RunResult) -> Baseline:
    """What is kept of a run: no secret, no address."""
    figures = {plain: found for plain in _PLAIN if (found := figure(result, plain)) is not None}
    return Baseline(
        name=name,
        source=source,
        wall=wall,
        plan=result.plan.without_secrets(),
        figures=figures,
        histograms={kind: latency(result.counts, kind) for kind in LATENCIES},
        hosts={
            host: host_figures(window, result.seconds) for host, window in result.hosts.items() if window.seconds > 0
        },
    )
