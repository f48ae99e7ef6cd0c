"""Rounds as text: announcement, progress, end."""

from __future__ import annotations

import math

from cockpit.analysis.rounds import Announcement, RoundsPlan, RoundsProgress
from cockpit.analysis.verdicts.outcome import Outcome, Verdict
from cockpit.analysis.words.timeline import settings_words
from cockpit.analysis.words.verdicts import verdict_words
from cockpit.model.events import RoundsBegun, RoundsEnded, RoundSide
from cockpit.model.state import RoundsState, RoundWindowState
from cockpit.model.text import sanitize

_VALUES: dict[RoundSide, str] = {"before": "old", "after": "new"}


def title_words(begun: RoundsBegun) -> str:
    """Return `A MaxSpareServers 10 → 30`."""
    servers = f"on {begun.host} or {begun.sibling}, in turn" if begun.sibling else ""
    return sanitize(" ".join(filter(None, (begun.change, settings_words(begun.settings), servers))), 100)


def time_words(seconds: float) -> str:
    """Return `50 s`, `4 min`."""
    return f"{math.ceil(seconds)} s" if seconds < 100 else f"{math.ceil(seconds / 60)} min"


def detectable_effect_words(detectable: float | None) -> str:
    """Return `minimum detectable effect 4% (power 80%)`; empty if it is unknown."""
    if detectable is None:
        return ""
    return f"minimum detectable effect {100 * detectable:.{0 if detectable >= 0.0995 else 1}f}% (power 80%)"


def offer_words(plan: RoundsPlan, expected: Announcement) -> str:
    """Return the duration and the minimum detectable effect of rounds, before they start."""
    return (
        f"{plan.rounds} rounds of 2 × {plan.seconds:g} s: at most {time_words(expected.seconds)}, less if "
        f"the verdict is final earlier; {detectable_effect_words(expected.detectable)}, based on {expected.basis.value}"
    )


def sibling_words(host: str) -> str:
    """Return the offer to compare a server with its sibling."""
    return (
        f"With {sanitize(host)} at the same time: one server has the new values, the other the old ones, in turn. "
        "alone: without it"
    )


def announcement_words(begun: RoundsBegun) -> str:
    rounds = len(begun.first)
    detectable = f"; {words}" if (words := detectable_effect_words(begun.detectable)) else ""
    return f"{title_words(begun)}: at most {rounds} rounds, {time_words(begun.longest)} (seed {begun.seed}){detectable}"


def window_words(rounds: RoundsState, window: RoundWindowState) -> str:
    """Return `round 3 of 12: new values`."""
    return f"round {window.round} of {rounds.budget}: {_side_words(window.side, rounds.begun.new_on(window.side))}"


def _side_words(side: RoundSide, host: str) -> str:
    """Return `new values`; `new values on web2` if another server has the old ones at the same time."""
    return f"new values on {sanitize(host)}" if host else f"{_VALUES[side]} values"


def place_words(where: RoundsProgress) -> str:
    """Return `round 3 of 12: new values, 9 s`."""
    doing = "setting up" if where.window_left is None else f"{math.ceil(where.window_left)} s"
    return f"round {where.round} of {where.budget}: {_side_words(where.side, where.host)}, {doing}"


def progress_words(where: RoundsProgress) -> str:
    """Return `round 3 of 12: new values, 9 s; at most 4 min more`."""
    return f"{place_words(where)}; at most {time_words(where.left)} more"


def ended_words(rounds: RoundsState, ended: RoundsEnded, verdict: Verdict | None) -> str:
    """Return how rounds ended, which values are active, and why."""
    active = f"the {_VALUES[ended.active]} values are active"
    if rounds.begun.sibling:
        active += f" on {sanitize(rounds.begun.host)}{f' and {sanitize(ended.sibling)}' if ended.sibling else ''}"
    number = len(rounds.complete)
    count = f"after {number} {'round' if number == 1 else 'rounds'}"
    if ended.outcome == "failed":
        return f"rounds failed {count}: {ended.detail}; {active}"
    if ended.outcome in ("stopped", "load ended"):
        why = "stopped" if ended.outcome == "stopped" else "ended with the load"
        return f"rounds {why} {count}: {active}, as at the start"
    words = "no verdict" if verdict is None else verdict_words(verdict)
    if ended.detail:
        return f"{words}, {count}; {active}: {ended.detail}"
    return f"{words}, {count}; {active}{_reason(ended, verdict)}"


def _reason(ended: RoundsEnded, verdict: Verdict | None) -> str:
    if verdict is not None and verdict.outcome is Outcome.INVALID:
        return ", as at the start"
    if ended.active == "before" and verdict is not None and verdict.outcome is Outcome.WORSE:
        return " again: the new ones are worse"
    if ended.active == "after":
        known = verdict is not None and verdict.outcome is not Outcome.INCONCLUSIVE
        return f": {'they are not worse' if known else 'the rounds do not show that they are worse'}"
    return ", as at the start"
