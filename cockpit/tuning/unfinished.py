"""Describe and finish changes that were interrupted on a host, e.g. by a reboot."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import SECRET, Knob
from cockpit.tuning.applied import AppliedChange, HistoryEntry
from cockpit.tuning.remote import Remote
from cockpit.tuning.tuner import Tuner


def described(host: str, past: HistoryEntry) -> str:
    settings = ", ".join(f"{s.knob} {s.old or 'unset'} → {s.new or 'unset'}" for s in past.facts.settings)
    return f"{host}: change {past.name} of {past.facts.who} ({settings}) is incomplete: its new values may be active"


async def finish(tuner: Tuner, remote: Remote, host: str, past: HistoryEntry, knobs: Iterable[Knob]) -> AppliedChange:
    """Roll the change back, then apply it again. Raises ChangeRefused before that if its values are unknown."""
    known = {knob.name: knob for knob in knobs if knob.host == host}
    for setting in past.facts.settings:
        if setting.knob not in known or setting.new == SECRET:
            raise ChangeRefused(f"{host}: {past.name}: {setting.knob} cannot be set again from here; undo the change")
    await tuner.force_undo(remote, host, past)
    return await tuner.apply(remote, host, [(known[s.knob], s.new) for s in past.facts.settings])
