"""Search space: a few values per knob, and the distances between them. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import NamedTuple

import numpy as np

from cockpit.analysis.intervals import Floats

# Index of the value of each knob.
SearchPoint = tuple[int, ...]

# Maximum values of a knob with a range.
LEVELS = 8
# Squared distance of two unordered values.
_UNORDERED = 1.0


class Dimension(NamedTuple):
    """A knob and its values. `positions`: positions of the values from the smallest (0) to the largest (1); None for an
    unordered value: a choice, or a special value such as 0 for unlimited."""

    knob: str
    values: tuple[str, ...]
    positions: tuple[float | None, ...]

    def distances(self) -> Floats:
        """Return the squared distances between all values, (values, values)."""
        distances = np.full((len(self.values), len(self.values)), _UNORDERED)
        for at, here in enumerate(self.positions):
            distances[at, at] = 0.0
            for to, there in enumerate(self.positions):
                if here is not None and there is not None:
                    distances[at, to] = (here - there) ** 2
        return distances


class Space:
    """All combinations of the values of some knobs."""

    def __init__(self, dimensions: Sequence[Dimension]) -> None:
        self.dimensions = tuple(dimensions)

    @property
    def size(self) -> int:
        return math.prod(len(dimension.values) for dimension in self.dimensions)

    @cached_property
    def tables(self) -> tuple[Floats, ...]:
        return tuple(dimension.distances() for dimension in self.dimensions)

    def values(self, point: SearchPoint) -> dict[str, str]:
        """Return the value of each knob."""
        return {dimension.knob: dimension.values[at] for dimension, at in zip(self.dimensions, point, strict=True)}

    def point(self, values: Mapping[str, str | None]) -> SearchPoint:
        """Return the point of these values. Raises ValueError for a value that its knob does not have."""
        return tuple(dimension.values.index(values[dimension.knob] or "") for dimension in self.dimensions)

    def random(self, draw: Random) -> SearchPoint:
        return tuple(draw.randrange(len(dimension.values)) for dimension in self.dimensions)

    def all(self) -> Iterator[SearchPoint]:
        """Yield every point; see `size`."""
        shape = [len(dimension.values) for dimension in self.dimensions]
        return (tuple(map(int, np.unravel_index(at, shape))) for at in range(self.size))

    def neighbours(self, point: SearchPoint) -> Iterator[SearchPoint]:
        """Yield the points that differ in one knob: one step in an ordered knob, any value in an unordered one."""
        for at, dimension in enumerate(self.dimensions):
            here = dimension.positions[point[at]]
            for place, there in enumerate(dimension.positions):
                ordered = here is not None and there is not None
                if place != point[at] and (not ordered or abs(place - point[at]) == 1):
                    yield (*point[:at], place, *point[at + 1 :])

    def latin_hypercube(self, number: int, draw: Random) -> list[SearchPoint]:
        """Return points that cover the space: each value of each knob about equally often (a Latin hypercube)."""
        columns = []
        for dimension in self.dimensions:
            column = [at * len(dimension.values) // number for at in range(number)]
            if len(dimension.values) > number:
                column = [
                    (at * len(dimension.values) + draw.randrange(len(dimension.values))) // number
                    for at in range(number)
                ]
            draw.shuffle(column)
            columns.append(column)
        return list(dict.fromkeys(zip(*columns, strict=True)))


def levels(low: float, high: float, most: int = LEVELS) -> tuple[float, ...]:
    """Return at most `most` numbers from `low` to `high` inclusive, spaced logarithmically (from 0: 0, then from 1 on).
    They are integers if both ends are."""
    whole = low == round(low) and high == round(high)
    if high - low < most and whole:
        return tuple(float(value) for value in range(round(low), round(high) + 1))
    if low > 0:
        numbers = np.geomspace(low, high, most)
    else:
        above = np.geomspace(max(1.0, low + 1), high, most - 1) if high > 1 else np.array([high])
        numbers = np.concatenate([[low], above])
    inner = (float(round(value)) if whole else float(f"{value:.3g}") for value in numbers)
    return tuple(sorted({float(low), float(high), *(value for value in inner if low < value < high)}))
