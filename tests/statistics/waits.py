"""One switch under load within three minutes from the start of the load: how long a baseline is worth its time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cockpit.analysis import switch
from cockpit.analysis.blocks import BLOCK
from cockpit.analysis.windows import GUARD
from tests.statistics.noise import STALLED, STALLS, Floats, Noise, Shape, autoregressive, white

# Seconds from the start of the load to the last test.
CAP = 180
# A baseline that finds only larger changes than this (a ratio) in the rest of the time is uneven.
_UNEVEN = 1.3
LONGEST = 60

# Returns the seconds of the baseline for the blocks of the time before.
Wait = Callable[[Floats], int]


def fixed(seconds: int) -> Wait:
    return lambda _: seconds


def adaptive(blocks: Floats) -> int:
    """Wait for at least 25 s, and up to LONGEST while the baseline is uneven."""
    for number in range(switch.LEAST, LONGEST // BLOCK):
        after = (CAP - 2 * GUARD) // BLOCK - number
        if switch.detectable_after(blocks[:number], number, after, scale=switch.ratio_scale) <= math.log(_UNEVEN):
            return number * BLOCK
    return LONGEST


WAITS = {"25 s": fixed(25), "40 s": fixed(40), "60 s": fixed(60), "25 to 60 s": adaptive}


def uneven(random: np.random.Generator, shape: Shape) -> Floats:
    """Return AR(1) noise of 9% from second to second."""
    return np.asarray(3 * autoregressive(0.6)(random, shape))


def stalling(random: np.random.Generator, shape: Shape) -> Floats:
    """Return that noise with stalls of 10 s in every 40 s."""
    begin = random.integers(0, 40, (shape[0], 1))
    stalled = (np.arange(shape[1]) + begin) % 40 < 10
    return uneven(random, shape) + np.where(stalled, math.log(STALLED), 0.0)


class Server(NamedTuple):
    """The noise of a server before and after the switch, and the effect (a logarithm)."""

    name: str
    before: Noise
    after: Noise
    effect: float


SERVERS = (
    Server("stalls end, and ×1.3", stalling, uneven, math.log(1.3)),
    Server("stalls end, and ×2.2", stalling, uneven, math.log(2.2)),
    Server("stalls stay, ×2", stalling, stalling, math.log(2)),
    Server("stalls stay, no effect", stalling, stalling, 0.0),
    Server("stalls of 5 s every 60 s, no effect", STALLS["5 s every 60 s"], STALLS["5 s every 60 s"], 0.0),
    Server("white noise, +10%", white, white, math.log(1.1)),
)


class Waited(NamedTuple):
    """Seconds from the start of the load until a significant difference (infinite: never), and the width of the last
    interval as a ratio."""

    called: float
    width: float


def waited(wait: Wait, server: Server, repetitions: int, seed: int) -> list[Waited]:
    """Simulate one switch after the baseline that `wait` asks for."""
    random = np.random.default_rng(seed)
    shape = repetitions, CAP - 2 * GUARD
    old, new = (np.exp(noise(random, shape)) for noise in (server.before, server.after))
    return [_waited(wait, one, two * math.exp(server.effect)) for one, two in zip(old, new, strict=True)]


def _waited(wait: Wait, old: Floats, new: Floats) -> Waited:
    baseline = wait(_blocks(old))
    found = list(switch.effect_over_time(_blocks(old[:baseline]), _blocks(new[baseline:]), scale=switch.ratio_scale))
    first = next((number for number, one in found if one.low > 0 or one.high < 0), math.inf)
    last = found[-1][1]
    return Waited(baseline + 2 * GUARD + first * BLOCK, math.exp(last.high - last.low))


def _blocks(seconds: Floats) -> Floats:
    number = len(seconds) // BLOCK
    return np.asarray(seconds[: number * BLOCK].reshape(number, BLOCK).mean(axis=1))
