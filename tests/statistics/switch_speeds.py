"""One switch under load on a machine whose CPU changes its speed: with and without adjustment."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from cockpit.analysis.blocks import BLOCK
from cockpit.analysis.switch import speed as switch_speed
from cockpit.analysis.switch import switch
from tests.statistics.noise import DEVIATION, Floats, Noise, Shape, autoregressive

# Standard deviations: of the logarithm of the speed, and of the error of the probe's loop in one second.
SPEED, READ = 0.08, 0.02
# Seconds of the baseline.
BEFORE = 60
# By how much the rate follows the speed.
FOLLOWS = (0.0, 0.6, 1.0)


def constant(_: np.random.Generator, shape: Shape) -> Floats:
    return np.zeros(shape)


def wandering(seconds: float) -> Noise:
    """Return a speed that whose autocorrelation falls to 1/e within `seconds`."""

    def draw(random: np.random.Generator, shape: Shape) -> Floats:
        return autoregressive(math.exp(-1 / seconds))(random, shape) * SPEED / DEVIATION

    return draw


def jumping(random: np.random.Generator, shape: Shape) -> Floats:
    """Return another speed for each 10 s, at any phase."""
    levels = random.normal(0.0, SPEED, (shape[0], shape[1] // 10 + 2))
    begin = random.integers(0, 10, (shape[0], 1))
    return np.take_along_axis(levels, (np.arange(shape[1]) + begin) // 10, axis=1)


def neighbour(random: np.random.Generator, shape: Shape) -> Floats:
    """Return a speed that is 15% lower while a neighbour works: 10 to 60 s, with as long pauses."""
    values = np.zeros(shape)
    for row in values:
        second = int(random.integers(-30, 30))
        while second < shape[1]:
            length = int(random.integers(10, 61))
            row[max(0, second) : max(0, second + length)] = -0.15
            second += length + int(random.integers(10, 61))
    return values


def waves(random: np.random.Generator, shape: Shape) -> Floats:
    """Return a speed that rises and falls by 8% with a period of 60 to 240 s."""
    period = random.uniform(60, 240, (shape[0], 1))
    phase = random.uniform(0, 2 * np.pi, (shape[0], 1))
    return np.asarray(SPEED * np.sin(2 * np.pi * np.arange(shape[1]) / period + phase))


def stepping(random: np.random.Generator, shape: Shape) -> Floats:
    """Return a speed that rises or falls by 10% once, within 10 s of the switch."""
    at = BEFORE + random.integers(-10, 11, (shape[0], 1))
    return np.asarray(0.1 * random.choice([-1, 1], (shape[0], 1)) * (np.arange(shape[1]) >= at))


SPEEDS: Mapping[str, Noise] = MappingProxyType(
    {
        "constant": constant,
        "wanders within 3 s": wandering(3),
        "wanders within 10 s": wandering(10),
        "wanders within 60 s": wandering(60),
        "another each 10 s": jumping,
        "a neighbour for 10 to 60 s": neighbour,
        "waves of 60 to 240 s": waves,
        "step of 10% at the switch": stepping,
    }
)


class Switched(NamedTuple):
    """Seconds until a significant difference, adjusted and not (infinite: never), and whether the last adjusted
    interval covers the true effect."""

    adjusted: float
    plain: float
    covered: bool


def switched(
    speed: Noise, noise: Noise, follows: float, repetitions: int, after: int, effect: float, seed: int
) -> list[Switched]:
    """Simulate one switch; `effect` is a logarithm, `after` in seconds."""
    random = np.random.default_rng(seed)
    shape = repetitions, BEFORE + after
    actual = speed(random, shape)
    rates = np.exp(noise(random, shape) + follows * actual)
    rates[:, BEFORE:] *= math.exp(effect)
    read = actual + random.normal(0.0, READ, shape)
    blocks = rates.reshape(repetitions, -1, BLOCK).mean(axis=2)
    return [_switched(row, known, effect) for row, known in zip(blocks, read, strict=True)]


def _switched(row: Floats, read: Floats, effect: float) -> Switched:
    number = BEFORE // BLOCK
    sides = row[:number], row[number:]
    speeds = np.log(np.exp(read).reshape(-1, BLOCK).mean(axis=1))
    error = switch_speed.reading_error((read[:BEFORE], read[BEFORE:]), BLOCK)
    blocks = switch_speed.with_speeds(*sides, (speeds[:number], speeds[number:]), error, 1)
    found = list(switch_speed.effect_over_time(blocks, scale=switch.ratio_scale))
    plain = switch.effect_over_time(*sides, scale=switch.ratio_scale)
    first, other = (
        next((float(blocks * BLOCK) for blocks, one in tests if one.low > 0 or one.high < 0), math.inf)
        for tests in (found, plain)
    )
    last = found[-1][1]
    return Switched(first, other, last.low <= effect <= last.high)
