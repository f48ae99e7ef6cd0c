"""Changes of the hosts of a session: applied, made for a time, and undone, with their events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count

from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.knobs import Knob, Setting
from cockpit.session.active_changes import ActiveChanges
from cockpit.session.change_report import ChangeReport, letters
from cockpit.session.guard import SessionGuard
from cockpit.session.knob_reader import KnobReader
from cockpit.session.live_events import LiveEvents
from cockpit.session.rounds import Hold
from cockpit.tuning.applied import AppliedChange, Edit, LiveEdit
from cockpit.tuning.change_options import Approval
from cockpit.tuning.plan import NewValues, Plan
from cockpit.tuning.remote import Remote
from cockpit.tuning.tuner import Tuner


class HostChanges:
    """Makes changes of `knobs`, each of one host, and reports them as events. `active`: those that can be undone."""

    def __init__(
        self,
        knobs: Mapping[str, Knob],
        remotes: Mapping[str, Remote],
        tuner: Tuner,
        reader: KnobReader,
        events: LiveEvents,
        guard: SessionGuard,
    ) -> None:
        self.active = ActiveChanges()
        self._knobs = knobs
        self._remotes = remotes
        self._tuner = tuner
        self._reader = reader
        self._events = events
        self._guard = guard
        self._letters = map(letters, count())
        self._trials = map("r{}".format, count(1))

    async def temporarily(
        self,
        values: Mapping[str, str | None],
        longest: float,
        hold: Hold,
        *,
        expected: Mapping[str, str | None] | None = None,
    ) -> None:
        """Activate values while `hold` runs, by changes that the hosts roll back after `longest` seconds at the latest.

        Raises ChangeRefused, also if a knob has another value than `expected` before that; CockpitError.
        """
        await self._while_active(list(self.by_host(values).items()), longest, hold, expected or {})

    async def _while_active(
        self,
        values: Sequence[tuple[str, NewValues]],
        longest: float,
        hold: Hold,
        expected: Mapping[str, str | None],
    ) -> None:
        """Activate the values of each host while `hold` runs, by changes that are never confirmed. Raises ChangeRefused
        if a host has the new values already."""
        if not values:
            await hold()
            return
        (host, own), *rest = values

        async def never_confirm() -> bool:
            await self._while_active(rest, longest, hold, expected)
            report.is_complete = True
            return False

        report = self.report_of(host, self._reader.settings(own), trial=True)
        report.expected = expected
        try:
            await self.apply(own, report, Approval(longest, never_confirm, asked=False))
        except ChangeRolledBack:
            if not report.is_complete:
                raise
        else:
            raise ChangeRefused("it has the new values already: modified elsewhere", subject=host)

    async def apply(
        self, values: NewValues, report: ChangeReport, approval: Approval | None = None, *, restores: bool = False
    ) -> AppliedChange:
        """Apply values to the host of the report, within the limits unless it `restores` earlier ones."""
        host = report.host
        guard = None if restores else self._guard.of_change(report)
        change = self._tuner.apply(self._remotes[host], host, values, report, approval, guard, restores=restores)
        applied = await self._observed(report, change)
        if applied.change:
            self.active[report.letter] = applied
        return applied

    async def undo(self, applied: AppliedChange, name: str) -> AppliedChange:
        """Undo the change `name`, also of an earlier session, whose profile may have had other secrets."""
        edits: tuple[Edit | LiveEdit, ...] = (*applied.edits, *applied.live_edits)
        self._events.hide_values(edit.knob.name for edit in edits if edit.knob.secret)
        settings = tuple(Setting(knob=s.knob, old=s.new, new=s.old) for s in applied.settings)
        report = self.report_of(applied.host, settings, undoes=name)
        return await self._observed(report, self._tuner.undo(self._remotes[applied.host], applied, report))

    async def _observed(self, report: ChangeReport, change: Awaitable[AppliedChange]) -> AppliedChange:
        """Await a change; report its events, and the values that are active after it."""
        try:
            applied = await report.observe(change)
        except ChangeRolledBack:
            self._reader.update(Setting(knob=s.knob, old=s.new, new=s.old) for s in report.settings)
            raise
        self._reader.update(applied.settings)
        return applied

    def report_of(
        self,
        host: str,
        settings: tuple[Setting, ...],
        *,
        undoes: str = "",
        trial: bool = False,
        on_active: Callable[[str], None] = lambda _: None,
    ) -> ChangeReport:
        """Return the report of a new change, with the next letter or the next name of a trial."""
        letter = next(self._trials if trial else self._letters)
        return ChangeReport(self._events, letter, host, settings, undoes=undoes, trial=trial, on_active=on_active)

    async def plan(self, host: str, values: NewValues) -> Plan:
        """Plan a change. Raises ChangeRefused, HostError."""
        return await self._tuner.prepare(self._remotes[host], host, values)

    def by_host(self, values: Mapping[str, str | None]) -> dict[str, NewValues]:
        """Group new values by host. Raises ChangeRefused for an unknown knob."""
        knobs = [(self.knob(name), value) for name, value in values.items()]
        hosts = dict.fromkeys(knob.host for knob, _ in knobs)
        return {host: [(knob, value) for knob, value in knobs if knob.host == host] for host in hosts}

    def knob(self, name: str) -> Knob:
        """Return a knob by name. Raises ChangeRefused for an unknown knob."""
        if name not in self._knobs:
            raise ChangeRefused(f"unknown knob {name!r}; the profile has: {', '.join(self._knobs) or 'none'}")
        return self._knobs[name]
