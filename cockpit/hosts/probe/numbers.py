"""Numbers and names from a host, accepted only if they can be represented and recorded. Pure; raises ValueError."""

from __future__ import annotations

# Exclusive limit of integers in a recording; no counter of a kernel reaches it.
INTEGER_LIMIT = 2**63
_DIGITS = 19
# The kernel's own limits are 15 (interfaces), 31 (disks), 63 (names of kernel threads) and 64 (host names) bytes.
NAME_BYTES = 64
# The end of the year 9999 in epoch seconds: no date beyond it can be printed.
TIME_LIMIT = 253_402_300_800


def count(word: bytes, limit: int = INTEGER_LIMIT) -> int:
    """Parse an integer from 0 to `limit`, exclusive."""
    if len(word) <= _DIGITS and word.isdigit():
        number = int(word)
        if number < limit:
            return number
    raise ValueError(f"{shown(word)} is not a number from 0 to {limit - 1}")


def signed(word: bytes) -> int:
    """Parse an integer that may be negative, such as a nice value or a terminal's process group."""
    return -count(word[1:]) if word.startswith(b"-") else count(word)


def decimal(word: bytes, limit: int) -> float:
    """Parse a number such as 12.50 from 0 to `limit`, exclusive; no exponent, no sign."""
    whole, dot, fraction = word.partition(b".")
    if len(fraction) > _DIGITS or (dot and not fraction.isdigit()):
        raise ValueError(f"{shown(word)} is not a number")
    count(whole, limit)
    return float(word)


def name(raw: bytes) -> str:
    if len(raw) > NAME_BYTES:
        raise ValueError(f"{shown(raw)} is longer than {NAME_BYTES} bytes")
    return raw.decode("utf-8", "replace")


def shown(word: bytes) -> str:
    """Quote at most 24 bytes of a word, for an error."""
    return repr(word[:24].decode("utf-8", "replace")) + ("…" if len(word) > 24 else "")
