"""Weighted sums by name, for means over a time range. Pure.

Metrics with a common weight that always occur together are a group. Each sample of a host adds to hundreds of sums, so
these are stored per group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from operator import add
from typing import Any, NamedTuple

Names = tuple[str, ...]


class Weighted(NamedTuple):
    """The sum of weighted values, and the sum of the weights (seconds, clock ticks or requests)."""

    amount: float
    weight: float


class MeanGroup(NamedTuple):
    """The values of a group of metrics over an interval, and their common weight."""

    names: Names
    values: tuple[float, ...]
    weight: float


class _Group(NamedTuple):
    amounts: tuple[float, ...]
    weight: float


class Sums:
    """Immutable sums. A name may be in several groups if its group changed."""

    __slots__ = ("_groups",)

    def __init__(self, groups: Mapping[Names, _Group] | None = None) -> None:
        self._groups = groups or {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sums) and self._groups == other._groups

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Sums({self.by_name()})"

    def plus(self, more: Iterable[MeanGroup]) -> Sums:
        return self._with(
            (names, _Group(tuple([v * weight for v in values]), weight)) for names, values, weight in more
        )

    def joined(self, other: Sums) -> Sums:
        return self._with(other._groups.items())

    def by_name(self) -> dict[str, Weighted]:
        total: dict[str, Weighted] = {}
        for names, (amounts, weight) in self._groups.items():
            for name, amount in zip(names, amounts, strict=True):
                known = total.get(name, _NOTHING)
                total[name] = Weighted(known.amount + amount, known.weight + weight)
        return total

    def wire(self) -> list[Any]:
        return [[names, amounts, weight] for names, (amounts, weight) in self._groups.items()]

    @classmethod
    def from_wire(cls, wire: Any) -> Sums:
        groups = {
            tuple(map(str, names)): _Group(tuple(map(float, amounts)), float(weight)) for names, amounts, weight in wire
        }
        if any(len(names) != len(group.amounts) for names, group in groups.items()):
            raise ValueError("names and amounts of a group differ in number")
        if not all(isfinite(number) for group in groups.values() for number in (*group.amounts, group.weight)):
            raise ValueError("a sum is infinite or NaN")
        return cls(groups)

    def _with(self, more: Iterable[tuple[Names, _Group]]) -> Sums:
        groups = dict(self._groups)
        for names, group in more:
            known = groups.get(names)
            if known is not None:
                group = _Group(tuple(map(add, known.amounts, group.amounts)), known.weight + group.weight)
            groups[names] = group
        return Sums(groups)


_NOTHING = Weighted(0.0, 0.0)
