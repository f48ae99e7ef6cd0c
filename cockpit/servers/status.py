"""Results of the status page parsers, and their limits. Pure."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import NamedTuple

# Maximum size of a page.
PAGE_BYTES, PAGE_LINES = 1 << 20, 10_000
# Maximum characters of a text on a page, e.g. a scoreboard of 20,000 slots.
TEXT_CHARS = 32768
# Maximum number of metrics of a page, and of characters of their names.
MOST_VALUES, NAME_CHARS = 1000, 200
# Metrics with a larger magnitude are rejected, so that sums and differences stay finite.
_VALUE_LIMIT = 2.0**63
_NUMBER_CHARS = 40


class PageMetrics(NamedTuple):
    """The metrics and texts of a page, with the page's names and units."""

    values: dict[str, float]
    text: dict[str, str]


class NotThePageError(Exception):
    """The response is not the requested page. The message contains the fix."""


def number(text: str) -> float | None:
    """Parse a number of a page; None if the text is no number or too large."""
    if len(text) > _NUMBER_CHARS or not text.isascii() or "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    # -0.0 becomes 0.0: a recording does not store the sign of zero.
    return value + 0.0 if abs(value) < _VALUE_LIMIT else None


def colon_lines(page: str, *, required: str, hint: str, text: Collection[str] = ()) -> PageMetrics:
    """Parse a page of `Name: value` lines. The values of the names in `text` are texts, even if they look like numbers.
    Raises NotThePageError with the hint if there is no metric `required`."""
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
        raise NotThePageError(f"no {required} on the page: {hint}")
    return PageMetrics(values, texts)


def bounded(page: PageMetrics) -> PageMetrics:
    """Return the first MOST_VALUES metrics and texts, without those with overlong names. Texts are truncated."""
    values = {name: value for name, value in page.values.items() if len(name) <= NAME_CHARS}
    text = {name: line[:TEXT_CHARS] for name, line in page.text.items() if len(name) <= NAME_CHARS}
    return PageMetrics(dict(islice(values.items(), MOST_VALUES)), dict(islice(text.items(), MOST_VALUES)))
