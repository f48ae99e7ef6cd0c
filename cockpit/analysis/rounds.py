"""Rounds of one change: windows, sequential verdict, duration, minimum detectable effect. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from enum import Enum
from random import Random
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from cockpit.analysis.blocks import BLOCK, block_sample, window_values
from cockpit.analysis.capacity.result import search_between, search_window
from cockpit.analysis.duet import SERVER, of_server
from cockpit.analysis.effects import HEADLINE_SHARE
from cockpit.analysis.intervals import ALPHA, FIRST_TEST, Speeds, estimate, minimum_detectable
from cockpit.analysis.replicates import ReplicatePairs, log_ratios
from cockpit.analysis.strata import QUANTILES, stratified, total
from cockpit.analysis.switch.switch import long_run_variance
from cockpit.analysis.verdicts.objections import with_invalid_effects
from cockpit.analysis.verdicts.outcome import DIFFERENT, Effect, Outcome, Verdict
from cockpit.analysis.verdicts.verdict import PlannedComparisons, judge_rounds
from cockpit.analysis.warnings import WarningKind, warning_of
from cockpit.analysis.windows import GUARD, Window, segment_window, window_between
from cockpit.analysis.words.timeline import settings_words
from cockpit.model.events import RoundSide
from cockpit.model.state import RoundsState, RoundWindowState, Segment, State

# Default rounds, and counted seconds per window; minimum and maximum.
ROUNDS, WINDOW = 12, 15.0
FEWEST, MOST, SHORTEST = FIRST_TEST, 50, 15.0
# Uncounted seconds of a window: the incomplete ones at its ends, and with its guard.
ENDS = 1.0
UNCOUNTED = GUARD + ENDS
# Seconds between a set-up and its window on users' traffic: connections and caches of the other side are left behind.
# The requests of the whole window count, so GUARD is before it.
WASHOUT = 2.0 + GUARD
# Factor by which the level of rounds on traffic is divided: each test has its own mix and slope on the rate. From
# simulations (tests.statistics.switchbacks).
_TRAFFIC_COMPARISONS = 2
# Assumed seconds of a set-up if the session has no change yet.
_SET_UP = 5.0
# Assumed standard deviations (log scale): of a round's difference without any measurement, and between set-ups if only
# noise under load was measured.
_ASSUMED = 0.03
_BETWEEN_SET_UPS = 0.01


class Basis(Enum):
    """The source of the expected spread between rounds."""

    ROUNDS = "earlier rounds of this session"
    LOAD = "the noise of this load"
    ASSUMED = "an assumed spread of 3%"


class Order(Enum):
    """The order of the two sides within each round."""

    RANDOM = "random, balanced in blocks of four rounds"
    MIRRORED = "A-B-B-A"


def is_concluded(verdict: Verdict) -> bool:
    """Return whether rounds can stop: the sequential test has a conclusion, or the rounds are invalid."""
    return verdict.values[0] >= FIRST_TEST and verdict.outcome is not Outcome.INCONCLUSIVE


class RoundsPlan(NamedTuple):
    """A plan of at most `rounds` rounds: windows with `seconds` counted, sides in `order`, drawn with `seed`. Rounds
    stop as soon as the verdict is `concluded`. `until`: limits of a capacity search of at most `seconds`, which each
    window then is; "": no search. `washout`: seconds between a set-up and its window. `alone`: on one server, even if
    the users' traffic of a sibling is counted."""

    rounds: int = ROUNDS
    seconds: float = WINDOW
    order: Order = Order.RANDOM
    seed: int = 1
    concluded: Callable[[Verdict], bool] = is_concluded
    until: str = ""
    washout: float = 0.0
    alone: bool = False

    @property
    def first_sides(self) -> tuple[RoundSide, ...]:
        return mirrored(self.rounds) if self.order is Order.MIRRORED else balanced(self.rounds, self.seed)


class Announcement(NamedTuple):
    """The maximum duration of rounds (s), and their minimum detectable effect (share, power 80%)."""

    seconds: float
    detectable: float
    basis: Basis


class RoundsProgress(NamedTuple):
    """Progress of rounds: `round` of `budget`; `side` is measured or set up. `window_left` (s) is None during a set-up;
    `left` is the maximum of seconds still needed. `complete` counts rounds. `host`: see RoundsBegun.new_on."""

    round: int
    budget: int
    side: RoundSide
    window_left: float | None
    left: float
    complete: int
    host: str = ""


def rounds_verdict(state: State, rounds: RoundsState) -> Verdict | None:
    """Return the verdict on the complete rounds, without intervals before round FIRST_TEST. None: no round is complete,
    or the recording lacks their run. Rounds in which a capacity search found none do not count."""
    begun = rounds.begun
    servers = f"({begun.host} vs {begun.sibling})" if begun.sibling else ""
    label = " ".join(filter(None, (begun.change, settings_words(begun.settings), servers)))
    if begun.until:
        searched = _searched_pairs(state, rounds)
        capacity = PlannedComparisons(metrics=("capacity",))
        verdict = judge_rounds(searched, label, rounds.budget, capacity) if searched else None
    elif begun.run in state.plans:
        pairs = [_sides(state, rounds, *pair) for pair in rounds.complete]
        judge = judge_switchback if state.plans[begun.run].traffic else judge_rounds
        verdict = judge(pairs, label, rounds.budget) if pairs else None
    else:
        return None
    if verdict is None:
        return None
    if verdict.values[0] < FIRST_TEST and verdict.outcome is not Outcome.INVALID:
        # An earlier test with the option to stop would find too many false differences.
        effects = tuple(_impression(effect) for effect in verdict.effects) if rounds.ended is None else ()
        verdict = replace(verdict, outcome=Outcome.INCONCLUSIVE, effects=effects, objection=None)
    return replace(verdict, growing=rounds.ended is None and rounds.budget > len(rounds.complete))


def judge_switchback(pairs: ReplicatePairs, label: str, budget: int) -> Verdict | None:
    """Judge rounds on users' traffic, whose arrivals no setting decides; None: no round is comparable."""
    judged = stratified(pairs, budget)
    if not judged.pairs:
        return None
    hosts = sorted({host for visit in judged.pairs[0] for window in visit for host in window.hosts})
    metrics = (*QUANTILES, *(f"{host}.{name}" for host in hosts for name in ("cpu.per_request", "memory.used")))
    verdict = judge_rounds(judged.pairs, label, budget, PlannedComparisons(_TRAFFIC_COMPARISONS, metrics))
    if judged.left_out:
        counts = {"count": judged.left_out, "total": len(pairs)}
        excluded = warning_of(WarningKind.ROUNDS_EXCLUDED, "another rate or mix of requests", **counts)
        verdict = replace(verdict, warnings=(*verdict.warnings, excluded))
    return verdict if judged.objection is None else with_invalid_effects(verdict, judged.objection)


def _searched_pairs(state: State, rounds: RoundsState) -> list[tuple[list[Window], list[Window]]]:
    """Return the windows of the complete rounds with a capacity on both sides."""
    pairs = []
    for first, second in rounds.complete:
        known = [search_between(state, side.start, side.end or side.start) for side in (first, second)]
        windows = [search_window(state, search) for search in known if search is not None]
        if len(windows) == len(known) and all(window.capacity for window in windows):
            pairs.append((windows[:1], windows[1:]))
    return pairs


def _impression(effect: Effect) -> Effect:
    """Return the likely effect before the first test, without an interval."""
    if effect.outcome is Outcome.INVALID:
        return effect
    likely = effect.outcome if effect.outcome in DIFFERENT else None
    return replace(effect, outcome=Outcome.INCONCLUSIVE, low=None, high=None, detectable=None, likely=likely)


def progress(state: State, now: float) -> RoundsProgress | None:
    """Return the progress of the running rounds at session time `now`; None without any."""
    rounds = state.running_rounds
    if rounds is None or not rounds.budget:
        return None
    sides = sequence(rounds.begun.first)
    done = sum(window.end is not None for window in rounds.windows)
    at = min(done, len(sides) - 1)
    current = rounds.windows[-1] if rounds.windows and rounds.windows[-1].end is None else None
    window_left = None if current is None else max(0.0, current.until - now)
    whole = rounds.begun.seconds + UNCOUNTED
    left = (len(sides) - done - 1) * (whole + _set_up_seconds(state))
    left += _set_up_seconds(state) + whole if window_left is None else window_left
    host = rounds.begun.new_on(sides[at])
    return RoundsProgress(at // 2 + 1, rounds.budget, sides[at], window_left, left, len(rounds.complete), host)


def announcement(state: State, first: Sequence[RoundSide], seconds: float) -> Announcement:
    """Return the duration and the minimum detectable effect of rounds with windows of `seconds`, from the session so
    far."""
    sides = sequence(tuple(first))
    # A side that follows itself, or is active at the start, is left and set up again.
    repeated = 1 + sum(first == second for first, second in itertools.pairwise(sides))
    total = len(sides) * (seconds + UNCOUNTED) + (len(sides) + repeated) * _set_up_seconds(state)
    deviation, basis = _expected_deviation(state, seconds)
    on_traffic = state.segment is not None and bool(state.segment.plan.traffic)
    level = ALPHA * HEADLINE_SHARE / (_TRAFFIC_COMPARISONS if on_traffic else 1)
    detectable = minimum_detectable(deviation, max(len(first), FIRST_TEST), level)
    return Announcement(total, math.expm1(detectable), basis)


def _sides(
    state: State, rounds: RoundsState, before: RoundWindowState, after: RoundWindowState
) -> tuple[list[Window], list[Window]]:
    """Return the windows of the old and of the new values in a round. Of two servers, each has both: what differs
    between the servers cancels out, and what disturbs both at the same time."""
    first, second = _window(state, rounds, before), _window(state, rounds, after)
    begun = rounds.begun
    if not begun.sibling:
        return [first], [second]
    own, other = ([_of_log(*pair, host) for pair in ((first, before), (second, after))] for host in begun.hosts)
    return [own[0], other[1]], [other[0], own[1]]


def _of_log(window: Window, measured: RoundWindowState, host: str) -> Window:
    """Return the part of a window that the log of one host has."""
    at = next(place for place, log in enumerate(window.plan.traffic) if log.host == host)
    seconds = tuple(second.part_of_log(at) for second in window.seconds)
    unread = {SERVER: window.unread[host]} if host in window.unread else {}
    groups = measured.logs[host].groups if host in measured.logs else {}
    return replace(of_server(window, host), seconds=seconds, groups=groups, unread=unread, slices={})


def _window(state: State, rounds: RoundsState, window: RoundWindowState) -> Window:
    assert window.end is not None
    run = rounds.begun.run
    segments = [segment for segment in state.segments if segment.run == run and segment.start <= window.start][-1:]
    plan = segments[0].plan if segments else state.plans[run]
    # On users' traffic GUARD is before the window.
    start = window.start - GUARD if plan.traffic else window.start
    measured = window_between(state, start, window.end, plan)
    return replace(measured, segments=tuple(segments), groups=total(log.groups for log in window.logs.values()))


def _set_up_seconds(state: State) -> float:
    """Return the longest time (s) from request to activation among the last four changes, and on users' traffic the
    time after it."""
    took = [change.active_since - change.begun for change in state.changes if change.active_since is not None]
    washout = WASHOUT - GUARD if state.segment and state.segment.plan.traffic else 0.0
    return max(took[-4:], default=_SET_UP) + washout


def _expected_deviation(state: State, seconds: float) -> tuple[float, Basis]:
    """Return the expected standard deviation (log scale) of a round's difference in the headline, and its source."""
    if (known := _deviation_of_rounds(state)) is not None:
        return known, Basis.ROUNDS
    segment = next((segment for segment in reversed(state.segments) if not segment.warmup), None)
    if segment is not None:
        blocks = block_sample(segment_window(state, segment)).blocks.get(_headline(segment))
        if blocks is not None and len(blocks) >= FIRST_TEST and bool((blocks > 0).all()):
            variance = long_run_variance(np.log(blocks), np.array([])).value * BLOCK / seconds
            return math.sqrt(2 * (variance + _BETWEEN_SET_UPS**2)), Basis.LOAD
    return _ASSUMED, Basis.ASSUMED


def _deviation_of_rounds(state: State) -> float | None:
    for rounds in reversed(state.rounds):
        if len(rounds.complete) >= FIRST_TEST and rounds.begun.run in state.plans and not rounds.begun.sibling:
            windows = [[_window(state, rounds, side) for side in pair] for pair in rounds.complete]
            name = _headline(windows[0][0].segments[0]) if windows[0][0].segments else "rate"
            before, after = (window_values(side) for side in zip(*windows, strict=True))
            ratios = log_ratios((before, after), name)
            if len(ratios.values) >= FIRST_TEST:
                return estimate(ratios.values, Speeds(ratios.speeds)).deviation
    return None


def _headline(segment: Segment) -> str:
    return "p50" if segment.plan.traffic else "p99" if segment.plan.open else "rate"


def balanced(rounds: int, seed: int) -> tuple[RoundSide, ...]:
    """Return the first side of each round: at random, each side twice in every four rounds."""
    draw = Random(seed)
    first: list[RoundSide] = []
    while len(first) < rounds:
        four: list[RoundSide] = ["before", "before", "after", "after"]
        draw.shuffle(four)
        first += four
    return tuple(first[:rounds])


def mirrored(rounds: int) -> tuple[RoundSide, ...]:
    sides: tuple[RoundSide, RoundSide] = ("before", "after")
    return tuple(sides[number % 2] for number in range(rounds))


def other_side(side: RoundSide) -> RoundSide:
    return "after" if side == "before" else "before"


def sequence(first: tuple[RoundSide, ...]) -> tuple[RoundSide, ...]:
    return tuple(side for opening in first for side in (opening, other_side(opening)))
