"""Sessions of a study as events: rounds, runs and their rates."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

from msgspec.structs import replace

from cockpit.model.capacity import CapacityOutcome
from cockpit.model.events import AnyEvent, RunEnded, RunStarted, SessionEnded, SessionStarted
from cockpit.model.fold.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.model.study import (
    Observation,
    Study,
    StudyBegun,
    StudyEnded,
    StudyObservation,
    StudyRound,
    StudyRun,
    StudyStepEnded,
    Variant,
    variant_plan,
)
from cockpit.model.tick import Tick
from cockpit.study.collecting import collect
from cockpit.study.judging import next_round
from cockpit.study.plan import StudyStep, all_steps, is_counted, planned_comparisons, round_of, steps_of
from cockpit.study.results import StudyResult
from tests import capacities

PLAN = LoadPlan(url="http://web1/hello.html", concurrency=20, requests=1000)
STUDY = Study(
    plan=PLAN,
    variants=(Variant(name="few"), Variant(name="more", url="http://web2/hello.html")),
    rounds=2,
    discard=1,
    runs=2,
    compare=(("few", "more"),),
    observations=(
        Observation(name="hits", host="web1", command="x", counter=True),
        Observation(name="atime", host="web1", command="y"),
    ),
)
SECONDS = 3.0
_TICKS = 2  # per second


# In a step that is "busy", the generator is saturated; in one that is "failing", a tenth of the requests fail.
Condition = Literal["", "busy", "failing"]
Rates = Mapping[str, float] | Callable[[StudyStep], float]


def session(
    study: Study, rounds: Iterable[int], rates: Rates, cut: int | None = None, done: Collection[int] = ()
) -> State:
    """Return the state of a session with these rounds; see `events`."""
    return fold_all(events(study, rounds, rates, cut, done))


def usual(_: StudyStep) -> Condition:
    return ""


def whole_study(study: Study, rates: Rates, condition: Callable[[StudyStep], Condition] = usual) -> StudyResult:
    """Return the result of a complete study, in which each round depends on the previous rounds."""
    state = fold_all(_begin(study))
    t, number = 1.0, 0
    while (turn := next_round(study, collect([state], "small"))) is not None:
        found = list(_round(study, turn, rates, t, number, condition=condition))
        t = found[-1].t + 1
        number += sum(isinstance(event, RunStarted) for event in found)
        state = fold_all(found, state)
    result = collect([fold_all([StudyEnded(t=t), SessionEnded(t=t)], state)], "small")
    assert result is not None
    return result


def events(
    study: Study, rounds: Iterable[int], rates: Rates, cut: int | None = None, done: Collection[int] = ()
) -> Iterator[AnyEvent]:
    """Yield the events of a session with these rounds at these rates (discarded runs at half the rate).

    Steps in `done` were completed before and are skipped. The study ends with its last round.
    `cut` is the number of a step that is interrupted after one run, in the middle of the next.
    """
    yield from _begin(study)
    t, number = 1.0, 0
    for turn in rounds:
        for event in _round(study, round_of(study, turn, planned_comparisons(study)), rates, t, number, cut, done):
            number += isinstance(event, RunStarted)
            t = max(t, event.t)
            yield event
        if cut is not None:
            return
        t += 1
        if turn == study.rounds:
            yield StudyEnded(t=t)
    yield SessionEnded(t=t)


def _begin(study: Study) -> Iterator[AnyEvent]:
    yield SessionStarted(t=0, wall=1_700_000_000.0, version="0", name="small", question="Why?\nBecause.")
    yield StudyBegun(t=0, study=study, steps=len(all_steps(study)), fingerprint=study.fingerprint)


def _round(
    study: Study,
    turn: StudyRound,
    rates: Rates,
    t: float,
    number: int,
    cut: int | None = None,
    done: Collection[int] = (),
    condition: Callable[[StudyStep], Condition] = usual,
) -> Iterator[AnyEvent]:
    yield replace(turn, t=t)
    for step in (step for step in steps_of(study, turn) if step.number not in done):
        counted = []
        for run in range(1, study.discard + study.runs + 1):
            number += 1
            mean = rates(step) if callable(rates) else rates[step.variant.name]
            complete = step.number != cut or run == 1
            rate = mean * (1.0 if is_counted(study, step, run) else 0.5)
            yield from _run(study, step, run, number, t, rate, complete, condition(step))
            t += (capacities.SECONDS if study.until else SECONDS) + 1
            if not complete:
                return
            if is_counted(study, step, run) and not (study.until and condition(step) == "busy"):
                counted.append(number)
        yield StudyStepEnded(t=t, step=step.number, counted=tuple(counted))


def _run(
    study: Study, step: StudyStep, turn: int, number: int, t: float, rate: float, complete: bool, condition: Condition
) -> Iterator[AnyEvent]:
    place: dict[str, Any] = {"step": step.number, "round": step.round, "level": step.level}
    yield StudyRun(t=t, run=number, turn=turn, variant=step.variant.name, **place)
    yield StudyObservation(t=t, run=number, name="hits", host="web1", after=False, text=str(number))
    yield StudyObservation(t=t, run=number, name="atime", host="web1", after=False, text="\x1b[31m10:00")
    plan = variant_plan(study, step.variant, step.level)
    if study.until:
        outcome: CapacityOutcome = "generator" if condition == "busy" else "found"
        yield from capacities.search_events(t, number, plan, rate, outcome)
        return
    yield RunStarted(t=t, run=number, plan=plan)
    for number_of_tick in range(round(_TICKS * SECONDS)):
        start = t + number_of_tick / _TICKS
        responses = int(rate / _TICKS)
        yield Tick(
            t=start + 1 / _TICKS,
            start=start,
            run=number,
            worker=0,
            sent=responses,
            completed=responses,
            statuses={200: responses},
            errors={"timeout": responses // 10} if condition == "failing" else {},
            length_mismatches=responses // 2,
            cpu=1 / _TICKS if condition == "busy" else 0.0,
            service=Histogram.of([round(20e9 / rate)] * responses),
        )
    if not complete:
        return
    yield RunEnded(t=t + SECONDS, run=number, reason="completed")
    yield StudyObservation(t=t, run=number, name="hits", host="web1", after=True, text=str(number + 5))
    yield StudyObservation(t=t, run=number, name="atime", host="web1", after=True, text="10:05")
