"""Surfaces of which the best point is known: what settings would do to a server, with noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import numpy as np

from cockpit.autopilot.knobs import space_of
from cockpit.autopilot.search import Search, Trial
from cockpit.autopilot.space import Point, Space
from cockpit.model.autopilot import SearchedKnob

VALUES = 8
# Points at random whose quarter with the largest limited metric is cut off.
_SAMPLE = 4000


class Surface(NamedTuple):
    """The logarithms of a rate and of a limited metric by point; `limit` leaves three quarters of the points."""

    space: Space
    rate: Callable[[Point], float]
    limited: Callable[[Point], float]
    limit: float

    def measured(self, point: Point, noise: float, draw: Random) -> Trial:
        margin = self.limit - self.limited(point) + draw.gauss(0.0, noise)
        return Trial(point, self.rate(point) + draw.gauss(0.0, noise), (margin,))

    def best(self, draw: Random) -> float:
        """The largest rate that is allowed: of all points, or of a climb from many."""
        if self.space.size <= 5000:
            return max(self.rate(point) for point in self.space.all() if self.limited(point) <= self.limit)
        return max(self._climbed(self.space.random(draw)) for _ in range(60))

    def _climbed(self, point: Point) -> float:
        def height(at: Point) -> float:
            return self.rate(at) if self.limited(at) <= self.limit else -math.inf

        while True:
            found = max(self.space.neighbours(point), key=height)
            if height(found) <= height(point):
                return height(point)
            point = found


def surface(knobs: int, seed: int) -> Surface:
    """A saturating gain per knob with an optimum of its own, some of them coupled, and a cost that grows with each."""
    draw = Random(seed)
    values = tuple(map(str, range(1, VALUES + 1)))
    space = space_of([SearchedKnob(f"knob{at}", values, VALUES) for at in range(knobs)])
    tops = [draw.uniform(0.1, 0.9) for _ in range(knobs)]
    gains = [draw.uniform(0.1, 1.0) for _ in range(knobs)]
    coupled = [(draw.randrange(knobs), draw.randrange(knobs), draw.uniform(-0.4, 0.4)) for _ in range(knobs // 2)]
    costs = [draw.uniform(0.0, 0.6) for _ in range(knobs)]

    def rate(point: Point) -> float:
        places = [at / (VALUES - 1) for at in point]
        own = -sum(gain * (place - top) ** 2 for gain, place, top in zip(gains, places, tops, strict=True))
        return 7.0 + own + sum(size * (places[a] - tops[a]) * (places[b] - tops[b]) for a, b, size in coupled)

    def limited(point: Point) -> float:
        return sum(cost * at / (VALUES - 1) for cost, at in zip(costs, point, strict=True))

    limit = float(np.quantile([limited(space.random(draw)) for _ in range(_SAMPLE)], 0.75))
    return Surface(space, rate, limited, limit)


def searched(found: Surface, evaluations: int, noise: float, seed: int) -> float | None:
    """The true logarithm of the rate of the chosen point, as far as it is below the best; None: it is not allowed."""
    draw = Random(seed)
    search = Search(found.space, found.space.random(draw), 1, seed)
    while len(search.trials) < evaluations and (point := search.ask()) is not None:
        search.tell(found.measured(point, noise, draw))
    best = search.best()
    if not best or found.limited(best[0]) > found.limit:
        return None
    return found.best(draw) - found.rate(best[0])
