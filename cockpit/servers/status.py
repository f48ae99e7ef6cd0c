"""Results of parsers of status pages, and their limits. Pure."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import NamedTuple

# Characters of a text on a page that are kept: a scoreboard of 20,000 slots is one.
TEXT_CHARS = 32768
# Metrics of a page that are kept, and characters of their names.
MOST_VALUES, NAME_CHARS = 1000, 200
# A metric beyond this, either way, is rejected: sums and differences of those within it are finite.
_VALUE_LIMIT = 2.0**63
_NUMBER_CHARS = 40


class PageMetrics(NamedTuple):
    """Metrics by the page's own names and in its own units, and texts."""

    values: dict[str, float]
    text: dict[str, str]


class NotThePageError(Exception):
    """The response is not the requested page; the message has the fix."""


def number(text: str) -> float | None:
    """A number as pages print it; None if it is none or cannot be represented."""
    if len(text) > _NUMBER_CHARS or not text.isascii() or "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    # A recording keeps no sign of zero.
    return value + 0.0 if abs(value) < _VALUE_LIMIT else None


def colon_lines(page: str, *, required: str, hint: str, text: Collection[str] = ()) -> PageMetrics:
    """The metrics of a page of `Name: value` lines; `text` are the names whose value is no number though it may look
    like one. Raises NotThePageError with the hint if there is none called `required`."""
    values: dict[str, float] = {}
    texts: dict[str, str] = {}
    for line in page.splitlines():
        name, colon, rest = line.partition(": ")
        value = None if name in text or not colon else number(rest)
        if value is not None:
            values[name] = value
        elif colon:
            texts[name] = rest
    if required not in values:
        raise NotThePageError(f"no {required} on it: {hint}")
    return PageMetrics(values, texts)


def bounded(page: PageMetrics) -> PageMetrics:
    """The first MOST_VALUES metrics and texts, without those with overlong names; texts are cut."""
    values = {name: value for name, value in page.values.items() if len(name) <= NAME_CHARS}
    text = {name: line[:TEXT_CHARS] for name, line in page.text.items() if len(name) <= NAME_CHARS}
    return PageMetrics(dict(islice(values.items(), MOST_VALUES)), dict(islice(text.items(), MOST_VALUES)))
