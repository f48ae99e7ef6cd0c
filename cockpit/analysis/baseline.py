"""A baseline: the results of one or several runs of one load, under a name, that later runs are compared with.

It keeps the histograms of the runs, so that any percentile can be read from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import msgspec

from cockpit.model.figures import LATENCIES, RunResult, figure, host_figures, is_latency, latency, latency_figure
from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.load import LoadPlan

FORMAT = 2
_PLAIN = (
    "rate",
    "completed",
    "sent",
    "failed",
    "failed.share",
    "errors",
    "duration",
    "bytes",
    "generator.cpu",
    "generator.lag_p99",
)


class BaselineRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a baseline. `wall` is the start of its session (epoch s), `source` names its origin. `figures`
    are plain metrics by the names that thresholds use, `histograms` by LATENCIES, `hosts` metrics by host name."""

    source: str
    wall: float
    figures: Mapping[str, float]
    histograms: Mapping[str, Histogram]
    hosts: Mapping[str, Mapping[str, float]]

    def figure(self, name: str) -> float | None:
        """Return a metric by the name that thresholds use; None without data."""
        head, _, rest = name.partition(".")
        if name in self.figures:
            return self.figures[name]
        if head in self.hosts and rest in self.hosts[head]:
            return self.hosts[head][rest]
        kind, which = (head, rest) if head in LATENCIES else ("response", name)
        return latency_figure(self.histograms.get(kind, EMPTY), which) if is_latency(which) else None


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """At least one run, in the order in which they were added."""

    format: int = FORMAT
    name: str
    plan: LoadPlan
    runs: tuple[BaselineRun, ...]

    def values(self, name: str) -> list[float]:
        """Return a metric of each run; empty when a run has no data for it."""
        found = [value for run in self.runs if (value := run.figure(name)) is not None]
        return found if len(found) == len(self.runs) else []

    def figure(self, name: str) -> float | None:
        """Return a metric's mean over the runs; None when a run has no data for it."""
        values = self.values(name)
        return mean_of(values) if values else None


def mean_of(values: Sequence[float]) -> float:
    """Return the mean on the scale on which runs are compared: the geometric one when all are above 0."""
    if len(values) == 1:
        return values[0]
    return math.exp(fmean(map(math.log, values))) if min(values) > 0 else fmean(values)


def baseline_run(source: str, wall: float, result: RunResult) -> BaselineRun:
    """Return a run as a baseline keeps it: no secret, no address."""
    figures = {plain: found for plain in _PLAIN if (found := figure(result, plain)) is not None}
    return BaselineRun(
        source=source,
        wall=wall,
        figures=figures,
        histograms={kind: latency(result.counts, kind) for kind in LATENCIES},
        hosts={
            host: host_figures(window, result.seconds) for host, window in result.hosts.items() if window.seconds > 0
        },
    )


def baseline_of(name: str, runs: Sequence[BaselineRun], plan: LoadPlan) -> Baseline:
    """Return a baseline of these runs under the load `plan`, without its secrets."""
    return Baseline(name=name, plan=plan.without_secrets(), runs=tuple(runs))
