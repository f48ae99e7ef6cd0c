"""Simulated users of a web server: their rate waves and bursts, their mix drifts, and rounds switch a setting.

Five routes have service times of 2 to 300 ms. The rate waves by a third over some minutes, and nearly doubles in bursts
of 5 to 20 s; the mix follows a random walk. Latencies rise with the rate, as in a queue, and with the noise of the
machine. Everything continues through set-ups. Two balanced servers have noise of their own, differ in speed, and their
shares of the requests drift.
"""

import math
from typing import NamedTuple

import numpy as np

from cockpit.analysis.intervals import FIRST_TEST
from cockpit.analysis.replicates import ReplicatePairs
from cockpit.analysis.rounds import ENDS, WASHOUT, WINDOW, balanced, is_concluded, judge_switchback, sequence
from cockpit.analysis.verdicts.outcome import Outcome
from cockpit.analysis.windows import Window
from cockpit.model.counts import Group
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import AccessLog, LoadPlan
from cockpit.model.load.seconds import LoadSecond
from tests.statistics.noise import Floats, autoregressive

PLAN = LoadPlan(url="http://a/", traffic=(AccessLog(host="web1", file="/log"),))
# Seconds of a window with its set-up; rounds in 10 minutes.
EACH = round(WASHOUT) + 5 + round(ENDS) + round(WINDOW)
ROUNDS = 600 // (2 * EACH)
# Median service times (ms), shares, and the deviation of their logarithms.
_ROUTES = {"/": (2, 0.4), "/list": (8, 0.3), "/item": (30, 0.15), "/search": (90, 0.1), "/pay": (300, 0.05)}
_DEVIATION = 0.6
# Standard deviations: of a set-up, of the machine's noise per second, and of the mix's random walk (per square root of
# a second).
_SET_UP, _NOISE, _WALK = 0.005, 0.03, 0.02
# The standard deviation of the slow changes of the balance between two servers (log scale).
_BALANCE = 0.03


class Switchback(NamedTuple):
    """The outcome of rounds with its round, and whether the last interval of the headline has the true effect."""

    outcome: Outcome
    rounds: int
    covered: bool


def switchbacks(
    repetitions: int, effect: float, rate: float, seed: int, rounds: int = ROUNDS, first: int = FIRST_TEST
) -> list[Switchback]:
    """Simulate rounds whose new setting multiplies service times by exp(`effect`), with a test after each round from
    the `first` on; `rate` is in requests/s."""
    random = np.random.default_rng(seed)
    return [_switchback(random, effect, rate, rounds, first) for _ in range(repetitions)]


def siblings(
    repetitions: int,
    effect: float,
    rate: float,
    seed: int,
    gap: float = 0.0,
    rounds: int = ROUNDS,
    first: int = FIRST_TEST,
) -> list[Switchback]:
    """Simulate rounds on two servers as `switchbacks` on one; the service times of the second are exp(`gap`) times as
    long, and it gets a third of the requests."""
    random = np.random.default_rng(seed)
    return [_siblings(random, effect, rate, gap, rounds, first) for _ in range(repetitions)]


def _siblings(
    random: np.random.Generator, effect: float, rate: float, gap: float, rounds: int, first_test: int
) -> Switchback:
    seconds = 2 * rounds * EACH
    rates = rate * _waves(random, seconds)
    mixes = _mix(random, seconds)
    second = 1 / (2 + np.exp(_BALANCE * autoregressive(0.99)(random, (1, seconds))[0]))
    shares = 1 - second, second
    queued = np.log(rates / rate) * 0.3
    slower = [queued + own * _NOISE + at * gap for at, own in enumerate(autoregressive(0.9)(random, (2, seconds)))]
    pairs: list[tuple[list[Window], list[Window]]] = []
    for number, side in enumerate(sequence(balanced(rounds, int(random.integers(1 << 30))))):
        if number % 2 == 0:
            pairs.append(([], []))
        begin = number * EACH + EACH - round(WINDOW)
        part = slice(begin, begin + round(WINDOW))
        for server in (0, 1):
            new = (server == 0) == (side == "after")
            level = random.normal(0, _SET_UP) + (effect if new else 0.0)
            requests = rates[part] * shares[server][part]
            pairs[-1][new].append(_window(random, begin, requests, mixes[part], slower[server][part] + level))
    return _judged(pairs, effect, rounds, first_test)


def _judged(pairs: ReplicatePairs, effect: float, rounds: int, first_test: int) -> Switchback:
    for number in range(first_test, rounds + 1):
        verdict = judge_switchback(pairs[:number], "", rounds)
        if verdict is not None and is_concluded(verdict):
            break
    assert verdict is not None and verdict.headline is not None
    low, high = verdict.headline.low, verdict.headline.high
    covered = low is None or high is None or low <= math.expm1(effect) <= high
    return Switchback(verdict.outcome, number, covered)


def _switchback(random: np.random.Generator, effect: float, rate: float, rounds: int, first_test: int) -> Switchback:
    seconds = 2 * rounds * EACH
    rates = rate * _waves(random, seconds)
    shares = _mix(random, seconds)
    slower = np.log(rates / rate) * 0.3 + autoregressive(0.9)(random, (1, seconds))[0] * _NOISE
    windows: dict[str, list[list[Window]]] = {"before": [], "after": []}
    for number, side in enumerate(sequence(balanced(rounds, int(random.integers(1 << 30))))):
        level = random.normal(0, _SET_UP) + (effect if side == "after" else 0.0)
        first = number * EACH + EACH - round(WINDOW)
        part = slice(first, first + round(WINDOW))
        windows[side].append([_window(random, first, rates[part], shares[part], slower[part] + level)])
    return _judged(list(zip(*windows.values(), strict=True)), effect, rounds, first_test)


def _waves(random: np.random.Generator, seconds: int) -> Floats:
    times = np.arange(seconds)
    rates: Floats = 1 + 0.33 * np.sin(2 * math.pi * times / random.uniform(120, 600) + random.uniform(0, 6))
    for begin in random.integers(0, seconds, seconds // 60):
        rates[begin : begin + int(random.integers(5, 20))] *= 1.8
    return rates


def _mix(random: np.random.Generator, seconds: int) -> Floats:
    """Return the share of each route in each second."""
    steps = random.normal(0, _WALK, (seconds, len(_ROUTES))).cumsum(axis=0)
    weights = np.array([share for _, share in _ROUTES.values()]) * np.exp(steps)
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return shares


def _window(random: np.random.Generator, start: int, rates: Floats, shares: Floats, slower: Floats) -> Window:
    counts = random.poisson(rates[:, None] * shares)
    # Latencies of single seconds are not judged.
    seconds = tuple(
        LoadSecond(second=start + at, start=start + at, end=start + at + 1, completed=int(completed))
        for at, completed in enumerate(counts.sum(axis=1))
    )
    groups = {
        f"GET {route}": _group(median * 1e6 * np.exp(random.normal(np.repeat(slower, numbers), _DEVIATION)))
        for (route, (median, _)), numbers in zip(_ROUTES.items(), counts.T, strict=True)
    }
    return Window(start=start, end=start + len(rates), plan=PLAN, seconds=seconds, groups=groups)


def _group(times: Floats) -> Group:
    return Group(completed=len(times), statuses={200: len(times)}, service=Histogram.of(times.astype(np.int64)))
