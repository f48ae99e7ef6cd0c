"""What a study came to: its runs from one recording or several, the cells of its table, the verdicts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from cockpit.analysis.intervals import FIRST_LOOK
from cockpit.analysis.outcome import Verdict
from cockpit.analysis.verdict import judge_rounds, judge_runs
from cockpit.analysis.windows import Window, row_window
from cockpit.model.events import StudyLook, StudyRun
from cockpit.model.figures import RunResult, run_result
from cockpit.model.fold_load import add
from cockpit.model.host_state import HostPoint
from cockpit.model.host_window import joined
from cockpit.model.state import Segment, State
from cockpit.model.study import Study
from cockpit.study.plan import steps


class StudyRunResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run: where it stands in the study, whether it `counted`, what it came to, and what was looked at.

    `session` is which of the study's sessions it was in (from 1). `window` is what verdicts compare.
    `cpu` is (seconds since the run began, per cent busy) by host.
    """

    place: StudyRun
    session: int
    counted: bool
    result: RunResult
    window: Window
    looks: tuple[StudyLook, ...] = ()
    cpu: dict[str, tuple[tuple[float, float], ...]] = {}


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of an arm on a rung in a pass, over all rounds; `total` is the counted ones together, None where there
    is none. `steady`: in every round they settled, where they had to; `whole`: every round is done."""

    arm: str
    rung: float | None
    part: str
    runs: tuple[StudyRunResult, ...]
    total: RunResult | None
    steady: bool
    whole: bool

    @property
    def counted(self) -> tuple[StudyRunResult, ...]:
        return tuple(run for run in self.runs if run.counted)

    @property
    def left_out(self) -> tuple[StudyRunResult, ...]:
        return tuple(run for run in self.runs if not run.counted)


class StudyVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The arm `other` against `first` on a rung in a pass."""

    first: str
    other: str
    rung: float | None
    part: str
    verdict: Verdict


class StudyResult(msgspec.Struct, frozen=True, kw_only=True):
    """A study as far as it has come. `done` of its `steps` are done; `wall` is when it began (epoch seconds)."""

    name: str
    question: str
    study: Study
    steps: int
    done: int
    wall: float
    environment: dict[str, str]
    cells: tuple[Cell, ...]
    verdicts: tuple[StudyVerdict, ...]

    @property
    def steady(self) -> bool:
        return all(cell.steady for cell in self.cells)


def steps_done(states: Iterable[State], study: Study) -> frozenset[int]:
    """Numbers of the steps of this very study that these sessions have done."""
    own = [state.study for state in states if state.study and state.study.fingerprint == study.fingerprint]
    return frozenset(ended.step for one in own for ended in one.done)


def collect(states: Sequence[State], name: str) -> StudyResult | None:
    """The result of the study that the last of these sessions ran; None where none ran one."""
    last = next((state for state in reversed(states) if state.study), None)
    if last is None or last.study is None or last.started is None:
        return None
    study = last.study.study
    fingerprint = last.study.fingerprint
    own = [state for state in states if state.study and state.started and state.study.fingerprint == fingerprint]
    ended = {one.step: one.steady for state in own if state.study for one in state.study.done}
    runs = [run for number, state in enumerate(own, 1) for run in _runs(number, state)]
    cells = tuple(_cells(study, runs, ended))
    first = own[0].started
    return StudyResult(
        name=name,
        question=last.started.question,
        study=study,
        steps=last.study.steps,
        done=len(ended),
        wall=first.wall if first else 0.0,
        environment=last.started.environment,
        cells=cells,
        verdicts=tuple(_verdicts(study, cells)),
    )


def _runs(session: int, state: State) -> list[StudyRunResult]:
    """The runs of a session that came to their end. Of a step that was cut short none counts, and warm-ups (turn 0) are
    none of the study's."""
    told = state.study
    if told is None:
        return []
    counted = {run for one in told.done for run in one.counted}
    found = []
    for place in told.runs:
        result = run_result(state, place.run)
        if result is None or result.reason != "completed" or place.turn == 0:
            continue
        row = result.segments[-1]
        found.append(
            StudyRunResult(
                place=place,
                session=session,
                counted=place.run in counted,
                result=result,
                window=row_window(state, row),
                looks=tuple(look for look in told.looks if look.run == place.run),
                cpu={name: _cpu(host.points, row) for name, host in state.hosts.items()},
            )
        )
    return found


def _cpu(points: Sequence[HostPoint], row: Segment) -> tuple[tuple[float, float], ...]:
    return tuple(
        (point.t - row.start, 100 - point.cpu.idle)
        for point in points
        if point.cpu is not None and row.start <= point.t <= (row.end or row.last) + 1
    )


def _cells(study: Study, runs: Sequence[StudyRunResult], ended: dict[int, bool]) -> list[Cell]:
    """The cells that have any run, in the order of the plan."""
    found = []
    for arm in study.arms:
        for rung in study.rungs or (None,):
            own = [step.number for step in steps(study) if step.arm.name == arm.name and step.rung == rung]
            for part in study.passes:
                of_it = tuple(
                    run
                    for run in runs
                    if run.place.arm == arm.name and run.place.rung == rung and run.place.part == part.name
                )
                if not of_it:
                    continue
                found.append(
                    Cell(
                        arm=arm.name,
                        rung=rung,
                        part=part.name,
                        runs=of_it,
                        total=together([run.result for run in of_it if run.counted]),
                        steady=all(ended.get(step, True) for step in own),
                        whole=all(step in ended for step in own),
                    )
                )
    return found


def together(results: Sequence[RunResult]) -> RunResult | None:
    """Several runs as one: counts, seconds and the hosts' windows added up. None where there is none."""
    if not results:
        return None
    total = results[0]
    for one in results[1:]:
        hosts = {
            name: joined(total.hosts[name], one.hosts[name]) if name in total.hosts else one.hosts[name]
            for name in one.hosts
        }
        total = replace(
            total,
            counts=add(total.counts, one.counts),
            seconds=total.seconds + one.seconds,
            hosts={**total.hosts, **hosts},
            segments=(*total.segments, *one.segments),
            worker_cpu=_summed(total.worker_cpu, one.worker_cpu),
            worker_wait=_summed(total.worker_wait, one.worker_wait),
            saturated=total.saturated + one.saturated,
            partial="; ".join(dict.fromkeys(filter(None, (total.partial, one.partial)))),
        )
    return total


def _summed(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    return {key: one.get(key, 0.0) + other.get(key, 0.0) for key in sorted({*one, *other})}


def _verdicts(study: Study, cells: Sequence[Cell]) -> list[StudyVerdict]:
    """Every planned comparison whose two cells have counted runs; the risk is shared by all that are planned."""
    by_place = {(cell.arm, cell.rung, cell.part): cell for cell in cells}
    places = [
        (first, other, rung, part.name)
        for first, other in study.compare
        for rung in study.rungs or (None,)
        for part in study.passes
    ]
    found = []
    for first, other, rung, part in places:
        one, two = by_place.get((first, rung, part)), by_place.get((other, rung, part))
        if not (one and two and one.counted and two.counted):
            continue
        label = " · ".join(filter(None, (f"{other} vs {first}", _rung(study, rung), part)))
        others = [cell for cell in cells if cell not in (one, two)]
        verdict = _judged(study, one, two, others, label, len(places))
        found.append(StudyVerdict(first=first, other=other, rung=rung, part=part, verdict=verdict))
    return found


def _rung(study: Study, rung: float | None) -> str:
    if rung is None:
        return ""
    return f"{rung:g}/s" if study.plan.open else f"c={rung:g}"


def _judged(study: Study, first: Cell, other: Cell, others: Sequence[Cell], label: str, comparisons: int) -> Verdict:
    """By rounds from the fourth on, else by runs, whose spread is borrowed from the other cells."""
    before, after = _by_round(study, first), _by_round(study, other)
    rounds = sorted(before.keys() & after.keys())
    if len(rounds) >= FIRST_LOOK:
        return judge_rounds([(before[turn], after[turn]) for turn in rounds], label, study.repeats, comparisons)
    borrowed = [list(_by_round(study, cell).values()) for cell in others]
    return judge_runs(list(before.values()), list(after.values()), label, borrowed, comparisons)


def _by_round(study: Study, cell: Cell) -> dict[int, list[Window]]:
    """The windows of each round's visit: runs without a set-up between them are one value."""
    found: dict[int, list[Window]] = {}
    for run in cell.counted:
        found.setdefault(run.place.round, []).append(_at_one_target(study, run.window))
    return found


def _at_one_target(study: Study, window: Window) -> Window:
    """Where the target itself is what differs between the arms, it is no reason not to compare them."""
    plan = study.plan
    return replace(window, plan=replace(window.plan, url=plan.url, mix=plan.mix, connect_to=plan.connect_to))
