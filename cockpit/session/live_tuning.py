"""Changes and actions of a live session: requested by the user or a command, made by the tuner, reported as events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial

from cockpit.analysis.rounds import WASHOUT, RoundsPlan
from cockpit.hosts.feed import HostFeed
from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.model.events import Note
from cockpit.model.knobs import Knob
from cockpit.profiles.profile import Profile
from cockpit.session.capacity import CapacitySearch
from cockpit.session.confirmation import Confirmation
from cockpit.session.guard import SessionGuard
from cockpit.session.host_changes import HostChanges
from cockpit.session.interrupted import InterruptedChanges
from cockpit.session.knob_reader import KnobReader
from cockpit.session.live_events import LiveEvents
from cockpit.session.live_load import LiveLoad, RunExtension
from cockpit.session.rounds import ComparedSettings, Conclusion, Hold, Rounds
from cockpit.session.server_commands import ServerCommands
from cockpit.session.siblings import check_same_values, sibling_knobs
from cockpit.session.tuning import FinalSide, Preview, RoundsResult
from cockpit.tuning.applied import AppliedChange, HistoryEntry
from cockpit.tuning.change_options import Approval
from cockpit.tuning.effect import TargetCheck
from cockpit.tuning.plan import Plan
from cockpit.tuning.remote import ReconnectingRemote, Remote, privileged
from cockpit.tuning.tuner import Tuner

# Seconds between two readings of all values.
READ_EVERY = 30.0
# Seconds within which the user must keep a change on users' traffic.
KEEP_WITHIN = 600.0
# Seconds for which the limits of users' traffic are checked after the side that rounds chose becomes active.
_CHECKED = 10.0


class LiveTuning:
    """Tuning of a live session: one change at a time, each with a letter, and rounds under `load`. Outcomes are emitted
    as events; errors are also raised.

    `probe` checks the target's response before and after a change; None: no check. `spawn` starts a background task of
    the session.
    """

    def __init__(
        self,
        profile: Profile,
        feeds: Mapping[str, HostFeed],
        events: LiveEvents,
        load: LiveLoad,
        spawn: Callable[[Coroutine[None, None, None]], asyncio.Task[None]],
        probe: TargetCheck | None,
        capacity: CapacitySearch,
    ) -> None:
        self._knobs = {knob.name: knob for knob in profile.knobs}
        self._events = events
        self._tuner = Tuner(probe, port_on=lambda host: feeds[host].target_port())
        inside = {name: privileged(feed.config, ReconnectingRemote(feed.shell)) for name, feed in feeds.items()}
        self._remotes: dict[str, Remote] = {
            name: privileged(feed.config, ReconnectingRemote(feed.outside))
            if feed.config.changes_outside
            else inside[name]
            for name, feed in feeds.items()
        }
        self._reader = KnobReader(profile.knobs, self._remotes, self._tuner, events)
        guard = SessionGuard(profile.guard, bool(profile.plan.traffic), events)
        self._changes = HostChanges(self._knobs, self._remotes, self._tuner, self._reader, events, guard)
        self.interrupted = InterruptedChanges(
            self._tuner, self._remotes, self._knobs, self._turn, self._note, self.read_host, bool(profile.plan.traffic)
        )
        self.commands = ServerCommands(profile, self._tuner, self._remotes, inside, self._turn, events)
        self._confirmation = Confirmation()
        self._changing = asyncio.Lock()
        self._load = load
        self.extension = RunExtension(load, events, spawn)
        self._traffic = bool(profile.plan.traffic)
        self._logged = [log.host for log in profile.plan.traffic]
        self._log_knobs = {name for timing in profile.timings for name in timing.values}
        self._rounds = Rounds(load, self.extension, events, capacity, self._permitted if profile.ask else None)

    @property
    def awaited(self) -> bool:
        """Whether a change waits for the user's confirmation."""
        return self._confirmation.awaited

    @property
    def running_rounds(self) -> bool:
        return self._rounds.running

    async def read(self, names: Collection[str]) -> dict[str, str | None]:
        """Read knobs on their hosts and return the values. Raises HostError, ChangeRefused for the first knob that
        cannot be read."""
        return {name: await self._reader.read(self._changes.knob(name)) for name in names}

    async def refresh(self) -> None:
        """Read the value of every knob again."""
        await asyncio.gather(*map(self.read_host, {knob.host for knob in self._knobs.values()}))

    async def watch_values(self) -> None:
        """Read all values again and again until cancelled, except during changes and rounds: other programs and people
        may change them."""

        async def watch(host: str) -> None:
            while True:
                await asyncio.sleep(READ_EVERY)
                if not self._changing.locked():
                    await self._reader.read_changed(host)

        # A command that hangs on a host delays no other host.
        await asyncio.gather(*map(watch, {knob.host for knob in self._knobs.values()}))

    async def read_host(self, host: str) -> None:
        """Read all knobs of the host and find its interrupted changes; if a knob cannot be read, its event has the
        reason."""
        if not await self._reader.read_host(host):
            return
        try:
            await self.interrupted.find(host)
        except CockpitError:
            return  # the events of the knobs have the reason

    async def history(self, host: str) -> list[HistoryEntry]:
        """Return the changes of this user on the host, newest first. Raises HostError, ChangeRefused."""
        return await self._tuner.history(self._remotes[host], host)

    async def preview(self, values: Mapping[str, str]) -> tuple[Preview, ...]:
        """Return the effects of `apply`, one per host, without a change. Raises ChangeRefused, HostError."""
        plans = [await self._changes.plan(host, own) for host, own in self._changes.by_host(values).items()]
        return tuple(map(Preview.of, plans))

    async def preview_undo(self, letter: str = "") -> Preview | None:
        """Return the effects of `undo`, without a change; None: of the change that waits for confirmation. Raises
        ChangeRefused, HostError."""
        if self._is_waiting(letter):
            return None
        letter = self._changes.active.undoable(letter)
        applied = self._changes.active[letter]
        return Preview.of(await self._tuner.prepare_undo(self._remotes[applied.host], applied), letter)

    async def apply(
        self,
        values: Mapping[str, str | None],
        confirm_within: float | None = None,
        ask: Callable[[], Awaitable[bool]] | None = None,
        *,
        expected: Mapping[str, str | None] | None = None,
        restores: bool = False,
    ) -> tuple[AppliedChange, ...]:
        """Apply values (knob name -> value), one change per host. Raises ChangeRolledBack, ChangeRefused, HostError.

        With `confirm_within` (s; on users' traffic always), a change is rolled back unless it is confirmed within that
        time after it becomes active. `ask` returns whether the user confirms it; None: wait for `confirm` or `undo`.
        `expected`: the change is refused if knobs have other values than these. `restores`: earlier values become
        active again, without limits and also if the target fails.
        """
        confirm_within = confirm_within or (KEEP_WITHIN if self._traffic and not restores else None)
        approval = Approval(confirm_within, ask or self._confirmation.wait) if confirm_within else None
        changes = []
        async with self._turn():
            for host, own in self._changes.by_host(values).items():
                settings = self._reader.settings(own)
                report = self._changes.report_of(host, settings, on_active=self.extension.await_verdict)
                report.expected = expected or {}
                # The active run is extended until the verdict on the change.
                self.extension.prepare()
                try:
                    changes.append(await self._changes.apply(own, report, approval, restores=restores))
                except (CockpitError, asyncio.CancelledError) as error:
                    if changes:
                        stay = f"the new values stay on {', '.join(change.host for change in changes)}"
                        known = (error.problem, error.subject) if isinstance(error, CockpitError) else ("interrupted",)
                        error.args = (f"{known[0]}; {stay}", *known[1:])
                    raise
                finally:
                    if not (report.active and report.letter in self._changes.active):
                        self.extension.release()
        return tuple(changes)

    def confirm(self) -> None:
        """Confirm the change that waits for confirmation. Raises ChangeRefused if there is none."""
        self._confirmation.confirm()

    async def undo(self, letter: str = "") -> None:
        """Undo a change of this session by its letter ("": the newest active change), or the change that waits for
        confirmation. Raises ChangeRefused, also if a later change must be undone first.
        """
        if self._is_waiting(letter):
            self._confirmation.decline()
            return
        async with self._turn():
            letter = self._changes.active.undoable(letter)
            self.extension.release()
            await self._changes.undo(self._changes.active[letter], letter)
            del self._changes.active[letter]

    def _is_waiting(self, letter: str) -> bool:
        """Return whether `undo` declines the change that waits for confirmation. Raises ChangeRefused if it must be
        settled before the change `letter`."""
        waiting = next((change.letter for change in self._events.state.changes if change.confirm_by is not None), "")
        if letter and waiting not in ("", letter):
            raise ChangeRefused(f"change {waiting} waits for confirmation; keep or undo it first")
        return self.awaited and not self.running_rounds and letter in ("", waiting)

    async def undo_past(self, host: str, past: HistoryEntry) -> AppliedChange:
        """Undo an applied change of the host's history. Raises ChangeRolledBack, ChangeRefused, HostError."""
        async with self._turn():
            return await self._changes.undo(await self._tuner.read_record(self._remotes[host], host, past), past.name)

    def await_baseline(self, seconds: float) -> None:
        """Extend the run by at least `seconds`, for the baseline of a change that is about to be applied."""
        self.extension.extend_by("baseline", seconds)

    def release(self) -> None:
        """End the extension: the run ends as planned."""
        self.extension.release()

    async def compare_in_rounds(
        self, values: Mapping[str, str], plan: RoundsPlan, afterwards: FinalSide = FinalSide.CHOSEN, letter: str = ""
    ) -> RoundsResult:
        """Compare the active values with `values` in rounds; without values, the two sides of the active change
        `letter` ("": the newest).

        The current run continues, or a new run starts. If the rounds are interrupted, the values from their start are
        activated again. On users' traffic undecided rounds do not change the values. Raises ChangeRolledBack,
        ChangeRefused, HostError, TargetError.
        """
        if self._traffic and afterwards is FinalSide.CHOSEN:
            afterwards = FinalSide.PROVEN
        if self.awaited:
            raise ChangeRefused("a change waits for confirmation; keep or undo it first")
        async with self._turn():
            with self._rounds.reserved():
                self._rounds.check()
                subject, planned = await self._subject(values, letter)
                return await self._compare(subject, planned, plan, afterwards)

    async def _compare(
        self, subject: ComparedSettings, planned: Plan, plan: RoundsPlan, afterwards: FinalSide
    ) -> RoundsResult:
        if not planned.diff:
            raise ChangeRefused("nothing to compare: these values are already active")
        if any(setting.knob in self._log_knobs for setting in planned.settings):
            raise ChangeRefused("the log's format cannot be measured: requests are counted anew with each change of it")
        if planned.inactive:
            names = ", ".join(knob.name for knob in planned.inactive)
            raise ChangeRefused(f"{names}: only written, never active; rounds need a reload command in the knob")
        if not plan.alone:
            subject = await self._with_sibling(subject)
        plan = plan._replace(washout=WASHOUT if self._traffic else 0.0)
        conclusion = await self._rounds.run(subject, plan, partial(self._changes.temporarily, expected=subject.base))
        # The limits of users' traffic need its counts until the chosen side is active.
        if not self._traffic:
            await self._rounds.release()
        try:
            return await self._activate_chosen(subject, conclusion, afterwards)
        except BaseException as error:
            self._rounds.interrupted(subject, error)
            raise
        finally:
            if self._traffic:
                await self._rounds.release()

    async def apply_temporarily(self, values: Mapping[str, str], longest: float, hold: Hold) -> None:
        """Activate values while `hold` runs, then undo them; the hosts roll back by themselves after `longest` seconds.

        Raises CockpitError if a host or its server refuses the values.
        """
        async with self._turn():
            await self._changes.temporarily(values, longest, hold)

    def stop_rounds(self) -> None:
        """Stop the rounds; the values that were active at their start are activated again."""
        self._rounds.stop()
        if self.running_rounds:
            self._confirmation.decline()

    async def _subject(self, values: Mapping[str, str], letter: str) -> tuple[ComparedSettings, Plan]:
        """Return the settings to compare: `values` that are not active yet, or an active change if `values` is empty;
        and the plan of the side that is not active. Raises ChangeRefused, HostError."""
        if not values:
            if not self._changes.active:
                raise ChangeRefused("no change to prove; apply a change first")
            letter = letter or next(reversed(self._changes.active))
            if letter not in self._changes.active:
                raise ChangeRefused(f"change {letter} is no longer active")
            applied = self._changes.active[letter]
            subject = ComparedSettings(applied.host, applied.settings, "after", letter)
            old = self._changes.by_host(subject.values("before"))[applied.host]
            return subject, await self._changes.plan(applied.host, old)
        by_host = self._changes.by_host(values)
        if len(by_host) != 1:
            raise ChangeRefused("rounds can change only one host; choose knobs of one host")
        ((host, new),) = by_host.items()
        planned = await self._changes.plan(host, new)
        return ComparedSettings(host, planned.settings, "before"), planned

    def siblings(self, names: Collection[str]) -> dict[str, Knob]:
        """Return the knobs of another server, by name, that `compare_in_rounds` compares with those `names`;
        empty: rounds are on one server."""
        return sibling_knobs(names, self._knobs, self._logged)

    async def _with_sibling(self, subject: ComparedSettings) -> ComparedSettings:
        """Return the settings with those of a sibling if there is one. Raises ChangeRefused if it has other values."""
        if not (knobs := self.siblings([setting.knob for setting in subject.settings])):
            return subject
        sibling = next(iter(knobs.values())).host
        values = [(knobs[setting.knob], setting.new) for setting in subject.settings]
        planned = await self._changes.plan(sibling, values)
        check_same_values(subject.host, subject.settings, sibling, planned.settings)
        return subject._replace(sibling=sibling, sibling_settings=planned.settings)

    async def _activate_chosen(
        self, subject: ComparedSettings, conclusion: Conclusion, afterwards: FinalSide
    ) -> RoundsResult:
        chosen = afterwards.side(subject.active, conclusion.outcome, conclusion.verdict)
        letter, why, sibling = "", "", ""
        approval = Approval(_CHECKED + 10.0, _checked, asked=False) if self._traffic else None
        final = {} if afterwards is FinalSide.RESTORED else subject.final(chosen, conclusion.verdict)
        for host, new in final.items():
            values = self._changes.by_host(new)[host]
            report = self._changes.report_of(host, self._reader.settings(values))
            report.expected = subject.base
            try:
                await self._changes.apply(values, report, approval)
            except CockpitError as error:
                chosen, why = chosen if host == subject.sibling else subject.active, str(error)
                break
            letter = letter or report.letter
            sibling = subject.sibling if host == subject.sibling else ""
        self._rounds.end(conclusion.outcome, chosen, why, sibling)
        return RoundsResult(self._rounds.number, conclusion.outcome, conclusion.verdict, chosen, letter, why)

    def _note(self, text: str) -> None:
        self._events.emit(Note(t=self._events.now(), text=text))

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Hold the lock for one change at a time. Raises ChangeRefused while rounds run: a change would wait for their
        end."""
        if self.running_rounds:
            raise ChangeRefused("rounds are running; stop them first")
        self._load.check_lock()
        async with self._changing:
            yield

    def begin_close(self) -> None:
        """Stop rounds, and undo the change that waits for confirmation, or would."""
        self.stop_rounds()
        self.decline_confirmations()

    def decline_confirmations(self) -> None:
        """Decline the change or the switch of rounds that waits for the user, and every later one."""
        self._confirmation.close()

    async def close(self) -> None:
        """Return once no change is in progress, after `begin_close`."""
        async with self._changing:
            return

    async def _permitted(self) -> None:
        """Wait until the user permits the next switch of rounds; stop the rounds if the user refuses it."""
        if not await self._confirmation.wait():
            self._rounds.stop()


async def _checked() -> bool:
    """Wait while the limits of a change are checked, and confirm it."""
    await asyncio.sleep(_CHECKED)
    return True
