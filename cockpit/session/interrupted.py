"""Changes that were interrupted on a host, e.g. by a reboot: they are neither undone nor finished."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from cockpit.analysis.words.timeline import settings_words
from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import SECRET, Knob
from cockpit.tuning.applied import HistoryEntry, HistoryState
from cockpit.tuning.remote import Remote
from cockpit.tuning.tuner import Tuner


@dataclass
class InterruptedChanges:
    """Finds, undoes and finishes interrupted changes. `changes`: those that are known, with their hosts.

    `turn` returns the lock for one change at a time. `note` adds a note to the timeline. `reread` reads the knobs of a
    host again. `guarded`: nothing may be changed without a limit, so that changes can only be undone.
    """

    _tuner: Tuner
    _remotes: Mapping[str, Remote]
    _knobs: Mapping[str, Knob]
    _turn: Callable[[], AbstractAsyncContextManager[None]]
    _note: Callable[[str], None]
    _reread: Callable[[str], Awaitable[None]]
    _guarded: bool
    changes: list[tuple[str, HistoryEntry]] = field(init=False, default_factory=list)

    async def find(self, host: str) -> None:
        """Find the interrupted changes of the host; new ones get a note. Raises HostError, ChangeRefused."""
        history = await self._tuner.history(self._remotes[host], host)
        changes = [(host, past) for past in history if past.state == HistoryState.INTERRUPTED]
        known = {past.change for _, past in self.changes}
        fresh = [(host, past) for _, past in changes if past.change not in known]
        self.changes = [each for each in self.changes if each[0] != host or each in changes] + fresh
        for each in fresh:
            self._note(interruption_words(*each))

    async def undo(self, host: str, past: HistoryEntry) -> None:
        """Let the host roll back a change that was interrupted or is in progress. Raises HostError, ChangeRefused."""
        async with self._turn():
            await self._tuner.force_undo(self._remotes[host], host, past)
        await self._remove(host, past, "rolled back")

    async def finish(self, host: str, past: HistoryEntry) -> None:
        """Roll back a change and apply it again. Raises ChangeRefused before that if its values are unknown;
        CockpitError."""
        if self._guarded:
            raise ChangeRefused(f"{host}: {past.name}: undo it, then change the setting again under a limit")
        for setting in past.facts.settings:
            knob = self._knobs.get(setting.knob)
            if knob is None or knob.host != host or setting.new == SECRET:
                raise ChangeRefused(
                    f"{host}: {past.name}: {setting.knob} cannot be set again from here; undo the change"
                )
        async with self._turn():
            await self._tuner.force_undo(self._remotes[host], host, past)
            values = [(self._knobs[setting.knob], setting.new) for setting in past.facts.settings]
            await self._tuner.apply(self._remotes[host], host, values)
        await self._remove(host, past, "finished")

    async def _remove(self, host: str, past: HistoryEntry, outcome: str) -> None:
        self._note(f"{host}: change {past.name} is {outcome}")
        self.changes = [each for each in self.changes if each != (host, past)]
        await self._reread(host)


def interruption_words(host: str, past: HistoryEntry) -> str:
    settings = settings_words(past.facts.settings)
    return f"{host}: change {past.name} of {past.facts.who} ({settings}) is incomplete: its new values may be active"
