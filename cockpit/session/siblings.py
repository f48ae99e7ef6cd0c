"""Servers that are compared at the same time: each has a knob for the same setting, and its requests are counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob, Setting
from cockpit.model.text import sanitize


def sibling_knobs(names: Collection[str], knobs: Mapping[str, Knob], hosts: Sequence[str]) -> dict[str, Knob]:
    """Return the knobs of another host for the settings of the named knobs, by name; empty if none of `hosts`, whose
    requests are counted, has all of them, or if the named knobs are not on one of them."""
    own = [knobs[name] for name in names if name in knobs]
    at = {knob.host for knob in own}
    if len(at) != 1 or not at <= {*hosts}:
        return {}
    for host in (host for host in hosts if host not in at):
        known = {knob.name: _same_setting(knob, [each for each in knobs.values() if each.host == host]) for knob in own}
        siblings = {name: knob for name, knob in known.items() if knob is not None}
        if len(siblings) == len(known):
            return siblings
    return {}


def _same_setting(knob: Knob, others: Sequence[Knob]) -> Knob | None:
    """Return the knob for the same setting: in the file of the same name if there are several; None: not certain."""
    same = [each for each in others if _setting(each) == _setting(knob)]
    matches = same if len(same) == 1 else [each for each in same if each.file == knob.file]
    return matches[0] if len(matches) == 1 else None


def _setting(knob: Knob) -> tuple[object, ...]:
    name = knob.directive.lower() or knob.key or knob.mount or knob.get
    return (knob.kind, knob.section, name, knob.choices)


def check_same_values(host: str, settings: Sequence[Setting], sibling: str, others: Sequence[Setting]) -> None:
    """Raises ChangeRefused if the old values of the siblings differ: the comparison would be of other values."""
    for own, other in zip(settings, others, strict=True):
        if own.old != other.old:
            values = f"{sanitize(other.old or 'unset', 80)}, {own.knob} on {host} {sanitize(own.old or 'unset', 80)}"
            raise ChangeRefused(
                f"{sibling}: {other.knob} is {values}; give both the same value first, or compare on {host} alone"
            )
