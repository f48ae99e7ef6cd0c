"""Rounds from the screen: confirmation, start, stop, and the result in one line."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cockpit.analysis.rounds import RoundsPlan, announcement, rounds_verdict
from cockpit.analysis.words.rounds import ended_words, offer_words, sibling_words
from cockpit.analysis.words.timeline import change_label
from cockpit.model.errors import CockpitError, UsageError
from cockpit.model.state import Change, State
from cockpit.model.text import sanitize
from cockpit.session.loop import EndOfSession, Session
from cockpit.session.tuning import parse_rounds
from cockpit.tui.dialogs.prompt import PromptScreen
from cockpit.tui.key_table import MainKey
from cockpit.tui.tuning.changes import plan_words

if TYPE_CHECKING:
    from cockpit.session.live_tuning import LiveTuning
    from cockpit.tui.app import CockpitApp

STOP = "Rounds are running. Enter: stop them and restore the original values."
NOTHING = f"No change to measure. {MainKey.TUNE}: type a value, Enter, Enter; then {MainKey.ROUNDS}: rounds"


def last_change(state: State) -> Change | None:
    """Return the newest change that is active and was not undone."""
    undone = {change.undoes for change in state.changes if change.outcome == "applied"}
    candidates = (change for change in reversed(state.changes) if change.outcome == "applied" and not change.undoes)
    return next((change for change in candidates if change.letter not in undone and not change.inactive), None)


def ask(
    app: CockpitApp,
    session: Session,
    tuning: LiveTuning,
    values: Mapping[str, str],
    report: Callable[[str, bool], None],
) -> None:
    """Ask for confirmation, then measure `values`, or the last change if empty, in rounds; offer to stop running ones.

    `report(text, is_error)` shows progress and the result.
    """
    state = session.state
    if tuning.running_rounds:
        PromptScreen(STOP).ask(app, lambda _: tuning.stop_rounds())
        return
    if values:
        letter, names, title = "", list(values), plan_words(state, values)
    elif (change := last_change(state)) is not None:
        letter, names = change.letter, [setting.knob for setting in change.settings]
        title = sanitize(change_label(change), 100)
    else:
        report(NOTHING, False)
        return
    plan = RoundsPlan(seed=random.SystemRandom().randrange(1, 10_000))
    announced = announcement(state, plan.first_sides, plan.seconds)
    siblings = dict.fromkeys(knob.host for knob in tuning.siblings(names).values())
    lines = (
        f"Measure old and new values in rounds: {title}",
        f"{offer_words(plan, announced)}.",
        *map(sibling_words, siblings),
        "Enter: start; or type rounds x seconds, e.g. 8 x 20s",
    )
    question = "\n".join(lines)

    def answered(answer: str) -> None:
        try:
            chosen = parse_rounds(answer, plan.seed)
        except UsageError as error:
            report(str(error), True)
            return
        report("rounds are starting", False)
        app.run_work(_compare(session, tuning, values, letter, chosen, report))

    PromptScreen(question).ask(app, answered)


async def _compare(
    session: Session,
    tuning: LiveTuning,
    values: Mapping[str, str],
    letter: str,
    plan: RoundsPlan,
    report: Callable[[str, bool], None],
) -> None:
    known = len(session.state.rounds)
    try:
        proven = await tuning.compare_in_rounds(values, plan, letter=letter)
    except CockpitError as error:
        report(f"rounds: {error}", True)
        return
    try:
        state = await session.until(lambda state: len(state.rounds) > known and state.rounds[known].ended is not None)
    except EndOfSession:
        return
    rounds = state.rounds[known]
    if rounds.ended is not None:
        undo = f"; {MainKey.UNDO}: undo" if proven.active == "after" and not proven.why else ""
        report(f"{ended_words(rounds, rounds.ended, rounds_verdict(state, rounds))}{undo}", bool(proven.why))
