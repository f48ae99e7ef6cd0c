"""The knobs of a search, from `NAME`, `NAME=5..400`, `NAME=5,10,20` or `NAME=1..8,0`, and the space they span. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cockpit.autopilot.space import Dimension, Space, levels
from cockpit.model.autopilot import SearchedKnob
from cockpit.model.errors import UsageError
from cockpit.model.knobs import Knob

_RANGE = re.compile(r"(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)")
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z%]*)")


def searched_knob(knob: Knob, wanted: str, original: str) -> SearchedKnob:
    """Return the values to try, the original one among them ("": not set). `wanted` are values and a range, "": those
    that the profile allows. Raises UsageError if they are none, or if the knob does not take one."""
    if knob.secret:
        raise UsageError(f"{knob.name} is secret; its values cannot be searched")
    unit = knob.unit.strip() or _unit(original)
    numbers, others = _wanted(knob, wanted, unit)
    own = _number(original, unit)
    if own is not None and (not others or original not in others):
        numbers = sorted({*numbers, own})
    elif original not in others:
        others = (*others, original)
    for_server = [f"{_spelled(number)}{unit}" for number in numbers]
    if own is not None and own in numbers:
        # As it is written there: 65 and 65s may be the same.
        for_server[list(numbers).index(own)] = original
    values = (*for_server, *others)
    for value in values:
        if value != original and (problem := knob.malformed(value) or knob.refuses(value)):
            raise UsageError(f"{knob.name}={value}: {problem}")
    if len(values) < 2:
        raise UsageError(f"{knob.name} has one value only; name some: --knob {knob.name}=5..400")
    return SearchedKnob(knob.name, values, len(numbers), knob.price)


def space_of(knobs: Sequence[SearchedKnob]) -> Space:
    return Space([_dimension(knob) for knob in knobs])


def _dimension(knob: SearchedKnob) -> Dimension:
    last = max(1, knob.ordered - 1)
    places = [at / last for at in range(knob.ordered)]
    return Dimension(knob.knob, knob.values, (*places, *(None for _ in knob.values[knob.ordered :])))


def _wanted(knob: Knob, wanted: str, unit: str) -> tuple[Sequence[float], tuple[str, ...]]:
    """The numbers, and the values without an order."""
    if not wanted:
        return _allowed(knob, unit)
    numbers: list[float] = []
    others: list[str] = []
    ranged = False
    for part in filter(None, (part.strip() for part in wanted.split(","))):
        if found := _RANGE.fullmatch(part):
            low, high = float(found[1]), float(found[2])
            if not low < high:
                raise UsageError(f"{knob.name}={part}: the first number must be the smaller one")
            numbers += levels(low, high)
            ranged = True
        else:
            others.append(part)
    return (numbers, tuple(others)) if ranged else _ordered(others, unit)


def _ordered(values: Sequence[str], unit: str) -> tuple[Sequence[float], tuple[str, ...]]:
    """Return the values as numbers in order; as they are written if one is no number, or has another unit."""
    numbers = [_number(one, unit) for one in values]
    if None in numbers:
        return (), tuple(values)
    return sorted({number for number in numbers if number is not None}), ()


def _allowed(knob: Knob, unit: str) -> tuple[Sequence[float], tuple[str, ...]]:
    choices = knob.choices or (knob.known.form.choices if knob.known else ())
    if choices:
        return _ordered(choices, unit)
    if knob.min is not None and knob.max is not None:
        return levels(knob.min, knob.max), ()
    raise UsageError(
        f"{knob.name}: its profile has neither values nor min and max; name some: --knob {knob.name}=5..400"
    )


def _spelled(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _unit(value: str) -> str:
    found = _NUMBER.fullmatch(value)
    return found[2] if found else ""


def _number(value: str, unit: str) -> float | None:
    found = _NUMBER.fullmatch(value)
    return float(found[1]) if found and found[2] in ("", unit) else None
