"""The events of a study."""

from __future__ import annotations

from cockpit.model.event import Event
from cockpit.model.study import Study


class StudyBegun(Event, frozen=True, tag="study_begun"):
    """A study begins, or continues: its plan, how many `steps` that is at most, and how many were `done` before.

    `fingerprint` is that of the plan before secrets were replaced in it: sessions of one study have the same."""

    study: Study
    steps: int
    done: int = 0
    fingerprint: str = ""


class StudyRound(Event, frozen=True, tag="study_round"):
    """A round begins: its steps in order, each a variant at a load level, and the comparisons that are still `open`,
    each a first variant, another one and a load level. Numbers count from 1."""

    round: int
    steps: tuple[tuple[str, float | None], ...]
    open: tuple[tuple[str, str, float | None], ...] = ()


class StudyRun(Event, frozen=True, tag="study_run"):
    """The next run, number `run` of the session, belongs to a `step` (from 0) of the study: the `variant` in a `round`
    (from 1), at a load `level`, in a pass. `turn` counts the runs of the step in that pass from 1; 0 is a warm-up."""

    run: int
    step: int
    round: int
    variant: str
    level: float | None = None
    part: str = ""
    turn: int = 1


class StudyObservation(Event, frozen=True, tag="study_observation"):
    """What the command of an observation, by its `name`, printed before (`after`: after) a run; `detail`: why it did
    not."""

    run: int
    name: str
    host: str
    after: bool
    text: str = ""
    detail: str = ""


class StudyStepEnded(Event, frozen=True, tag="study_step_ended"):
    """A step is done: the `counted` runs of the session are its result."""

    step: int
    counted: tuple[int, ...]


class StudyStepLost(Event, frozen=True, tag="study_step_lost"):
    """A step was cut short because a host was lost (`detail`). It is repeated when the host is back."""

    step: int
    detail: str


class StudyEnded(Event, frozen=True, tag="study_ended"):
    """A study is over: every comparison is closed, or the last round is done."""


StudyEvent = StudyBegun | StudyRound | StudyRun | StudyObservation | StudyStepEnded | StudyStepLost | StudyEnded
