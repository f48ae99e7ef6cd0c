"""Unfinished changes on a host: interrupted, e.g. by a reboot, or not rolled back completely."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field

from cockpit.analysis.words.timeline import settings_words
from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.model.knobs import SECRET, Knob
from cockpit.tuning.applied import ChangeFailed, HistoryEntry, HistoryState
from cockpit.tuning.history import state_words, unfinished, urgency
from cockpit.tuning.remote import Remote
from cockpit.tuning.tuner import Tuner


@dataclass
class InterruptedChanges:
    """Finds, undoes, finishes and leaves unfinished changes. `changes`: those that are known, with their hosts.

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
        """Find the unfinished changes of the host; new ones get a note. Raises HostError, ChangeRefused."""
        history = await self._tuner.history(self._remotes[host], host)
        changes = [(host, past) for past in unfinished(history)]
        known = {past.change for _, past in self.changes}
        others = [each for each in self.changes if each[0] != host]
        self.changes = sorted(others + changes, key=lambda each: urgency(each[1]), reverse=True)
        for _, past in changes:
            if past.change not in known:
                self._note(interruption_words(host, past))

    async def undo(self, host: str, past: HistoryEntry) -> None:
        """Let the host roll back a change that is unfinished or in progress. Raises HostError, ChangeRefused,
        ChangeFailed."""
        async with self._turn():
            await self._roll_back(host, past)
        await self._remove(host, past, "rolled back")

    async def leave(self, host: str, past: HistoryEntry) -> None:
        """Accept what the rollback of a change left. Raises ChangeRefused for an interrupted change."""
        await self._tuner.accept(self._remotes[host], host, past)
        await self._remove(host, past, "left as it is")

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
            await self._roll_back(host, past)
            values = [(self._knobs[setting.knob], setting.new) for setting in past.facts.settings]
            try:
                await self._tuner.apply(self._remotes[host], host, values)
            except CockpitError as error:
                error.args = (f"{error.problem}; change {past.name} is rolled back", error.subject)
                await self._remove(host, past, "rolled back")
                raise
        await self._remove(host, past, "finished")

    async def _roll_back(self, host: str, past: HistoryEntry) -> None:
        try:
            await self._tuner.force_undo(self._remotes[host], host, past)
        except (ChangeRefused, ChangeFailed):
            # It may have ended elsewhere, by a newer change, or incompletely.
            with suppress(CockpitError):
                await self.find(host)
            raise

    async def _remove(self, host: str, past: HistoryEntry, outcome: str) -> None:
        self._note(f"{host}: change {past.name} is {outcome}")
        self.changes = [each for each in self.changes if each != (host, past)]
        await self._reread(host)


def answers_to(past: HistoryEntry) -> str:
    """Return the possible answers to the question how an unfinished change ends."""
    return "undo, finish or leave" if past.state == HistoryState.PARTIAL else "undo or finish"


def interruption_words(host: str, past: HistoryEntry) -> str:
    settings = settings_words(past.facts.settings)
    return f"{host}: change {past.name} of {past.facts.who} ({settings}) is {state_words(past)}"
