"""The round-to-round spread in a study's earlier A/A controls, kept in the state directory to estimate power."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path

import msgspec

from cockpit.files import read_bounded, state_folder, write_private
from cockpit.study.results import RoundSpread

FILE = "study-spread.json"
_MAX_BYTES = 1 << 20
# Number of studies per profile and form that are kept, the newest.
_KEPT = 10


def earlier_spread(name: str, form: str) -> tuple[RoundSpread, int] | None:
    """Return the pooled spread of a profile's earlier A/A controls in this form, and their number.

    None if there is no earlier control or the file is damaged.
    """
    spreads = _read().get(_key(name, form), [])
    freedom = sum(spread.freedom for spread in spreads)
    if not freedom:
        return None
    squares = sum(spread.freedom * spread.deviation**2 for spread in spreads)
    return RoundSpread(deviation=math.sqrt(squares / freedom), freedom=freedom), len(spreads)


def keep_spread(name: str, form: str, spread: RoundSpread) -> None:
    """Add the spread of a completed study. A state directory that cannot be written is ignored."""
    known = _read()
    known[_key(name, form)] = [*known.get(_key(name, form), []), spread][-_KEPT:]
    with suppress(OSError):
        write_private(_path(), msgspec.json.encode(known))


def _path() -> Path:
    return state_folder() / FILE


def _key(name: str, form: str) -> str:
    return f"{name}/{form}"


def _read() -> dict[str, list[RoundSpread]]:
    try:
        return msgspec.json.decode(read_bounded(_path(), _MAX_BYTES), type=dict[str, list[RoundSpread]])
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return {}
