"""Results of the status page parsers, and their limits. Pure."""

from __future__ import annotations

import csv
from itertools import islice
from typing import NamedTuple

import msgspec

# Maximum size of a page.
PAGE_BYTES, PAGE_LINES = 1 << 20, 10_000
# Maximum characters of a text on a page, e.g. a scoreboard of 20,000 slots.
TEXT_CHARS = 32768
# Maximum number of metrics of a page, and of characters of their names.
MOST_VALUES, NAME_CHARS = 1000, 200
# Metrics with a larger magnitude are rejected, so that sums and differences stay finite.
_VALUE_LIMIT = 2.0**63
_NUMBER_CHARS = 40


# Errors of the parsers of a page's format: CSV, JSON, XML (whose error is a SyntaxError).
MALFORMED = (csv.Error, msgspec.MsgspecError, SyntaxError, ValueError, RecursionError)
# The rows of a page, by name.
PageRows = dict[str, str] | dict[str, float] | dict[str, str | float]


class PageMetrics(NamedTuple):
    """The metrics and texts of a page, with the page's names and units."""

    values: dict[str, float]
    text: dict[str, str]


class NotThePageError(Exception):
    """The response is not the requested page. The message contains the fix."""


def number(row: str | float) -> float | None:
    """Return a number of a page; None if it is no number, or too large."""
    if isinstance(row, str) and (len(row) > _NUMBER_CHARS or not row.isascii() or "_" in row):
        return None
    try:
        value = float(row)
    except (ValueError, OverflowError):
        return None
    # -0.0 becomes 0.0: a recording does not store the sign of zero.
    return value + 0.0 if abs(value) < _VALUE_LIMIT else None


def separated_rows(page: str, sign: str = ": ") -> dict[str, str]:
    """Return the rows of a page of lines such as `Name: value`."""
    parts = (line.partition(sign) for line in page.splitlines())
    return {name: rest for name, separator, rest in parts if separator}


def bounded(page: PageMetrics) -> PageMetrics:
    """Return the first MOST_VALUES metrics and texts, without those with overlong names. Texts are truncated."""
    values = {name: value for name, value in page.values.items() if len(name) <= NAME_CHARS}
    text = {name: line[:TEXT_CHARS] for name, line in page.text.items() if len(name) <= NAME_CHARS}
    return PageMetrics(dict(islice(values.items(), MOST_VALUES)), dict(islice(text.items(), MOST_VALUES)))
