"""The order in which settings are measured. Pure; the same seed gives the same order."""

from __future__ import annotations

from random import Random

from cockpit.model.events import Side

# Rounds within which each side comes first equally often.
BALANCED = 4


def balanced(rounds: int, seed: int) -> tuple[Side, ...]:
    """Return which side each round begins with: at random, each side twice in every four rounds."""
    draw = Random(seed)
    first: list[Side] = []
    while len(first) < rounds:
        four: list[Side] = ["before", "before", "after", "after"]
        draw.shuffle(four)
        first += four
    return tuple(first[:rounds])


def mirrored(rounds: int) -> tuple[Side, ...]:
    """Return which side each round begins with for A-B-B-A."""
    sides: tuple[Side, Side] = ("before", "after")
    return tuple(sides[number % 2] for number in range(rounds))


def other(side: Side) -> Side:
    """Return the other side."""
    return "after" if side == "before" else "before"


def sequence(first: tuple[Side, ...]) -> tuple[Side, ...]:
    """Return the sides of all windows in order of time."""
    return tuple(side for one in first for side in (one, other(one)))
