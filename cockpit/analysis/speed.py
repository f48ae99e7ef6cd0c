"""The CPU's speed in the rounds of a comparison. Pure.

A machine that shares its hardware with others, or changes its clock rate, differs in speed from one run to the next by
more than most changes do, and no counter of the kernel shows it. The probe's loop does: it is always the same, so that
its CPU time tells how fast the CPU was. Intervals are adjusted by it: see `intervals.estimate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cockpit.analysis.intervals import Floats
from cockpit.model.metrics import is_latency
from cockpit.model.sar import SPEED_METRIC

# Metrics of a host that are CPU time.
_CPU_TIME = ("cpu.busy", "cpu.per_request", "processes.cpu", "processes.user", "processes.system")


def speed_ratios(before: Mapping[str, Floats], after: Mapping[str, Floats], metric: str) -> Floats:
    """Return the logarithm of the ratio of CPU speeds of each pair of values; see speed_names. It is nan where it is
    unknown, and there are none for a metric that does not follow the speed."""
    names = speed_names(before, after, metric)
    return log_speeds(after, names) - log_speeds(before, names) if names else np.array([])


def speed_names(before: Mapping[str, Floats], after: Mapping[str, Floats], metric: str) -> list[str]:
    """Return the names of the speeds that both sides have and a metric follows: on its host, or on all hosts."""
    host, _, name = metric.partition(".")
    of_host = name in _CPU_TIME
    if not (of_host or metric == "rate" or is_latency(metric)):
        return []
    names = [one for one in before if one in after and one.endswith(f".{SPEED_METRIC}")]
    return [one for one in names if not of_host or one == f"{host}.{SPEED_METRIC}"]


def log_speeds(values: Mapping[str, Floats], names: Sequence[str]) -> Floats:
    """Return the logarithms of these speeds, the mean over hosts."""
    found: Floats = np.mean([np.log(values[one]) for one in names], axis=0)
    return found
