"""The changes, actions and runs of a session in order of time: many windows are cut without a pass over all of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple, Self

from cockpit.model.markers import ChangeMarker, Marker
from cockpit.model.state import Segment, State

Span = tuple[float, float]
_begin = itemgetter(0)


class Timeline(NamedTuple):
    """`changing`: spans in which servers were changed, by their begin, and `latest`: the latest end so far. `active`:
    instants at which changes became active. `runs`: begin and end of each run."""

    changing: Sequence[Span]
    latest: Sequence[float]
    active: Sequence[float]
    runs: Sequence[tuple[float, float | None]]

    @classmethod
    def of(cls, state: State) -> Self:
        changing = sorted(_change_spans(state))
        runs: dict[int, list[Segment]] = {}
        for segment in state.segments:
            runs.setdefault(segment.run, []).append(segment)
        return cls(
            changing,
            list(accumulate((over for _, over in changing), max)),
            sorted(change.active_since for change in state.changes if change.active_since is not None),
            [(segments[0].start, segments[-1].end) for segments in runs.values()],
        )

    def changing_within(self, start: float, end: float) -> list[Span]:
        """Return the spans of changes that begin before `end` and are over after `start`."""
        spans = []
        at = bisect_left(self.changing, end, key=_begin)
        while at and self.latest[at - 1] > start:
            at -= 1
            spans += [self.changing[at]] if self.changing[at][1] > start else []
        return spans

    def switched(self, after: float, until: float) -> bool:
        """Return whether a change became active after `after`, and not after `until`."""
        return bisect_right(self.active, after) < bisect_right(self.active, until)

    def run_at(self, t: float) -> int | None:
        """Return the position of the last run that begins at `t` or earlier; None if there is none."""
        return bisect_right(self.runs, t, key=_begin) - 1 if self.runs and self.runs[0][0] <= t else None


class _Newest:
    """The timeline of the state that was used last: a report or a screen cuts many windows of one state."""

    known: tuple[State, Timeline] | None = None


def timeline(state: State) -> Timeline:
    known = _Newest.known
    if known is None or known[0] is not state:
        known = _Newest.known = state, Timeline.of(state)
    return known[1]


def _change_spans(state: State) -> list[Span]:
    """Return the time spans in which servers were changed: from request to activation, during rollbacks, and during
    actions."""
    spans = [(action.begun, action.ended or state.t) for action in state.actions]
    for change in state.changes:
        over = change.ended or state.t
        spans.append((change.begun, over if change.active_since is None else min(change.active_since, over)))
        if (back := change.stages.get("undoing")) is not None:
            spans.append((back, over))
    return spans


def all_markers(state: State) -> list[Marker]:
    """Return the session's markers, and a marker for each change without one: at its effect, or now if pending."""
    unmarked: list[Marker] = [
        ChangeMarker(
            t=state.t if change.active_since is None else change.active_since,
            change=change.name,
            outcome=change.outcome,
            ended=change.ended,
        )
        for change in state.own_changes
        if change.outcome != "applied" and (change.active_since is not None or not change.outcome)
    ]
    return [*state.markers, *unmarked]
