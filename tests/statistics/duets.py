"""Simulated duets: two variants on a machine that disturbs both, beside rounds of the same total time.

The rate of both falls with what other programs take (bursts of 5 to 60%), with a CPU speed that steps by up to 20%
every 10 to 40 s, and with a noise of the machine. Each variant has noise of its own: white from second to second, a
third of the machine's kind, and the luck of its connections, which are renewed every 5 s.
"""

import math
from typing import NamedTuple

import numpy as np

from cockpit.analysis import paired
from cockpit.analysis.blocks import BLOCK
from cockpit.analysis.intervals import Interval, sequential
from cockpit.analysis.switch.switch import ratio_scale
from tests.statistics.disturbed import bursts
from tests.statistics.noise import Floats, Noise, white
from tests.statistics.simulate import EACH, LOST

# Seconds of a duet that is not settled earlier.
CAP = 120
# Standard deviation by which the luck of its connections favours a variant in a block.
LUCK = 0.01
# Standard deviation of the set-ups of rounds.
_SET_UP = 0.01


class Duet(NamedTuple):
    """Seconds until a significant difference (infinite: never), whether the last interval covers the effect, and the
    widths of the intervals of a duet and of rounds after CAP seconds."""

    called: float
    covered: bool
    width: float
    rounds: float


def duets(noise: Noise, repetitions: int, effect: float, seed: int, cap: int = CAP) -> list[Duet]:
    """Simulate duets with this effect (a logarithm) of the second variant."""
    random = np.random.default_rng(seed)
    return [_duet(noise, random, effect, cap) for _ in range(repetitions)]


def _duet(noise: Noise, random: np.random.Generator, effect: float, cap: int) -> Duet:
    shared = np.log(1 - bursts(cap, random)) + _speed(cap, random) + noise(random, (1, cap))[0]
    sides = [
        np.exp(shared + white(random, (1, cap))[0] + noise(random, (1, cap))[0] / 3 + own) for own in (0.0, effect)
    ]
    one, two = (side.reshape(-1, BLOCK).mean(axis=1) * np.exp(random.normal(0, LUCK, cap // BLOCK)) for side in sides)
    found = [paired.effect(ratio_scale(two[:n]) - ratio_scale(one[:n])) for n in range(1, cap // BLOCK + 1)]
    called = next((BLOCK * at for at, one in enumerate(found, 1) if one.low > 0 or one.high < 0), math.inf)
    last = found[-1]
    rounds = _rounds(shared, noise, random, effect, cap)
    return Duet(called, last.low <= effect <= last.high, last.high - last.low, rounds.high - rounds.low)


def _speed(seconds: int, random: np.random.Generator) -> Floats:
    """Return log CPU speeds that step at random times."""
    speeds: list[float] = []
    while len(speeds) < seconds:
        speeds += [math.log(random.uniform(0.8, 1.2))] * int(random.integers(10, 40))
    return np.array(speeds[:seconds])


def _rounds(shared: Floats, noise: Noise, random: np.random.Generator, effect: float, cap: int) -> Interval:
    """Return the interval of rounds in the same time, without set-up times: their windows follow one another."""
    window = EACH - LOST
    values = (shared + noise(random, (1, cap))[0]).reshape(-1, 2, window).mean(axis=2)
    values = values + random.normal(0, _SET_UP, values.shape)
    first = random.integers(0, 2, len(values))
    differences = np.where(first == 0, values[:, 1] - values[:, 0], values[:, 0] - values[:, 1]) + effect
    return sequential(differences, len(differences))
