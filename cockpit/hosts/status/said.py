"""What all parsers of status pages give, and what they raise."""

from __future__ import annotations

import math
from typing import NamedTuple

# Characters of a text on a page that are kept: a scoreboard of 20,000 slots is one.
TEXT_CHARS = 32768
# Figures of a page that are kept.
MOST_VALUES = 1000


class Said(NamedTuple):
    """Figures by the page's own names and in its own units, and what is no number."""

    values: dict[str, float]
    text: dict[str, str]


class NotThePageError(Exception):
    """What came is not the page that was asked for; says how to get that one."""


def number(text: str) -> float | None:
    """A figure as pages print it; None where it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
