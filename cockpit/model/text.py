"""Text that came from a server, made harmless, and figures made short. Used by whatever shows text."""

from __future__ import annotations

import unicodedata

# Direction overrides and isolates: they can make a line read as what it is not.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def neutral(text: str, limit: int = 4096) -> str:
    """`text` on one line without escape sequences, control or direction characters, cut at `limit` characters.

    A tab becomes a space; every other control character becomes `·`, so that its presence can be seen.
    """
    cut = text[:limit]
    if cut.isascii() and cut.isprintable():
        return cut if len(text) <= limit else cut[: limit - 1] + "…"
    shown = "".join(_visible(char) for char in cut)
    return shown if len(text) <= limit else shown[: limit - 1] + "…"


def _visible(char: str) -> str:
    if char == "\t":
        return " "
    if char in _BIDI or unicodedata.category(char) in _HIDDEN:
        return "·"
    return char


def si(value: float, digits: int = 3) -> str:
    """A count or rate in at most `digits` significant digits: 7, 940, 12.4k, 1.35M."""
    for factor, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor * (1 - 0.5 * 10**-digits):
            return _significant(value / factor, digits) + suffix
    return _significant(value, digits)


def _significant(value: float, digits: int) -> str:
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 1
    text = f"{value:.{max(0, digits - whole)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def milliseconds(seconds: float) -> str:
    """A latency as milliseconds without the unit: 0.08, 1.2, 61, 2658."""
    ms = seconds * 1000
    if ms < 1:
        return f"{ms:.2f}"
    return f"{ms:.1f}" if ms < 9.95 else f"{ms:.0f}"


def size(nbytes: float) -> str:
    """Bytes in powers of 1024: 512, 61M, 1.4G."""
    value = float(nbytes)
    for suffix in ("", "K", "M", "G", "T"):
        if abs(value) < 1024 or suffix == "T":
            return f"{value:.0f}{suffix}" if value >= 10 or not suffix else f"{value:.1f}{suffix}"
        value /= 1024
    raise AssertionError("unreachable")


def clock(seconds: float) -> str:
    """Session time as HH:MM:SS."""
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
