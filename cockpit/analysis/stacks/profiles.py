"""The CPU profile of a segment of a host, alone or beside that of its baseline. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from cockpit.analysis.stacks.call_tree import CallTree, StackChange, StackScale
from cockpit.analysis.stacks.difference import profile_differences
from cockpit.analysis.stacks.merging import FunctionSamples, by_function, merged, segment_slices
from cockpit.analysis.verdicts.outcome import FunctionDifference
from cockpit.analysis.windows import segment_window
from cockpit.model.stacks import StackSlice, StackSource
from cockpit.model.state import Segment, State

_NONE, _UNCHANGED = FunctionSamples(0, 0), FunctionDifference(function="", own=None, total=None)


class FunctionShare(NamedTuple):
    """CPU of a function (percent), alone and with its callees, and the changes of both."""

    frame: str
    own: float
    total: float
    own_change: StackChange
    total_change: StackChange


class StackProfile(NamedTuple):
    """A profile of `seconds` s with its samples and cost (share of a core); `before`: the samples of the baseline,
    None without one; `tested`: there were enough slices to test changes. `functions`: significant changes, the largest
    first, then the hottest; all changes if they were not tested. `source`: as in StackSlice."""

    tree: CallTree
    functions: tuple[FunctionShare, ...]
    source: StackSource
    hz: int
    seconds: float
    samples: int
    cost: float
    before: int | None = None
    tested: bool = False


def stack_profile(state: State, host: str, segment: Segment, before: Segment | None = None) -> StackProfile | None:
    """Return the profile of a segment, beside that of `before` if it has one; None without a complete slice."""
    slices = segment_slices(state, host, segment)
    if not slices:
        return None
    baseline = segment_slices(state, host, before) if before is not None else ()
    stacks, were, ratio, known = merged(slices), None, 1.0, None
    same = baseline and baseline[-1].source == slices[-1].source
    if before is not None and same and before.rate and segment.rate and (cores := _cores(baseline)):
        were = merged(baseline)
        ratio = (_cores(slices) / segment.rate) / (cores / before.rate)
        # CPU/request is that of the server also while the generator was the bottleneck.
        windows = ([segment_window(state, side).with_saturated()] for side in (before, segment))
        known = next((each for each in profile_differences(*windows) if each.host == host), None)
    tested = known is not None and known.change is not None
    changed = {each.function: each for each in known.functions} if known is not None else {}
    tree = CallTree(stacks, were, ratio, changed)
    return StackProfile(
        tree,
        tuple(sorted(_functions(stacks, were or {}, tree.scale, changed), key=partial(_order, tested))),
        slices[-1].source,
        slices[-1].hz,
        _seconds(slices),
        sum(stacks.values()),
        sum(part.cost for part in slices) / _seconds(slices),
        None if were is None else sum(were.values()),
        tested,
    )


def _functions(
    stacks: Mapping[str, int], before: Mapping[str, int], scale: StackScale, changed: Mapping[str, FunctionDifference]
) -> list[FunctionShare]:
    now, then, rows = by_function(stacks), by_function(before), []
    for frame in {**now, **then}:
        after, was = now.get(frame, _NONE), then.get(frame, _NONE)
        known = changed.get(frame, _UNCHANGED)
        own, total = scale.change(after.own, was.own), scale.change(after.total, was.total)
        changes = own._replace(clear=known.own is not None), total._replace(clear=known.total is not None)
        rows.append(FunctionShare(frame, after.own * scale.percent, after.total * scale.percent, *changes))
    return rows


def _order(tested: bool, row: FunctionShare) -> tuple[float | str, ...]:
    clear = (-abs(change.points) * (change.clear or not tested) for change in (row.own_change, row.total_change))
    return *clear, -row.own, -row.total, row.frame


def _seconds(slices: Sequence[StackSlice]) -> float:
    return sum(part.t - part.start for part in slices)


def _cores(slices: Sequence[StackSlice]) -> float:
    """Return the sampled CPU time per second."""
    return sum(part.samples / part.hz for part in slices) / _seconds(slices)
