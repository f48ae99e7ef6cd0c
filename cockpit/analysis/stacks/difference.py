"""The difference between the CPU profiles of two sides of a comparison, by function. Pure.

A value is the samples of a function per request, a ratio of sums over slices; samples at a higher rate than the lowest
one weigh less. Slices are the replicates: a function
differs if Welch's t test, with the variance of the ratio over slices, is significant at a false discovery rate of 5%
over all functions (Benjamini and Hochberg, 1995); by itself, with its callees, and by cause (see `by_cause`) are three
families of tests. The variance is the largest of batch means of one to three slices, because load and CPU speed drift,
and at least that of counts (Poisson), because a rare function may be in no slice of one side.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from cockpit.analysis.intervals import Floats, student_cdf
from cockpit.analysis.stacks.merging import FunctionSamples, by_cause, by_function
from cockpit.analysis.verdicts.outcome import FunctionDifference, ProfileDifference
from cockpit.analysis.windows import Window, Windows
from cockpit.model.stacks import StackSlice

FALSE_DISCOVERY_RATE = 0.05
# Minimum slices per side, and minimum samples of a function on both sides.
LEAST_SLICES, _LEAST_SAMPLES = 4, 10
# A slice counts if this share of it is in seconds that count.
_COUNTED = 0.9
# Maximum number of functions of a difference; smaller changes than this (percentage points) are left out.
_MOST_FUNCTIONS, _SMALLEST = 20, 0.5
# Batches of a variance: lengths in slices, and their minimum number.
_BATCHES, _LEAST_BATCHES = (1, 2, 3), 4
_CACHED = 4_000


class _CountedSlice(NamedTuple):
    """A slice, and the number of requests that were completed in it."""

    part: StackSlice
    requests: float


class SliceSamples(NamedTuple):
    """Samples by name (columns) of the slices of one side (rows), and requests of each slice. `total`: all samples."""

    names: Sequence[str]
    counts: Floats
    requests: Floats
    total: float


class _SliceProfile(NamedTuple):
    part: StackSlice
    functions: Mapping[str, FunctionSamples]
    causes: Mapping[str, int]


def profile_differences(before: Windows, after: Windows) -> tuple[ProfileDifference, ...]:
    """Return the difference of each host that was profiled on both sides."""
    names = dict.fromkeys(name for window in before for name in window.slices)
    both = ((name, _of_one_source(_counted(before, name), _counted(after, name))) for name in names)
    return tuple(_difference(name, first, second) for name, (first, second) in both if first and second)


def _of_one_source(
    before: Sequence[_CountedSlice], after: Sequence[_CountedSlice]
) -> tuple[Sequence[_CountedSlice], Sequence[_CountedSlice]]:
    """Return both sides without slices of another source than that of the last slice."""
    source = after[-1].part.source if after else None
    first, second = ([each for each in side if each.part.source == source] for side in (before, after))
    return first, second


def profiled_share(windows: Windows) -> float:
    """Return the largest share of the time in which a host was profiled."""
    seconds = sum(window.end - window.start for window in windows)
    names = {name for window in windows for name in window.slices}
    profiled = (
        sum(
            min(part.t, window.end) - max(part.start, window.start)
            for window in windows
            for part in window.slices.get(name, ())
        )
        for name in names
    )
    return max(profiled, default=0.0) / seconds if seconds > 0 else 0.0


def _counted(windows: Windows, host: str) -> list[_CountedSlice]:
    parts = [(window, part) for window in windows for part in window.slices.get(host, ())]
    known = [(part, *_requests(window, part)) for window, part in parts]
    return [_CountedSlice(part, requests) for part, requests, share in known if share >= _COUNTED]


def _requests(window: Window, part: StackSlice) -> tuple[float, float]:
    """Return the requests that were completed in a slice, and the share of it in seconds that count."""
    requests = covered = 0.0
    for second in window.seconds[bisect_left(window.seconds, math.floor(part.start), key=lambda each: each.second) :]:
        overlap = min(part.t, second.second + 1) - max(part.start, second.second)
        if overlap <= 0:
            break
        requests += overlap * second.rate
        covered += overlap
    return requests, covered / (part.t - part.start)


def _difference(host: str, before: Sequence[_CountedSlice], after: Sequence[_CountedSlice]) -> ProfileDifference:
    hz = min(each.part.hz for each in (*before, *after))
    seconds = [sum(each.part.samples / each.part.hz for each in side) for side in (before, after)]
    samples = tuple(sum(each.part.samples for each in side) for side in (before, after))
    costs = (sum(each.part.cost for each in side) / sum(_length(each) for each in side) for side in (before, after))
    known = ProfileDifference(
        host=host,
        source=before[0].part.source,
        hz=hz,
        slices=(len(before), len(after)),
        samples=(samples[0], samples[1]),
        cost=max(costs),
    )
    first, second = (sum(each.requests for each in side) for side in (before, after))
    if min(known.slices) < LEAST_SLICES or not samples[0] or not first or not second:
        return known
    own, total, causes = (
        significant_changes(*_tables(before, after, hz, counts))
        for counts in (
            lambda each: {name: known.own for name, known in _profile(each.part).functions.items()},
            lambda each: {name: known.total for name, known in _profile(each.part).functions.items()},
            lambda each: _profile(each.part).causes,
        )
    )
    rows = [
        FunctionDifference(function=name, own=own.get(name), total=total.get(name))
        for name in sorted({*own, *total}, key=lambda name: (-abs(own.get(name, 0.0)), -abs(total.get(name, 0.0))))
    ]
    return replace(
        known,
        change=seconds[1] / second / (seconds[0] / first) - 1,
        functions=tuple(rows[:_MOST_FUNCTIONS]),
        causes=dict(sorted(causes.items(), key=lambda item: -abs(item[1]))[:_MOST_FUNCTIONS]),
    )


def _length(each: _CountedSlice) -> float:
    return each.part.t - each.part.start


def _tables(
    before: Sequence[_CountedSlice],
    after: Sequence[_CountedSlice],
    hz: int,
    counts: Callable[[_CountedSlice], Mapping[str, int]],
) -> tuple[SliceSamples, SliceSamples]:
    by_slice = [[counts(each) for each in side] for side in (before, after)]
    names = sorted({name for side in by_slice for known in side for name in known})
    first, second = (
        SliceSamples(
            names,
            np.array(
                [
                    [known.get(name, 0) * hz / each.part.hz for name in names]
                    for known, each in zip(counted, side, strict=True)
                ]
            ),
            np.array([each.requests for each in side]),
            sum(each.part.samples * hz / each.part.hz for each in side),
        )
        for side, counted in zip((before, after), by_slice, strict=True)
    )
    return first, second


def significant_changes(before: SliceSamples, after: SliceSamples) -> dict[str, float]:
    """Return the significant changes, in percentage points of all samples/request before."""
    samples = before.counts.sum(axis=0) + after.counts.sum(axis=0)
    requests = before.requests.sum() + after.requests.sum()
    rates, errors, freedoms = [], [], []
    for side in (before, after):
        rate = side.counts.sum(axis=0) / side.requests.sum()
        mean = side.requests.mean()
        variance, freedom = _variance((side.counts - side.requests[:, None] * rate) / mean)
        # The variance of counts if nothing changed.
        least = samples / requests / mean
        rates.append(rate)
        errors.append(np.maximum(variance, least) / len(side.counts))
        freedoms.append(freedom)
    change, error = rates[1] - rates[0], errors[0] + errors[1]
    tested = np.flatnonzero((samples >= _LEAST_SAMPLES) & (error > 0))
    freedom = error**2 / np.maximum(errors[0] ** 2 / freedoms[0] + errors[1] ** 2 / freedoms[1], np.finfo(float).tiny)
    chances = {
        int(at): 2 * (1 - student_cdf(float(abs(change[at]) / math.sqrt(error[at])), float(freedom[at])))
        for at in tested
    }
    points = 100 * change / (before.total / before.requests.sum())
    return {before.names[at]: float(points[at]) for at in discoveries(chances) if abs(points[at]) >= _SMALLEST}


def discoveries(chances: Mapping[int, float], rate: float = FALSE_DISCOVERY_RATE) -> set[int]:
    """Return the tests that are significant at a false discovery rate, of p-values by test (Benjamini, Hochberg)."""
    ordered = sorted(chances, key=lambda at: chances[at])
    limits = [number for number, at in enumerate(ordered, 1) if chances[at] <= rate * number / len(ordered)]
    return set(ordered[: max(limits, default=0)])


def _variance(values: Floats) -> tuple[Floats, Floats]:
    """Return the long-run variance of each column, and its degrees of freedom: the largest of several batch lengths."""
    best, freedom = np.zeros(values.shape[1]), np.full(values.shape[1], float(len(values) - 1))
    for length in _BATCHES:
        number = len(values) // length
        if length > 1 and number < _LEAST_BATCHES:
            break
        means = values[: number * length].reshape(number, length, -1).mean(axis=1)
        variance = length * means.var(axis=0, ddof=1)
        freedom = np.where(variance > best, number - 1.0, freedom)
        best = np.maximum(best, variance)
    return best, freedom


_known: dict[int, _SliceProfile] = {}


def _profile(part: StackSlice) -> _SliceProfile:
    """Return the profile of a slice. Cached, because verdicts are judged again as they grow."""
    known = _known.get(id(part))
    if known is None or known.part is not part:
        if len(_known) > _CACHED:
            _known.clear()
        known = _known[id(part)] = _SliceProfile(part, by_function(part.stacks), by_cause(part.stacks))
    return known
