"""Noise of servers and machines: logarithms of a rate per second around 0, as (repetitions, seconds) arrays.

Each function takes a numpy generator and that shape. The magnitude is that of real servers: a standard deviation of
about 3% from second to second, plus the specific noise.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Shape = tuple[int, int]
Noise = Callable[[np.random.Generator, Shape], Floats]

DEVIATION = 0.03
# Share of the rate that is left during a stall.
STALLED = 0.02


def white(random: np.random.Generator, shape: Shape) -> Floats:
    """Return independent seconds."""
    return random.normal(0.0, DEVIATION, shape)


def autoregressive(phi: float) -> Noise:
    """Return AR(1) noise with the coefficient `phi`, from its stationary distribution."""

    def draw(random: np.random.Generator, shape: Shape) -> Floats:
        shocks = random.normal(0.0, DEVIATION, shape)
        shocks[:, 1:] *= np.sqrt(1 - phi**2)
        values = np.empty(shape)
        values[:, 0] = shocks[:, 0]
        for second in range(1, shape[1]):
            values[:, second] = phi * values[:, second - 1] + shocks[:, second]
        return values

    return draw


def pink(random: np.random.Generator, shape: Shape) -> Floats:
    """Return 1/f noise: the power falls with the frequency; the period is four times the length."""
    length = 4 * shape[1]
    frequencies = np.fft.rfftfreq(length)[1:]
    spectrum = random.normal(size=(shape[0], len(frequencies))) + 1j * random.normal(size=(shape[0], len(frequencies)))
    values = np.fft.irfft(np.concatenate((np.zeros((shape[0], 1)), spectrum / np.sqrt(frequencies)), axis=1), length)
    values *= DEVIATION / values.std(axis=1, keepdims=True)
    begin = random.integers(0, length - shape[1])
    return np.asarray(values[:, begin : begin + shape[1]])


def wave(random: np.random.Generator, shape: Shape) -> Floats:
    """Return a wave of 3% with a period of 60 to 240 s at any phase, on white noise."""
    period = random.uniform(60, 240, (shape[0], 1))
    phase = random.uniform(0, 2 * np.pi, (shape[0], 1))
    return white(random, shape) + 0.03 * np.sin(2 * np.pi * np.arange(shape[1]) / period + phase)


def drift(random: np.random.Generator, shape: Shape) -> Floats:
    """Return a rate that rises or falls by 2% per minute, on AR(1) noise."""
    slope = 0.02 / 60 * random.choice([-1, 1], (shape[0], 1))
    return autoregressive(0.5)(random, shape) + slope * np.arange(shape[1])


def cron(random: np.random.Generator, shape: Shape) -> Floats:
    """Return noise with a job that takes 10% of the machine for 10 s of every minute."""
    at = (np.arange(shape[1]) + random.integers(0, 60, (shape[0], 1))) % 60
    return white(random, shape) - 0.1 * (at < 10)


def collections(random: np.random.Generator, shape: Shape) -> Floats:
    """Return noise with stalls of a garbage collector: 30% of a second is lost, in 1 of 15 seconds."""
    return white(random, shape) - 0.36 * (random.random(shape) < 1 / 15)


def heavy(random: np.random.Generator, shape: Shape) -> Floats:
    """Return noise with heavy tails: Student's t with 3 degrees of freedom."""
    return DEVIATION / np.sqrt(3) * random.standard_t(3, shape)


def uneven(random: np.random.Generator, shape: Shape) -> Floats:
    """Return noise whose standard deviation changes every 30 s by a factor of 0.5 to 2."""
    blocks = -(-shape[1] // 30) + 1
    scale = np.repeat(np.exp(random.uniform(np.log(0.5), np.log(2), (shape[0], blocks))), 30, axis=1)
    return white(random, shape) * scale[:, : shape[1]]


def stolen(random: np.random.Generator, shape: Shape) -> Floats:
    """Return noise with a neighbour that takes up to 15% of the CPU in bursts of about 8 s, one per minute."""
    values = white(random, shape)
    for row in values:
        second = int(random.exponential(60))
        while second < shape[1]:
            length = 1 + int(random.exponential(8))
            row[second : second + length] -= random.uniform(0.03, 0.15)
            second += length + int(random.exponential(60))
    return values


def stalls(every: float, length: int) -> Noise:
    """Return noise with stalls of a server, of `length` s, at random times, on average `every` s apart."""

    def draw(random: np.random.Generator, shape: Shape) -> Floats:
        values = autoregressive(0.6)(random, shape)
        for row in values:
            second = int(random.integers(-length, 1)) if random.random() < length / (every + length) else 0
            second += int(random.exponential(every)) if second == 0 else 0
            while second < shape[1]:
                row[max(0, second) : max(0, second + length)] += np.log(STALLED)
                second += length + int(random.exponential(every))
        return values

    return draw


NOISES: Mapping[str, Noise] = MappingProxyType(
    {
        "white": white,
        "AR(1) 0.3": autoregressive(0.3),
        "AR(1) 0.6": autoregressive(0.6),
        "AR(1) 0.9": autoregressive(0.9),
        "AR(1) 0.95": autoregressive(0.95),
        "1/f": pink,
        "slow wave": wave,
        "drift 2%/min": drift,
        "cron": cron,
        "GC stalls": collections,
        "heavy tails": heavy,
        "heteroscedastic": uneven,
        "CPU steal": stolen,
    }
)

# Stalls of the server itself, which no verdict on one switch may take for an effect.
STALLS: Mapping[str, Noise] = MappingProxyType(
    {f"{length} s every {every} s": stalls(every, length) for every, length in ((30, 2), (30, 10), (60, 5), (100, 10))}
)
