"""What all parsers of status pages give, and what they raise."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

# Characters of a text on a page that are kept: a scoreboard of 20,000 slots is one.
TEXT_CHARS = 32768
# Figures of a page that are kept, and characters of their names.
MOST_VALUES, NAME_CHARS = 1000, 200
# A figure beyond this, either way, is rejected: sums and differences of those within it are finite.
_VALUE_LIMIT = 2.0**63
_NUMBER_CHARS = 40


class PageMetrics(NamedTuple):
    """Figures by the page's own names and in its own units, and what is no number."""

    values: dict[str, float]
    text: dict[str, str]


class NotThePageError(Exception):
    """What came is not the page that was asked for; says how to get that one."""


def number(text: str) -> float | None:
    """A figure as pages print it; None if it is not a number or cannot be represented."""
    if len(text) > _NUMBER_CHARS or not text.isascii() or "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    # A recording keeps no sign of zero.
    return value + 0.0 if abs(value) < _VALUE_LIMIT else None


def bounded(said: PageMetrics) -> PageMetrics:
    """The first MOST_VALUES figures and texts, without those that have overlong names; texts are cut."""
    values = {name: value for name, value in said.values.items() if len(name) <= NAME_CHARS}
    text = {name: line[:TEXT_CHARS] for name, line in said.text.items() if len(name) <= NAME_CHARS}
    return PageMetrics(dict(islice(values.items(), MOST_VALUES)), dict(islice(text.items(), MOST_VALUES)))
