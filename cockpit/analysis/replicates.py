"""Values by visit, metric and side of a comparison, and differences within rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cockpit.analysis.blocks import BLOCK, run_values, segment_metrics, window_values
from cockpit.analysis.effects import by_ratio
from cockpit.analysis.intervals import Floats
from cockpit.analysis.verdicts.speed import rate_ratios, speed_ratios
from cockpit.analysis.windows import Window

# Measurements after one set-up: the windows of its runs, which count as one value.
Visit = Sequence[Window]
Visits = Sequence[Visit]
# Rounds: the visits of both settings.
ReplicatePairs = Sequence[tuple[Visit, Visit]]
# One value per visit, by metric.
ReplicateValues = Mapping[str, Floats]


class Differences(NamedTuple):
    """Log ratios of a metric, one per round that has both values, and log ratios of CPU speed, or of the rate of users'
    requests, which decides more; empty: unknown."""

    values: Floats
    speeds: Floats


def round_differences(pairs: ReplicatePairs, name: str) -> Differences:
    """Return the differences of a metric; empty if a value is not above 0."""
    return log_ratios(side_values(*sides_of(pairs), (name,)), name)


def sides_of(pairs: ReplicatePairs) -> tuple[Visits, Visits]:
    return [before for before, _ in pairs], [after for _, after in pairs]


def log_ratios(sides: tuple[ReplicateValues, ReplicateValues], name: str) -> Differences:
    """Return the differences of a metric between the values of both sides, one per round."""
    if any(name not in side for side in sides):
        return Differences(np.array([]), np.array([]))
    first, second = sides[0][name], sides[1][name]
    speeds = rate_ratios(*sides, name)
    speeds = speeds if len(speeds) else speed_ratios(*sides, name)
    both = ~(np.isnan(first) | np.isnan(second))
    known = both & ~np.isnan(speeds) if len(speeds) else both
    first, second = first[both], second[both]
    if not by_ratio(name, first, second):
        return Differences(np.array([]), np.array([]))
    all_known = len(speeds) and bool((known == both).all())
    return Differences(np.log(second / first), speeds[both] if all_known else np.array([]))


def side_values(before: Visits, after: Visits, further: Sequence[str] = ()) -> tuple[ReplicateValues, ReplicateValues]:
    """Return the values of both sides, by the same rule: see `visit_values`."""
    whole = compare_whole_runs((*before, *after))
    return visit_values(before, further, whole), visit_values(after, further, whole)


def compare_whole_runs(visits: Visits) -> bool:
    """Return whether runs are compared as a whole, because one is too short for blocks. Windows of rounds are not:
    their segments include the next set-up. Capacity searches are not: their segments are levels."""
    every = [window for visit in visits for window in visit if window.capacity is None]
    windows = [window for window in every if not any(segment.round for segment in window.segments)]
    return any(len(window.seconds) < 2 * BLOCK for window in windows)


def visit_values(visits: Visits, further: Sequence[str], whole: bool) -> ReplicateValues:
    """Return one value per visit and metric: the mean over its runs, by their counted seconds, or by `whole` runs.
    `further` metrics, named as in thresholds, always cover whole runs."""
    windows = [window for visit in visits for window in visit]
    values = run_values(windows) if whole else window_values(windows)
    values |= segment_metrics(windows, [name for name in further if name not in values])
    places = np.cumsum([len(visit) for visit in visits])[:-1]
    return {name: np.array([mean_of(name, part) for part in np.split(rows, places)]) for name, rows in values.items()}


def mean_of(name: str, values: Floats) -> float:
    """Return the mean on the scale on which the metric is compared, so that means and change agree."""
    return math.exp(float(np.log(values).mean())) if by_ratio(name, values) else float(values.mean())


def counting_error(before: Visits, after: Visits) -> float:
    """Return the half width for a difference of two shares of failed requests, by counting noise alone: four standard
    errors (Agresti and Coull)."""
    whole, total = compare_whole_runs((*before, *after)), 0.0
    for side in (before, after):
        windows = [window for visit in side for window in visit]
        counted = [(second.failed, second.completed + second.errors) for window in windows for second in window.seconds]
        if whole:
            counts = [segment.counts for window in windows for segment in window.segments]
            counted = [(part.failed, part.ended) for part in counts]
        requests = sum(ended for _, ended in counted)
        share = (sum(failed for failed, _ in counted) + 2) / (requests + 4)
        total += share * (1 - share) / (requests + 4)
    return 4 * math.sqrt(total)
