"""What a configuration text says of one setting, whatever the text's grammar."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """A setting as it stands: `value` (None: not there), its bytes `raw`, the `line` and how many `times` it does."""

    value: str | None
    raw: bytes | None
    line: int
    times: int


NOT_THERE = Reading(None, None, 0, 0)


# A UTF-8 text may begin with it. It stays where it is, and is no part of the first word.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def line_number(text: bytes, at: int) -> int:
    """The number of the line on which the byte `at` stands, from 1."""
    return text.count(b"\n", 0, at) + 1
