"""Live values, which commands read and set: of live kinds of knobs, and of directives with `get` and `set`."""

from __future__ import annotations

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import LIVE_KNOBS, Knob
from cockpit.model.text import sanitize


def getter(knob: Knob) -> str:
    """Return the command that prints the knob's value. Raises ChangeRefused for an invalid name in the profile."""
    kind = LIVE_KNOBS.get(knob.kind)
    return kind.get(knob) if kind else knob.get


def setter(knob: Knob, value: str) -> str:
    """Return the command that sets the knob to "$1"."""
    kind = LIVE_KNOBS.get(knob.kind)
    return kind.set(knob, value) if kind else knob.set


def place(knob: Knob) -> str:
    """Return an identity of the value on its host, independent of the knob's name."""
    kind = LIVE_KNOBS.get(knob.kind)
    return kind.place(knob) if kind else f"{knob.kind}\t{knob.get}"


def check(knob: Knob, value: str) -> None:
    """Raise ChangeRefused for a value that the knob does not allow."""
    if why := knob.value_error(value):
        raise ChangeRefused(f"{knob.name}: {knob.shown(value, 80)!r} {why}")
    if not value or value != " ".join(value.split()) or sanitize(value) != value:
        shown = knob.shown(value, 80)
        raise ChangeRefused(f"{knob.name}: {shown!r}: a value is one line of text, not empty, with single spaces")
