"""Knob values and changes as events of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from cockpit.hosts.internal_error import internal_error
from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused, ChangeRolledBack, CockpitError
from cockpit.model.events import AnyEvent, ChangeBegun, ChangeEnded, ChangeOutcome, ChangeStage, KnobRead, Stage
from cockpit.model.knobs import Knob, Setting
from cockpit.profiles.profile import Profile
from cockpit.tuning.applied import AppliedChange, ChangeFailed, HistoryEntry
from cockpit.tuning.change_options import Approval, ChangeObserver, whoami
from cockpit.tuning.discovery.configuration import conditions_of
from cockpit.tuning.files import HostFile
from cockpit.tuning.plan import Plan
from cockpit.tuning.remote import Remote
from cockpit.tuning.tuner import Tuner


class ChangeReport(ChangeObserver):
    """Emit the events of one change of `host`. It begins once the diff is known, or if it fails before that.

    `letter`: its name, set by `name` when it begins. `active`: it became active; `on_active` is then called with the
    letter. `trial`: it is made only for a measurement and undone after it.
    """

    def __init__(
        self,
        clock: Clock,
        emit: Callable[[AnyEvent], None],
        name: Callable[[], str],
        host: str,
        settings: tuple[Setting, ...],
        *,
        undoes: str = "",
        trial: bool = False,
        on_active: Callable[[str], None] | None = None,
    ) -> None:
        self.letter = ""
        self.active = False
        self._clock = clock
        self._emit = emit
        self._name = name
        self._host = host
        self._settings = settings
        self._undoes = undoes
        self._trial = trial
        self._on_active = on_active

    def begun(self, plan: Plan) -> None:
        inactive = tuple(knob.name for knob in plan.inactive)
        self._begin(plan.settings or self._settings, plan.diff, plan.cost, inactive)

    def stage(self, stage: Stage, seconds: float | None = None) -> None:
        self._emit(ChangeStage(t=self._clock.now(), change=self.letter, stage=stage, seconds=seconds))
        if stage == "active":
            self.active = True
            if self._on_active is not None:
                self._on_active(self.letter)

    def end(self, outcome: ChangeOutcome, detail: str) -> None:
        """Report the end, also of a change that failed before its diff was known."""
        if not self.letter:
            self._begin(self._settings, "", "")
        if outcome == "rolled back" and self.active and self._trial:
            detail = _PLANNED_UNDO
        self._emit(ChangeEnded(t=self._clock.now(), change=self.letter, outcome=outcome, detail=detail))

    def _begin(self, settings: tuple[Setting, ...], diff: str, cost: str, inactive: tuple[str, ...] = ()) -> None:
        self.letter = self._name()
        self._emit(
            ChangeBegun(
                t=self._clock.now(),
                change=self.letter,
                host=self._host,
                settings=settings,
                undoes=self._undoes,
                diff=diff,
                cost=cost,
                who=whoami(),
                inactive=inactive,
                trial=self._trial,
            )
        )


# Detail of the undo of a trial change.
_PLANNED_UNDO = "undone as planned"
# Runs while a change is active; the change is undone when it returns.
Hold = Callable[[], Awaitable[None]]
# Knobs of one host with their new values; None: not set.
Assignments = list[tuple[Knob, str | None]]


class KnobValues:
    """The last read values of knobs. If a knob cannot be read, its event has the reason."""

    def __init__(
        self,
        knobs: Iterable[Knob],
        remotes: Mapping[str, Remote],
        tuner: Tuner,
        clock: Clock,
        emit: Callable[[AnyEvent], None],
    ) -> None:
        self._knobs = {knob.name: knob for knob in knobs}
        self._remotes = remotes
        self._tuner = tuner
        self._clock = clock
        self._emit = emit
        self._values: dict[str, str | None] = {}
        self._changes = 0
        # Why values are not active, by file and number of changes.
        self._inactive: dict[tuple[str, str, bytes, int], dict[str, str]] = {}

    @property
    def all(self) -> Collection[Knob]:
        return self._knobs.values()

    def knob(self, name: str) -> Knob:
        """Return a knob by its name. Raises ChangeRefused."""
        if name not in self._knobs:
            known = ", ".join(self._knobs) or "none"
            raise ChangeRefused(f"unknown knob {name!r}; the profile has: {known}")
        return self._knobs[name]

    def by_host(self, values: Mapping[str, str | None]) -> dict[str, Assignments]:
        """Group new values by host. Raises ChangeRefused for an unknown knob."""
        assignments: dict[str, Assignments] = {}
        for name, value in values.items():
            knob = self.knob(name)
            assignments.setdefault(knob.host, []).append((knob, value))
        return assignments

    async def read(self, names: Collection[str]) -> dict[str, str | None]:
        """Read knobs on their hosts and return the values. Raises HostError, ChangeRefused for the first knob that
        cannot be read.
        """
        values: dict[str, str | None] = {}
        for knob in map(self.knob, names):
            values[knob.name] = await self._read(knob, {})
        return values

    async def read_host(self, host: str) -> bool:
        """Read all knobs of the host, each file once and before commands; return whether it has any."""
        knobs = sorted((knob for knob in self._knobs.values() if knob.host == host), key=lambda knob: knob.live)
        known: dict[tuple[str, bool], HostFile] = {}
        for knob in knobs:
            await self._try_to_read(knob, known)
        return bool(knobs)

    async def settings(self, assignments: Assignments) -> tuple[Setting, ...]:
        """Return the settings of a change with the last known old values; unknown values are read."""
        for knob, _ in assignments:
            if knob.name not in self._values:
                await self._try_to_read(knob, {})
        return tuple(Setting(knob=knob.name, old=self._values.get(knob.name), new=new) for knob, new in assignments)

    def take(self, settings: Iterable[Setting]) -> None:
        self._values |= {setting.knob: setting.new for setting in settings}
        self._changes += 1

    async def _read(self, knob: Knob, known: dict[tuple[str, bool], HostFile]) -> str | None:
        changes = self._changes
        value = await self._tuner.read(self._remotes[knob.host], knob, known)
        if changes != self._changes:
            # The value, and known files, may be older than the change.
            known.clear()
            return await self._read(knob, known)
        self._values[knob.name] = value
        self._emit(KnobRead(t=self._clock.now(), knob=knob.name, host=knob.host, value=value))
        if why := await self._why_inactive(knob, known):
            raise ChangeRefused(why)
        return value

    async def _why_inactive(self, knob: Knob, known: Mapping[tuple[str, bool], HostFile]) -> str:
        """Return why a value in a conditional section is not active; "" if it is, or nothing is known. The server is
        asked once per version of the file and change."""
        file = known.get((knob.file, knob.creates))
        if file is None or not conditions_of(knob, file.data):
            return ""
        key = (knob.host, knob.file, file.data, self._changes)
        if key not in self._inactive:
            alike = [one for one in self._knobs.values() if (one.host, one.file) == (knob.host, knob.file)]
            self._inactive[key] = await self._tuner.inactive(self._remotes[knob.host], knob.host, alike)
        return self._inactive[key].get(knob.name, "")

    async def _try_to_read(self, knob: Knob, known: dict[tuple[str, bool], HostFile]) -> None:
        """Read the knob; if this fails, emit an event with the reason."""
        try:
            await self._read(knob, known)
        except Exception as error:
            detail = str(error) if isinstance(error, CockpitError) else internal_error(error)
            self._emit(KnobRead(t=self._clock.now(), knob=knob.name, host=knob.host, value=None, detail=detail))


class ActiveChange(NamedTuple):
    """A change of this session that can be undone."""

    letter: str
    host: str
    applied: AppliedChange


class Changes:
    """Changes on the hosts of a session, one at a time, and their events. Each permanent change has a letter."""

    def __init__(
        self,
        profile: Profile,
        remotes: Mapping[str, Remote],
        tuner: Tuner,
        clock: Clock,
        emit: Callable[[AnyEvent], None],
    ) -> None:
        self.knobs = KnobValues(profile.knobs, remotes, tuner, clock, emit)
        # The newest last.
        self.active: list[ActiveChange] = []
        self._remotes = remotes
        self._tuner = tuner
        self._clock = clock
        self._emit = emit
        self._letter_count = 0
        self._trial_count = 0

    async def preview(self, host: str, assignments: Assignments) -> Plan:
        """Plan a change without touching anything. Raises ChangeRefused, HostError."""
        return await self._tuner.prepare(self._remotes[host], host, assignments)

    async def apply(
        self,
        host: str,
        assignments: Assignments,
        approval: Approval | None = None,
        on_active: Callable[[str], None] | None = None,
    ) -> tuple[ChangeReport, AppliedChange]:
        """Make a permanent change with the next letter; `on_active` is called with the letter once it is active."""
        settings = await self.knobs.settings(assignments)
        report = ChangeReport(self._clock, self._emit, self._letter, host, settings, on_active=on_active)
        applied = await self._carry_out(
            report, self._tuner.apply(self._remotes[host], host, assignments, report, approval)
        )
        if applied.change:
            self.active.append(ActiveChange(report.letter, host, applied))
        return report, applied

    async def make_and_undo(self, host: str, assignments: Assignments, longest: float, hold: Hold) -> None:
        """Make a change, undo it when `hold` returns; the host rolls it back by itself after `longest` seconds."""
        settings = await self.knobs.settings(assignments)
        report = ChangeReport(self._clock, self._emit, self._trial_name, host, settings, trial=True)

        async def never_confirm() -> bool:
            await hold()
            return False

        approval = Approval(longest, never_confirm, asked=False)
        try:
            await self._carry_out(report, self._tuner.apply(self._remotes[host], host, assignments, report, approval))
        except ChangeRolledBack:
            if not report.active:
                raise
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # The cancellation was consumed by the undo: raise it again.
            raise asyncio.CancelledError

    async def preview_undo(self, change: ActiveChange) -> Plan:
        """Plan an undo without touching anything. Raises ChangeRefused, HostError."""
        return await self._tuner.prepare_undo(self._remotes[change.host], change.applied)

    async def undo(self, change: ActiveChange) -> AppliedChange:
        applied = await self._undo(change.host, change.applied, change.letter)
        self.active.remove(change)
        return applied

    async def undo_past(self, host: str, past: HistoryEntry) -> AppliedChange:
        kept = await self._tuner.read_record(self._remotes[host], host, past)
        return await self._undo(host, kept, past.name)

    def undoable(self, letter: str) -> ActiveChange:
        """Return an active change by its letter ("": the newest). Raises ChangeRefused, also if a later change must be
        undone first."""
        if not self.active:
            raise ChangeRefused(
                "nothing to undo: no change of this session is active; for earlier changes: cockpit tune … undo"
            )
        known = [change.letter for change in self.active]
        if letter and letter not in known:
            raise ChangeRefused(f"{letter} is not active; changes that can be undone: {', '.join(known)}")
        place = known.index(letter) if letter else len(known) - 1
        change = self.active[place]
        knobs = {setting.knob for setting in change.applied.settings}
        for later in reversed(self.active[place + 1 :]):
            others = {setting.knob for setting in later.applied.settings if later.host == change.host}
            if both := knobs & others:
                raise ChangeRefused(
                    f"change {later.letter} has set {', '.join(sorted(both))} since; undo {later.letter} first"
                )
        return change

    async def _undo(self, host: str, applied: AppliedChange, name: str) -> AppliedChange:
        settings = tuple(Setting(knob=s.knob, old=s.new, new=s.old) for s in applied.settings)
        report = ChangeReport(self._clock, self._emit, self._letter, host, settings, undoes=name)
        return await self._carry_out(report, self._tuner.undo(self._remotes[host], applied, report))

    def _letter(self) -> str:
        self._letter_count += 1
        return letters(self._letter_count - 1)

    def _trial_name(self) -> str:
        self._trial_count += 1
        return f"r{self._trial_count}"

    async def _carry_out(self, report: ChangeReport, change: Awaitable[AppliedChange]) -> AppliedChange:
        try:
            applied = await change
        except ChangeFailed as error:
            report.end("failed", str(error))
            raise
        except CockpitError as error:
            report.end("rolled back", str(error))
            raise
        except asyncio.CancelledError:
            report.end("rolled back", "interrupted")
            raise
        self.knobs.take(applied.settings)
        report.end(applied.outcome, "; ".join(applied.notes))
        return applied


def letters(number: int) -> str:
    """Return the letter of a change by its number: 0 is A, 25 is Z, 26 is AA."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
