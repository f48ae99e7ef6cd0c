"""Rounds on a machine whose CPU differs in speed from one visit to the next: intervals with and without adjustment."""

import math
from typing import NamedTuple

import numpy as np

from cockpit.analysis.intervals import Interval, Speeds, anytime, sequential

# Standard deviation of the logarithm of the speed of a visit, its correlation with that of the next, and the standard
# deviation of what the probe measures of it.
SPEED, LASTING, READ = 0.1, 0.5, 0.01
# Standard deviation of everything else.
REST = 0.02


class Machine(NamedTuple):
    """`follows` is by how much the rate follows the speed: 0 not at all, 1 in proportion. `settings`: of the study."""

    name: str
    follows: float
    settings: int


MACHINES = (
    Machine("follows the speed, 2 settings", 0.6, 2),
    Machine("follows the speed, 4 settings", 0.6, 4),
    Machine("independent of the speed", 0.0, 3),
)


class StudyIntervals(NamedTuple):
    """The interval at the end of planned rounds, adjusted and not, and whether rounds without a planned end would have
    found a difference at any time."""

    adjusted: Interval
    plain: Interval
    ever: bool


def studies_of(machine: Machine, repetitions: int, rounds: int, effect: float, seed: int) -> list[StudyIntervals]:
    """Simulate studies of so many rounds in random order, each setting once per round. `effect` (a logarithm) is
    that of the second setting."""
    random = np.random.default_rng(seed)
    return [_study(random, machine, rounds, effect) for _ in range(repetitions)]


def _study(random: np.random.Generator, machine: Machine, rounds: int, effect: float) -> StudyIntervals:
    shape = rounds, machine.settings
    speeds = np.empty(rounds * machine.settings)
    shocks = random.normal(0.0, SPEED * math.sqrt(1 - LASTING**2), len(speeds))
    speeds[0] = random.normal(0.0, SPEED)
    for visit in range(1, len(speeds)):
        speeds[visit] = LASTING * speeds[visit - 1] + shocks[visit]
    order = np.argsort(random.random(shape), axis=1)
    actual = np.take_along_axis(speeds.reshape(shape), order, axis=1)
    rates = machine.follows * actual + random.normal(0.0, REST, shape)
    rates[:, 1] += effect
    measured = actual + random.normal(0.0, READ, shape)
    differences, ratios = (values[:, 1:] - values[:, :1] for values in (rates, measured))
    others = [(differences[:, at], ratios[:, at]) for at in range(1, machine.settings - 1)]
    found = Speeds(ratios[:, 0], others)
    values = differences[:, 0]
    looks = [anytime(values[:number], speeds=found.first(number)) for number in range(4, rounds + 1)]
    return StudyIntervals(
        sequential(values, rounds, speeds=found),
        sequential(values, rounds),
        any(one.low > 0 or one.high < 0 for one in looks),
    )
