"""Sessions of a study as plain events: what ran, when, how fast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cockpit.model.events import (
    AnyEvent,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
    StudyBegun,
    StudyLook,
    StudyRun,
    StudyStepEnded,
    Tick,
)
from cockpit.model.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.load import LoadPlan
from cockpit.model.state import State
from cockpit.model.study import Arm, Look, Study
from cockpit.study.plan import Step, load_of, steps

PLAN = LoadPlan(url="http://web1/hello.html", concurrency=20, requests=1000)
STUDY = Study(
    plan=PLAN,
    arms=(Arm(name="few"), Arm(name="more", url="http://web2/hello.html")),
    repeats=2,
    leave_out=1,
    runs=2,
    compare=(("few", "more"),),
    looks=(Look(name="hits", host="web1", command="x", counter=True), Look(name="atime", host="web1", command="y")),
)
SECONDS = 3.0


def session(study: Study, done: Sequence[int], rates: dict[str, float], cut: int | None = None) -> State:
    """A session that does these steps, the arms at these rates (the first run of a step at half of it).

    `cut` is the number of a step that it begins and does not end: one run of it, and half of another.
    """
    return fold_all(events(study, done, rates, cut))


def events(study: Study, done: Sequence[int], rates: dict[str, float], cut: int | None = None) -> Iterator[AnyEvent]:
    """What a session that does these steps is made of; see `session`."""
    planned = steps(study)
    yield SessionStarted(t=0, wall=1_700_000_000.0, version="0", name="small", question="Why?\nBecause.")
    yield StudyBegun(t=0, study=study, steps=len(planned), fingerprint=study.fingerprint)
    t, number = 1.0, 0
    for step in planned:
        if step.number not in done and step.number != cut:
            continue
        counted = []
        for turn in range(1, study.leave_out + study.runs + 1):
            number += 1
            rate = rates[step.arm.name] * (0.5 if turn == 1 else 1.0)
            whole = step.number != cut or turn == 1
            yield from _run(study, step, turn, number, t, rate, whole)
            t += SECONDS + 1
            if not whole:
                return
            if turn > study.leave_out:
                counted.append(number)
        yield StudyStepEnded(t=t, step=step.number, counted=tuple(counted), steady=rates[step.arm.name] < 5000)
    yield SessionEnded(t=t)


def _run(study: Study, step: Step, turn: int, number: int, t: float, rate: float, whole: bool) -> Iterator[AnyEvent]:
    yield StudyRun(t=t, run=number, step=step.number, round=step.round, arm=step.arm.name, rung=step.rung, turn=turn)
    yield StudyLook(t=t, run=number, look="hits", host="web1", after=False, text=str(number))
    yield StudyLook(t=t, run=number, look="atime", host="web1", after=False, text="\x1b[31m10:00")
    yield RunStarted(t=t, run=number, plan=load_of(study, step.arm, step.rung))
    for tenth in range(round(10 * SECONDS)):
        start = t + tenth / 10
        each = int(rate / 10)
        yield Tick(
            t=start + 0.1,
            start=start,
            run=number,
            worker=0,
            sent=each,
            completed=each,
            statuses={200: each},
            varied=each // 2,
            service=Histogram.of([round(20e9 / rate)] * each),
        )
    if not whole:
        return
    yield RunEnded(t=t + SECONDS, run=number, reason="completed")
    yield StudyLook(t=t, run=number, look="hits", host="web1", after=True, text=str(number + 5))
    yield StudyLook(t=t, run=number, look="atime", host="web1", after=True, text="10:05")
