"""Rounds of a session as the JSON of its run has them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cockpit.model.events import RoundsOutcome, Side
from cockpit.model.knobs import Setting
from cockpit.model.state import RoundsState


class RoundWindowJson(msgspec.Struct, frozen=True, kw_only=True):
    """A window in session seconds, its set-up done at `start`; `end` is null if it was cut short."""

    round: int
    side: Side
    start: float
    end: float | None


class RoundsJson(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds that compare old (before) and new (after) values. `change` is the letter of the change that they measured,
    "" for values that were not active before. `budget` is the largest number of rounds, `complete` how many have both
    windows of `window_seconds`; their order was drawn with `seed`. `longest` seconds and `detectable` (share) were
    announced. `active` is the side that is active since their end; `outcome` is null while they run."""

    number: int
    host: str
    change: str
    settings: list[Setting]
    seed: int
    budget: int
    complete: int
    window_seconds: float
    longest: float
    detectable: float | None
    outcome: RoundsOutcome | None
    active: Side
    detail: str
    windows: list[RoundWindowJson]


def rounds_json(rounds: Iterable[RoundsState], run: int) -> list[RoundsJson]:
    """Return the rounds of one run."""
    return [_rounds(one) for one in rounds if one.begun.run == run]


def _rounds(rounds: RoundsState) -> RoundsJson:
    begun, ended = rounds.begun, rounds.ended
    return RoundsJson(
        number=begun.number,
        host=begun.host,
        change=begun.change,
        settings=list(begun.settings),
        seed=begun.seed,
        budget=rounds.budget,
        complete=len(rounds.complete),
        window_seconds=begun.seconds,
        longest=begun.longest,
        detectable=begun.detectable,
        outcome=ended.outcome if ended else None,
        active=ended.active if ended else begun.active,
        detail=ended.detail if ended else "",
        windows=[
            RoundWindowJson(round=one.round, side=one.side, start=one.start, end=one.end) for one in rounds.windows
        ],
    )
