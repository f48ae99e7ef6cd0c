"""Formatting for display: neutralise text from servers, and shorten numbers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import count

# Direction overrides and isolates: they can reorder the visible text.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Control characters except tabs and line ends; line separators.
_EXECUTED = re.compile(rf"\r(?!\n)|[\x00-\x08\v\f\x0e-\x1f\x7f-\x9f\u2028\u2029{''.join(_BIDI)}]")
_HIDDEN = {"Cc", "Cf", "Cn", "Cs", "Co", "Zl", "Zp"}
# Letters that are invisible, or look like a space, and invisible marks that change the shape and the width of the
# character before them.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f").union(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0), *range(0x180B, 0x1810)))
)
# Combining marks are drawn over the character before them; too many in a row would cover the lines above and below.
_MARKS = {"Mn", "Me"}
_MAX_MARKS = 2


def sanitize(text: str, limit: int = 4096) -> str:
    """Return `text` on one line without escape sequences, control or hidden characters, at most `limit` long.

    A tab is replaced by a space, any other invisible character by `·`. At most two combining marks per character are
    kept, enough for real languages.
    """
    cut = text[:limit]
    if cut.isascii() and cut.isprintable():
        return cut if len(text) <= limit else cut[: limit - 1] + "…"
    shown = "".join(_visible(cut))
    return shown if len(text) <= limit else shown[: limit - 1] + "…"


def inert(text: str, mark: str = "·") -> str:
    """Replace characters that a terminal would execute or that reorder the visible text, on any number of lines."""
    return _EXECUTED.sub(mark, text)


def escaped(json: str) -> str:
    """Return equivalent JSON that is safe on a terminal: characters that `neutral` replaces are escaped (`\\uXXXX`)."""
    if json.isascii() and "\x7f" not in json:
        return json
    pairs = zip(json, _visible(json), strict=True)
    return "".join(char if char == visible or char == "\n" else _code(char) for char, visible in pairs)


def _code(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _visible(text: str) -> Iterator[str]:
    # No mark at the start: it would be drawn over the character before the text.
    marks = _MAX_MARKS
    for char in text:
        if " " <= char <= "~":
            marks = 0
            yield char
            continue
        category = unicodedata.category(char)
        marks = marks + 1 if category in _MARKS else 0
        if char == "\t":
            yield " "
        elif char in _BIDI or char in _BLANK or category in _HIDDEN or marks > _MAX_MARKS:
            yield "·"
        else:
            yield char


def si(value: float, digits: int = 3) -> str:
    """Return a count or rate with at most `digits` significant digits: 7, 940, 12.4k, 1.35M."""
    for factor, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor * (1 - 0.5 * 10**-digits):
            return _significant(value / factor, digits) + suffix
    return _significant(value, digits)


def _significant(value: float, digits: int) -> str:
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 1
    text = f"{value:.{max(0, digits - whole)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def milliseconds(seconds: float) -> str:
    """Return a latency in milliseconds, without the unit: 0.08, 1.2, 61, 2658."""
    ms = seconds * 1000
    if ms < 1:
        return f"{ms:.2f}"
    return f"{ms:.1f}" if ms < 9.95 else f"{ms:.0f}"


def age(seconds: float) -> str:
    """Return e.g. `12 ms`, `3.2 s`."""
    return f"{milliseconds(seconds)} ms" if seconds < 0.9995 else f"{seconds:.1f} s"


def share_words(share: float) -> str:
    """Return a share as a percentage that is 0% or 100% only if that is exact: 0.02%, 3.4%, 99.9%, 100%."""
    if 0 < share < 0.0001:
        return "<0.01%"
    if 0.999 <= share < 1:
        return ">99.9%"
    percent = 100 * share
    return f"{percent:.{2 if 0 < percent < 0.95 else 1 if 0 < percent < 100 else 0}f}%"


def size(nbytes: float) -> str:
    """Return bytes in powers of 1024: 512, 61M, 1.4G."""
    value = float(nbytes)
    for suffix in ("", "K", "M", "G", "T"):
        if abs(value) < 1024 or suffix == "T":
            return f"{value:.0f}{suffix}" if value >= 10 or not suffix else f"{value:.1f}{suffix}"
        value /= 1024
    raise AssertionError("unreachable")


def numbered(name: str) -> Iterator[str]:
    """Yield `web1`, `web1-2`, `web1-3`, …, of which the first unused one is a new name."""
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def count_text(number: int, noun: str) -> str:
    """Return e.g. `1 run`, `3 runs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def mebibytes(nbytes: float) -> str:
    return f"{nbytes / 2**20:.1f} MiB"


def elapsed(seconds: float) -> str:
    """Return minutes and seconds, e.g. 0:07, 12:30; with hours from one hour on."""
    whole = int(seconds)
    return (
        f"{whole // 60}:{whole % 60:02d}"
        if whole < 3600
        else f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    )


def clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
