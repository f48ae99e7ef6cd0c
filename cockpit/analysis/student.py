"""Student's t distribution, without scipy; tests compare it with scipy's."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def student_cdf(t: float, freedom: float) -> float:
    """Return the probability that Student's t is below `t` (0 or above), by Simpson's rule over the angle.

    With t = sqrt(freedom) * tan(angle) the density is a power of a cosine.
    """
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    angles = np.linspace(0.0, math.atan(t / math.sqrt(freedom)), 401)
    heights = np.cos(angles) ** (freedom - 1)
    area = (heights[0] + heights[-1] + 4 * heights[1::2].sum() + 2 * heights[2:-1:2].sum()) * angles[1] / 3
    return min(1.0, 0.5 + scale * float(area))


@lru_cache(maxsize=4096)
def student_quantile(probability: float, freedom: float) -> float:
    """Return the t below which Student's t is with that probability (above one half)."""
    low, high = 0.0, 1.0
    while student_cdf(high, freedom) < probability and high < 1e9:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, freedom) < probability else (low, middle)
    return (low + high) / 2
