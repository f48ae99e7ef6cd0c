"""CPU speed in the rounds of a comparison. Pure.

On shared hardware, or with a varying clock rate, CPU speed differs between runs by more than the effect of most
changes, and no kernel counter shows it. The probe runs a constant loop, whose CPU time measures the speed. Intervals
are adjusted for it: see `intervals.estimate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cockpit.analysis.intervals import Floats
from cockpit.metrics.catalogue import is_latency
from cockpit.model.host.sar import SPEED_METRIC

# Metrics of a host that are CPU time.
_CPU_TIME = ("cpu.busy", "cpu.per_request", "processes.cpu", "processes.user", "processes.system", "request.run")


def speed_ratios(before: Mapping[str, Floats], after: Mapping[str, Floats], metric: str) -> Floats:
    """Return the log ratio of CPU speeds for each pair of values, nan if unknown. Empty if the metric does not depend
    on CPU speed: see speed_names."""
    names = speed_names(before, after, metric)
    return log_speeds(after, names) - log_speeds(before, names) if names else np.array([])


def rate_ratios(before: Mapping[str, Floats], after: Mapping[str, Floats], metric: str) -> Floats:
    """Return the log ratio of the rates of users' requests for each pair of values. Empty if they are not those of
    users, or if the metric does not depend on the rate."""
    if "arrivals" not in before or not (is_latency(metric) or metric.endswith(".cpu.per_request")):
        return np.array([])
    ratios: Floats = np.log(after["arrivals"] / before["arrivals"])
    return ratios


def speed_names(before: Mapping[str, Floats], after: Mapping[str, Floats], metric: str) -> list[str]:
    """Return the names of the speeds that both sides have and a metric depends on: of its host, or of all hosts."""
    host, _, name = metric.partition(".")
    of_host = name in _CPU_TIME
    if not (of_host or metric in ("rate", "capacity") or is_latency(metric)):
        return []
    names = [known for known in before if known in after and known.endswith(f".{SPEED_METRIC}")]
    return [name for name in names if not of_host or name == f"{host}.{SPEED_METRIC}"]


def log_speeds(values: Mapping[str, Floats], names: Sequence[str]) -> Floats:
    """Return the log speeds, as the mean over hosts."""
    means: Floats = np.mean([np.log(values[name]) for name in names], axis=0)
    return means
