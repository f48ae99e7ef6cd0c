"""Which round of a study comes next. Pure."""

from __future__ import annotations

from cockpit.analysis.intervals import FIRST_LOOK
from cockpit.model.events import StudyRound
from cockpit.model.study import Study
from cockpit.study.judging import open_after
from cockpit.study.plan import planned, round_of, steps_of
from cockpit.study.results import StudyResult


def next_round(study: Study, result: StudyResult | None) -> StudyRound | None:
    """Return the round to do: the last one if it is not whole yet, else the next; None: the study is over.

    Comparisons are tested from the fourth counted round on, so that none is closed before.
    """
    rounds = result.rounds if result else ()
    if result and rounds and any(step.number not in result.done for step in steps_of(study, rounds[-1])):
        return rounds[-1]
    number = len(rounds) + 1
    if number > study.all_rounds:
        return None
    still_open = planned(study)
    if result and study.compare and len(rounds) >= study.discard_rounds + FIRST_LOOK:
        still_open = open_after(study, result.verdicts)
        if not still_open:
            return None
    return round_of(study, number, still_open)
