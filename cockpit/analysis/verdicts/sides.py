"""One side of a comparison: segments of the runs table with their conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from cockpit.analysis.plans import differences
from cockpit.analysis.verdicts.segments import change_steps
from cockpit.analysis.windows import Window, segment_window
from cockpit.metrics.results import RunResult, run_result, segments_result
from cockpit.model.errors import UsageError
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import Segment, State


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison. `name` is as requested. `result` covers all `segments`, `windows` has one per segment.
    `knobs` are the values active at the start of the first segment; None: unset. `state` is the session of the
    segments."""

    name: str
    state: State
    segments: tuple[Segment, ...]
    result: RunResult
    windows: tuple[Window, ...]
    knobs: Mapping[str, str | None] = MappingProxyType({})


def side_of_segments(state: State, segments: Sequence[Segment], name: str) -> Side:
    """Return the side with these segments, under one load and one set of settings. Raises UsageError without counted
    segments, and if loads or settings of the runs differ."""
    counted = tuple(segment for segment in segments if not segment.warmup)
    if not counted:
        raise UsageError(f"{name}: no counted load; choose a run or time range with load after its warm-up")
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
    """Return the known knobs with their values at instant `t`."""
    values = {name: knob.value for name, knob in state.knobs.items() if knob.known}
    for at, change, back in reversed(change_steps(state.changes)):
        if at > t:
            known = (setting for setting in change.settings if setting.knob in values)
            values |= {setting.knob: setting.new if back else setting.old for setting in known}
    return values


def _plan_of(state: State, segments: Sequence[Segment]) -> LoadPlan:
    """Return the load of the segments if it is the same for all, else that of the whole run."""
    first = segments[0].plan
    return first if all(not differences(first, segment.plan) for segment in segments) else state.plans[segments[0].run]


def _check_alike(state: State, segments: Sequence[Segment], name: str) -> None:
    """Raise UsageError unless load and settings of all runs are the same. Segments of one run (load levels, a change)
    may differ."""
    first = segments[0]
    for segment in segments:
        if segment.run == first.run:
            continue
        unlike = differences(state.plans[first.run], state.plans[segment.run])
        if unlike:
            raise UsageError(
                f"{name}: runs {first.run} and {segment.run} have different loads ({', '.join(unlike)}); "
                f"choose one, as FILE#{first.run}"
            )
        if knobs_at(state, first.start) != knobs_at(state, segment.start):
            raise UsageError(f"{name}: a setting was changed between the runs; choose one run, as FILE#{first.run}")
