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


class UnknownRange(UsageError):
    """A knob whose values to try are not known; `flag`: a flag with values as an example."""

    def __init__(self, knob: str, flag: str) -> None:
        super().__init__(f"{knob}: its range is not known; give one: {flag}")
        self.knob, self.flag = knob, flag


def searched_knob(knob: Knob, requested: str, original: str) -> SearchedKnob:
    """Return a knob with the values to try, which include the original one ("": not set).

    `requested`: values and ranges as text; "": the values that the profile allows.
    Raises UsageError for values that are invalid or not allowed, and for fewer than two.
    """
    if knob.secret:
        raise UsageError(f"{knob.name}: secret values cannot be searched")
    unit = _unit(original) if original else knob.unit.strip()
    numbers, others = _parsed_values(knob, requested, original, unit)
    original_number = _number(original, unit)
    if original_number is not None and (not others or original not in others):
        # The original spelling: 65 and 65s may be the same value.
        numbers[original_number] = original
    elif original not in others:
        others = (*others, original)
    values = (*(numbers[number] for number in sorted(numbers)), *others)
    for value in values:
        if value != original and (problem := knob.format_error(value) or knob.value_error(value)):
            raise UsageError(f"{knob.name}={value}: {problem}")
    if len(values) < 2:
        raise UsageError(f"{knob.name}: only one value to try; give a range: {_flag(knob, original, unit)}")
    return SearchedKnob(knob.name, values, len(numbers), knob.effective_cost)


def space_of(knobs: Sequence[SearchedKnob]) -> Space:
    return Space([_dimension(knob) for knob in knobs])


def _dimension(knob: SearchedKnob) -> Dimension:
    last = max(1, knob.ordered - 1)
    places = [at / last for at in range(knob.ordered)]
    return Dimension(knob.knob, knob.values, (*places, *(None for _ in knob.values[knob.ordered :])))


def _parsed_values(knob: Knob, text: str, original: str, unit: str) -> tuple[dict[float, str], tuple[str, ...]]:
    """Return the numbers with their texts, and the values without an order."""
    if not text:
        return _allowed_values(knob, original, unit)
    numbers: dict[float, str] = {}
    others: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        if match := _RANGE.fullmatch(part):
            low, high = float(match[1]), float(match[2])
            if not low < high:
                raise UsageError(f"{knob.name}={part}: empty range; write the smaller number first")
            numbers |= _levels(low, high, unit)
        else:
            others.append(part)
    return (numbers, tuple(others)) if numbers else _ordered_values(knob, others, unit)


def _levels(low: float, high: float, unit: str) -> dict[float, str]:
    return {number: f"{_number_text(number)}{unit}" for number in levels(low, high)}


def _ordered_values(knob: Knob, values: Sequence[str], unit: str) -> tuple[dict[float, str], tuple[str, ...]]:
    """Return the values as numbers with their texts; as unordered texts if any is not a number or has another unit.
    A number without a unit gets the unit, unless the profile allows it as it is."""
    numbers: dict[float, str] = {}
    for value in values:
        number = _number(value, unit)
        if number is None:
            return {}, tuple(values)
        numbers[number] = value if value in knob.choices or _unit(value) else f"{value}{unit}"
    return numbers, ()


def _allowed_values(knob: Knob, original: str, unit: str) -> tuple[dict[float, str], tuple[str, ...]]:
    form = knob.known.form if knob.known else None
    choices = knob.choices or (form.choices if form else ())
    if choices:
        return _ordered_values(knob, choices, unit)
    least, most = (form and form.bounds) or (None, None)
    low, high = least if knob.min is None else knob.min, most if knob.max is None else knob.max
    if low is not None and high is not None:
        return _levels(low, high, unit), ()
    raise UnknownRange(knob.name, _flag(knob, original, unit))


def _flag(knob: Knob, value: str, unit: str) -> str:
    """Return a flag with a range as an example: a quarter to four times the value, within the known limits."""
    number = _number(value, unit)
    low, high = (number // 4, number * 4) if number else (5.0, 400.0)
    low, high = max(low, knob.min or 1.0), high if knob.max is None else min(high, knob.max)
    has_words = value != "" and number is None
    if has_words or any(knob.format_error(f"{_number_text(bound)}{unit}") for bound in (low, high)):
        return f"--knob {knob.name}=VALUE,VALUE"
    return f"--knob {knob.name}={_number_text(low)}..{_number_text(high)}"


def _number_text(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _unit(value: str) -> str:
    match = _NUMBER.fullmatch(value)
    return match[2] if match else ""


def _number(value: str, unit: str) -> float | None:
    match = _NUMBER.fullmatch(value)
    return float(match[1]) if match and match[2] in ("", unit) else None
