"""Warnings about the cells of a study: the same warning of many cells in one line."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Up to this many cells with the same warning are named.
_MOST_NAMED = 3
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def grouped(found: Sequence[tuple[str, str]], cells: int) -> list[str]:
    """`found` holds (name of a cell, warning), `cells` is their number. Warnings that differ only in numbers
    share a line, with each number as a range; lines are in order of first occurrence."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for name, doubt in found:
        kinds.setdefault(_NUMBER.sub("#", doubt), []).append((name, doubt))
    return [
        f"{_named([name for name, _ in alike], cells)}: {_ranged([doubt for _, doubt in alike])}"
        for alike in kinds.values()
    ]


def _named(names: Sequence[str], cells: int) -> str:
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"all {cells}" if len(names) == cells else f"{len(names)} of {cells}"


def _ranged(doubts: Sequence[str]) -> str:
    """Return the warning, with every number that differs as a range."""
    places = list(zip(*(_NUMBER.findall(doubt) for doubt in doubts), strict=True))
    ranges = iter([min(place, key=float), max(place, key=float)] for place in places)

    def put(_: re.Match[str]) -> str:
        least, most = next(ranges)
        return least if least == most else f"{least} to {most}"

    return _NUMBER.sub(put, doubts[0])
