"""One side of a comparison: segments of the runs table with their conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from cockpit.analysis.plans import differences
from cockpit.analysis.segment_verdicts import change_steps
from cockpit.analysis.windows import Window, segment_window
from cockpit.model.errors import UsageError
from cockpit.model.load import LoadPlan
from cockpit.model.metrics import RunResult, run_result, segments_result
from cockpit.model.state import Segment, State


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is as requested. `result` is all `segments` together, `windows` one for each segment. `knobs` are values
    active at the start of the first segment; None: not set there. `state` is the session they are of."""

    name: str
    state: State
    segments: tuple[Segment, ...]
    result: RunResult
    windows: tuple[Window, ...]
    knobs: Mapping[str, str | None] = MappingProxyType({})


def side_of_segments(state: State, segments: Sequence[Segment], name: str) -> Side:
    """Segments under one load and one set of settings. Raises UsageError for none, and for segments that do not belong
    together."""
    counted = tuple(segment for segment in segments if not segment.warmup)
    if not counted:
        raise UsageError(f"{name}: no load was counted there")
    _check_alike(state, counted, name)
    plan = _plan_of(state, counted)
    whole = run_result(state, counted[0].run)
    if whole is not None and whole.segments == counted:
        result = msgspec.structs.replace(whole, plan=plan)
    else:
        result = segments_result(counted, plan, sum(segment.seconds for segment in counted))
    return Side(
        name=name,
        state=state,
        segments=counted,
        result=result,
        windows=tuple(segment_window(state, segment) for segment in counted),
        knobs=knobs_at(state, counted[0].start),
    )


def knobs_at(state: State, t: float) -> dict[str, str | None]:
    """Every knob of which a value is known, as it was at instant `t`."""
    values = {name: knob.value for name, knob in state.knobs.items() if knob.known}
    for at, change, back in sorted(change_steps(state.changes), key=lambda step: step[0], reverse=True):
        if at > t:
            values |= {one.knob: one.new if back else one.old for one in change.settings if one.knob in values}
    return values


def _plan_of(state: State, segments: Sequence[Segment]) -> LoadPlan:
    """Return the load of the load level if all segments have the same one, as altered; else that of the whole run."""
    first = segments[0].plan
    return first if all(not differences(first, segment.plan) for segment in segments) else state.plans[segments[0].run]


def _check_alike(state: State, segments: Sequence[Segment], name: str) -> None:
    """Runs are pooled as repeats only if nothing differs. Segments of one run (load levels, a change) may differ."""
    first = segments[0]
    for segment in segments:
        if segment.run == first.run:
            continue
        unlike = differences(state.plans[first.run], state.plans[segment.run])
        if unlike:
            raise UsageError(
                f"{name}: its runs {first.run} and {segment.run} are not one load ({', '.join(unlike)}); name one as "
                f"FILE#{first.run}"
            )
        if knobs_at(state, first.start) != knobs_at(state, segment.start):
            raise UsageError(f"{name}: a setting was changed between its runs; name one as FILE#{first.run}")
