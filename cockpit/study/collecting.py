"""Collect the result of a study from its sessions. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from cockpit.analysis.capacity.result import capacity_result, search_of, search_window
from cockpit.analysis.stability import STABLE, long_enough, window_stability
from cockpit.analysis.windows import segment_window
from cockpit.metrics.results import run_result, runs_result, segments_result
from cockpit.model.host.state import HostPoint
from cockpit.model.state import CapacityState, Segment, State
from cockpit.model.study import Study, StudyRound, StudyRun
from cockpit.study.judging import spread_of, verdicts_of
from cockpit.study.plan import steps_of
from cockpit.study.results import StudyCell, StudyResult, StudyRunResult


def collect(states: Sequence[State], name: str) -> StudyResult | None:
    """Return the result of the last session's study, from all its sessions; None if no session ran a study."""
    last = next((state for state in reversed(states) if state.study), None)
    if last is None or last.study is None or last.started is None:
        return None
    study = last.study.study
    fingerprint = last.study.fingerprint
    own = [state for state in states if state.study and state.started and state.study.fingerprint == fingerprint]
    studies = [state.study for state in own if state.study]
    rounds = {turn.round: turn for study_state in reversed(studies) for turn in study_state.rounds}
    done = frozenset(ended.step for study_state in studies for ended in study_state.done)
    runs = [run for number, state in enumerate(own, 1) for run in _runs(number, state)]
    begun = tuple(rounds[number] for number in sorted(rounds))
    cells = tuple(_cells(study, runs, begun, done))
    first = own[0].started
    return StudyResult(
        name=name,
        question=last.started.question,
        study=study,
        rounds=begun,
        done=done,
        ended=any(study_state.ended for study_state in studies),
        wall=first.wall if first else 0.0,
        environment=last.started.environment,
        hosts={name: host.facts for state in own for name, host in state.hosts.items() if host.facts},
        cells=cells,
        verdicts=verdicts_of(study, cells, begun),
        spread=spread_of(study, cells),
        repeated=tuple(step.detail for study_state in studies for step in study_state.lost),
    )


def _runs(session: int, state: State) -> list[StudyRunResult]:
    """Return the completed runs of a session, without warm-ups (turn 0); runs of interrupted steps are not counted."""
    study = state.study
    if study is None:
        return []
    counted = {run for ended in study.done for run in ended.counted}
    results = []
    for place in study.runs:
        search = search_of(state, place.run) if study.study.until else None
        if search is not None and place.turn > 0:
            results += _search(session, state, place, search, counted=place.run in counted)
            continue
        result = run_result(state, place.run)
        if result is None or result.reason != "completed" or place.turn == 0:
            continue
        segment = result.segments[-1]
        window = segment_window(state, segment)
        results.append(
            StudyRunResult(
                place=place,
                session=session,
                counted=place.run in counted,
                result=result,
                window=window,
                stability=window_stability(window) if long_enough(window) else STABLE,
                observations=tuple(seen for seen in study.observations if seen.run == place.run),
                cpu={name: _cpu(host.points, segment) for name, host in state.hosts.items()},
            )
        )
    return results


def _search(
    session: int, state: State, place: StudyRun, search: CapacityState, *, counted: bool
) -> list[StudyRunResult]:
    """Return a run that was a complete capacity search: its levels with an unsaturated generator, if there are any."""
    capacity, window = capacity_result(state, search), search_window(state, search)
    levels = window.segments or tuple(segment for segment in state.segments if segment.run == place.run)
    if not capacity.is_complete or not levels or state.study is None:
        return []
    whole = segments_result(levels, window.plan, sum(segment.seconds for segment in levels))
    return [
        StudyRunResult(
            place=place,
            session=session,
            counted=counted and window.capacity is not None,
            result=replace(whole, altered=False, reason="completed"),
            window=window,
            observations=tuple(seen for seen in state.study.observations if seen.run == place.run),
            capacity=capacity,
        )
    ]


def _cpu(points: Sequence[HostPoint], segment: Segment) -> tuple[tuple[float, float], ...]:
    return tuple(
        (point.t - segment.start, 100 - point.cpu.idle)
        for point in points
        if point.cpu is not None and segment.start <= point.t <= (segment.end or segment.last) + 1
    )


def _cells(
    study: Study, runs: Sequence[StudyRunResult], rounds: Sequence[StudyRound], done: frozenset[int]
) -> list[StudyCell]:
    steps = [step for turn in rounds for step in steps_of(study, turn)]
    cells = []
    for variant in study.variants:
        for level in study.levels or (None,):
            own = [step for step in steps if step.variant.name == variant.name and step.level == level]
            for part in study.passes:
                cell_runs = tuple(run for run in runs if _place(run.place) == (variant.name, level, part.name))
                if not cell_runs:
                    continue
                counted = [run.result for run in cell_runs if run.counted]
                total = runs_result(counted) if counted else None
                if total is not None and study.until:  # a capacity search alters the load by design
                    total = replace(total, altered=False)
                cells.append(
                    StudyCell(
                        variant=variant.name,
                        level=level,
                        pass_name=part.name,
                        runs=cell_runs,
                        total=total,
                        complete=all(step.number in done for step in own),
                        last_round=max((step.round for step in own), default=0),
                        control=variant.control,
                    )
                )
    return cells


def _place(run: StudyRun) -> tuple[str, float | None, str]:
    return (run.variant, run.level, run.pass_name)
