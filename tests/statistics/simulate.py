"""Experiments on simulated noise: sequential tests of one switch, rounds of a study, checks against a baseline."""

import math
from typing import NamedTuple

import numpy as np

from cockpit.analysis.baseline import ratio_of
from cockpit.analysis.blocks import BLOCK
from cockpit.analysis.intervals import Interval, sequential
from cockpit.analysis.switch import switch
from tests.statistics.noise import STALLED, Floats, Noise, autoregressive

# Seconds of a window, and of its set-up and warm-up.
WINDOW, LOST = 10, 8
EACH = WINDOW + LOST
# Share of the baseline that a check requires.
LIMIT = 0.95


class Watched(NamedTuple):
    """Seconds until a significant difference (infinite: never); whether the last interval covers the true effect."""

    called: float
    covered: bool


def watched(noise: Noise, repetitions: int, before: int, after: int, effect: float, seed: int) -> list[Watched]:
    """Simulate one switch with a test of the rate every BLOCK seconds; return the result of each repetition.

    `before` and `after` are in seconds, `effect` is a logarithm.
    """
    values = noise(np.random.default_rng(seed), (repetitions, before + after))
    rows = np.exp(values).reshape(repetitions, -1, BLOCK).mean(axis=2)
    return [_watched(row[: before // BLOCK], row[before // BLOCK :] * math.exp(effect), effect) for row in rows]


def stalls_ended(repetitions: int, before: int, faster: float, seed: int) -> list[Watched]:
    """Simulate a server that stalls for 10 s in every 40 s; after the switch it does not, and is `faster` otherwise.

    The noise from second to second is 9%.
    """
    random = np.random.default_rng(seed)
    values = np.exp(3 * autoregressive(0.6)(random, (repetitions, before + 180)))
    begin = random.integers(0, 40, (repetitions, 1))
    values[:, :before] *= np.where((np.arange(before) + begin) % 40 < 10, STALLED, 1.0)
    values[:, before:] *= faster
    rows = values.reshape(repetitions, -1, BLOCK).mean(axis=2)
    effect = math.log(faster / (0.75 + 0.25 * STALLED))
    return [_watched(row[: before // BLOCK], row[before // BLOCK :], effect) for row in rows]


def _watched(before: Floats, after: Floats, effect: float) -> Watched:
    found = list(switch.effect_over_time(before, after, scale=switch.ratio_scale))
    calls = [number for number, interval in found if interval.low > 0 or interval.high < 0]
    _, last = found[-1]
    return Watched(float(calls[0] * BLOCK) if calls else math.inf, last.low <= effect <= last.high)


def studied(
    noise: Noise, repetitions: int, rounds: int, effect: float, restart: float, seed: int
) -> list[list[Interval]]:
    """Return the intervals after each round from the 4th, per repetition.

    A round has both settings in random order, each with a set-up: the restart shifts the level, with a standard
    deviation of `restart`. Noise continues through set-ups.
    """
    random = np.random.default_rng(seed)
    values = noise(random, (repetitions, 2 * rounds * EACH)).reshape(repetitions, 2 * rounds, EACH)[:, :, LOST:]
    levels = values.mean(axis=2) + random.normal(0, restart, (repetitions, 2 * rounds))
    first = random.integers(0, 2, (repetitions, rounds))
    pairs = levels.reshape(repetitions, rounds, 2)
    differences = np.where(first == 0, pairs[:, :, 1] - pairs[:, :, 0], pairs[:, :, 0] - pairs[:, :, 1]) + effect
    return [[sequential(row[:number], rounds) for number in range(4, rounds + 1)] for row in differences]


class Checked(NamedTuple):
    """Shares of simulated checks of `rate >= 95% of baseline` that pass and fail, and coverage of the interval."""

    passed: float
    failed: float
    covered: float


def compared_with_baseline(repetitions: int, spread: float, base: int, found: int, truth: float, seed: int) -> Checked:
    """Simulate checks whose runs are around `truth` × baseline, with a standard deviation of `spread`."""
    random = np.random.default_rng(seed)
    ratios = [
        ratio_of(
            "rate",
            np.exp(random.normal(0, spread, base)).tolist(),
            (truth * np.exp(random.normal(0, spread, found))).tolist(),
        )
        for _ in range(repetitions)
    ]
    ends = np.array([(ratio.low, ratio.high) for ratio in ratios if ratio is not None])
    return Checked(
        passed=float((ends[:, 0] >= LIMIT).mean()),
        failed=float((ends[:, 1] < LIMIT).mean()),
        covered=float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()),
    )
