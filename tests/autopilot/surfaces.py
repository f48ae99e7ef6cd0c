"""Response surfaces with a known optimum: metrics of a server as a function of its settings, with noise."""

import math
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import numpy as np

from cockpit.autopilot.knobs import space_of
from cockpit.autopilot.search import Search, Trial
from cockpit.autopilot.space import SearchPoint, Space
from cockpit.model.autopilot import SearchedKnob

VALUES = 8
# Random points; the quarter with the largest limited metric violates the limit.
_SAMPLE = 4000


class Surface(NamedTuple):
    """The logarithms of a rate and of a limited metric by point; three quarters of the points are within `limit`."""

    space: Space
    rate: Callable[[SearchPoint], float]
    limited: Callable[[SearchPoint], float]
    limit: float

    def measured(self, point: SearchPoint, noise: float, draw: Random) -> Trial:
        margin = self.limit - self.limited(point) + draw.gauss(0.0, noise)
        return Trial(point, self.rate(point) + draw.gauss(0.0, noise), (margin,))

    def best(self, draw: Random) -> float:
        """Return the largest feasible rate: of all points, or by hill climbing from random points."""
        if self.space.size <= 5000:
            return max(self.rate(point) for point in self.space.all() if self.limited(point) <= self.limit)
        return max(self._climbed(self.space.random(draw)) for _ in range(60))

    def _climbed(self, point: SearchPoint) -> float:
        def height(at: SearchPoint) -> float:
            return self.rate(at) if self.limited(at) <= self.limit else -math.inf

        while True:
            found = max(self.space.neighbours(point), key=height)
            if height(found) <= height(point):
                return height(point)
            point = found


def surface(knobs: int, seed: int) -> Surface:
    """Make a surface: each knob has a gain with an optimum and a cost that grows with its value; some are coupled."""
    draw = Random(seed)
    values = tuple(map(str, range(1, VALUES + 1)))
    space = space_of([SearchedKnob(f"knob{at}", values, VALUES) for at in range(knobs)])
    optima = [draw.uniform(0.1, 0.9) for _ in range(knobs)]
    gains = [draw.uniform(0.1, 1.0) for _ in range(knobs)]
    coupled = [(draw.randrange(knobs), draw.randrange(knobs), draw.uniform(-0.4, 0.4)) for _ in range(knobs // 2)]
    costs = [draw.uniform(0.0, 0.6) for _ in range(knobs)]

    def rate(point: SearchPoint) -> float:
        places = [at / (VALUES - 1) for at in point]
        own = -sum(gain * (place - optimum) ** 2 for gain, place, optimum in zip(gains, places, optima, strict=True))
        return 7.0 + own + sum(size * (places[a] - optima[a]) * (places[b] - optima[b]) for a, b, size in coupled)

    def limited(point: SearchPoint) -> float:
        return sum(cost * at / (VALUES - 1) for cost, at in zip(costs, point, strict=True))

    limit = float(np.quantile([limited(space.random(draw)) for _ in range(_SAMPLE)], 0.75))
    return Surface(space, rate, limited, limit)


def regret(found: Surface, evaluations: int, noise: float, seed: int) -> float | None:
    """Return how far the chosen point's true log rate is below the best; None if the point violates the limit."""
    draw = Random(seed)
    search = Search(found.space, found.space.random(draw), 1, seed)
    while len(search.trials) < evaluations and (point := search.ask()) is not None:
        search.tell(found.measured(point, noise, draw))
    best = search.best()
    if not best or found.limited(best[0]) > found.limit:
        return None
    return found.best(draw) - found.rate(best[0])
