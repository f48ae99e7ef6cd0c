"""Rounds on users' traffic, stratified by route and method: both settings are weighed by one mix of requests.

The users decide the mix and the rate. A change of the mix between two windows is no effect of a setting, so each
window's latencies and failures are standardized: those of the mix of all rounds (direct standardization). The headline
is the median of times relative to the median of their stratum, which slow and fast routes decide alike. A round is left
out if its windows are too different for that.

A side of a round is one window; on two servers that exchange their roles it is one window of each server, and its
values are their geometric means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from cockpit.analysis.intervals import FIRST_TEST, Floats, sequential
from cockpit.analysis.replicates import ReplicatePairs, Visit
from cockpit.analysis.verdicts.outcome import Cause, Objection
from cockpit.model.counts import Group, add
from cockpit.model.histogram import Histogram
from cockpit.model.load.seconds import LoadSecond

# Metrics of rounds on traffic: the headline, then where in the distribution the setting helps.
QUANTILES = ("p50", "p10", "p25", "p75", "p90", "p99", "p99.9")
# Mean requests per window below which strata are pooled.
FEWEST = 20
# A round is left out if its rates differ by more than this factor (two servers at the same time share the waves of the
# users, so their balance must hold better), or if less than this share of its requests has a stratum in all windows.
MOST_RATIO, MOST_DRIFT, LEAST_COMMON = 2.0, 1.4, 0.5
# Rounds are invalid if more than this share is left out, or if the rate differs between the settings by more than this
# share (at this level).
MOST_LEFT_OUT, RATE_MARGIN, RATE_LEVEL = 1 / 3, 0.1, 0.01
# The strata that are pooled.
_REST = "other"

Groups = Mapping[str, Group]


class Stratified(NamedTuple):
    """Comparable rounds, with their standardized metrics; `left_out` counts the others. `objection`: why the rounds are
    invalid; None: they are valid."""

    pairs: ReplicatePairs
    left_out: int
    objection: Objection | None


def stratified(pairs: ReplicatePairs, budget: int) -> Stratified:
    """Standardize the windows of rounds, at most `budget` of them, oldest first."""
    windows = [window for pair in pairs for visit in pair for window in visit]
    every = total(window.groups for window in windows)
    large = {name for name, group in every.items() if group.completed >= FEWEST * len(windows)}
    mix = Mix.of(_pooled(every, large))
    kept = []
    for before, after in pairs:
        sides = [[(window, _pooled(window.groups, large)) for window in visit] for visit in (before, after)]
        common = [name for name in mix.shares if all(name in groups for side in sides for _, groups in side)]
        if sum(mix.shares[name] for name in common) < LEAST_COMMON:
            continue
        most = MOST_DRIFT if len(before) > 1 else MOST_RATIO
        if not 1 / most <= arrivals(after) / max(arrivals(before), 1e-9) <= most:
            continue
        first, second = (
            [
                replace(window, standardized={"arrivals": arrivals([window]), **mix.standardized(groups, common)})
                for window, groups in side
            ]
            for side in sides
        )
        kept.append((first, second))
    return Stratified(kept, len(pairs) - len(kept), _objection(kept, len(pairs), budget))


class Mix(NamedTuple):
    """The mix of requests over all rounds: `shares` of the strata, their `medians` (s), and the median of all (s)."""

    shares: Mapping[str, float]
    medians: Mapping[str, float]
    median: float

    @classmethod
    def of(cls, groups: Groups) -> Mix:
        requests = sum(group.completed for group in groups.values())
        shares = {name: group.completed / requests for name, group in groups.items()}
        medians = {name: group.service.percentile(50) or 1.0 for name, group in groups.items()}
        median = Histogram.merged(group.service for group in groups.values()).percentile(50)
        return cls(shares, medians, median)

    def standardized(self, groups: Groups, common: Sequence[str]) -> dict[str, float]:
        """Return the quantiles (s) and the share of failed requests of `groups` in this mix, over the `common`
        strata."""
        whole = sum(self.shares[name] for name in common)
        failed = (self.shares[name] * _failed(groups[name]) / groups[name].completed for name in common)
        values = {"errors": sum(failed) / whole}
        timed = [name for name in common if groups[name].service.count]
        if not timed:
            return values
        parts = [np.array(groups[name].service.values()).T for name in timed]
        times = np.concatenate([part[0] / 1e9 for part in parts])
        weights = np.concatenate(
            [self.shares[name] * part[1] / part[1].sum() for name, part in zip(timed, parts, strict=True)]
        )
        sizes = [part.shape[1] for part in parts]
        relative = times / np.repeat([self.medians[name] for name in timed], sizes)
        values |= _quantiles(times, weights, QUANTILES[1:])
        return values | {
            name: self.median * value for name, value in _quantiles(relative, weights, QUANTILES[:1]).items()
        }


def _quantiles(times: Floats, weights: Floats, names: Sequence[str]) -> dict[str, float]:
    """Return weighted quantiles, interpolated between the times, because logs of milliseconds have few of them."""
    order = np.argsort(times, kind="stable")
    places = weights[order].cumsum() - weights[order] / 2
    percents = np.array([float(name[1:]) for name in names])
    return dict(zip(names, np.interp(percents / 100 * weights.sum(), places, times[order]).tolist(), strict=True))


def arrivals(visit: Visit) -> float:
    """Return the requests/s of the windows' counted seconds."""
    return math.prod(_rate(window.seconds) for window in visit) ** (1 / len(visit))


def _rate(seconds: Sequence[LoadSecond]) -> float:
    length = sum(second.end - second.start for second in seconds)
    return sum(second.completed for second in seconds) / length if length else 0.0


def _failed(group: Group) -> int:
    return sum(count for status, count in group.statuses.items() if status >= 500)


def total(parts: Iterable[Groups]) -> dict[str, Group]:
    """Return the sum of counts by route."""
    known: dict[str, Group] = {}
    for groups in parts:
        for name, group in groups.items():
            known[name] = add(known[name], group) if name in known else group
    return known


def _pooled(groups: Groups, large: set[str]) -> dict[str, Group]:
    """Return the groups with requests, with all but the large ones as one."""
    return total({name if name in large else _REST: group} for name, group in groups.items() if group.completed)


def _objection(kept: ReplicatePairs, number: int, budget: int) -> Objection | None:
    """Return an objection if users' traffic differs by more than stratification allows for."""
    left_out = number - len(kept)
    if number >= FIRST_TEST and left_out > MOST_LEFT_OUT * number:
        return Objection(
            cause=Cause.TRAFFIC_DRIFTED, detail=f"{left_out} of {number} rounds have another rate or mix of requests"
        )
    if len(kept) < FIRST_TEST:
        return None
    ratios = np.array([math.log(arrivals(after) / arrivals(before)) for before, after in kept if arrivals(before)])
    if len(ratios) < FIRST_TEST:
        return None
    interval = sequential(ratios, budget, RATE_LEVEL)
    if (interval.low > 0 or interval.high < 0) and abs(interval.estimate) > math.log1p(RATE_MARGIN):
        change = f"{100 * math.expm1(interval.estimate):+.0f}%"
        return Objection(cause=Cause.TRAFFIC_DRIFTED, detail=f"{change} requests/s with the new values")
    return None
