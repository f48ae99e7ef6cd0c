"""Changes and actions of a live session: requested by the user or a command, made by the tuner, reported as events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence

from cockpit.analysis.rounds import RoundsPlan, other_side
from cockpit.hosts.feed import HostFeed
from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.model.events import ActionBegun, ActionEnded, AnyEvent, Note
from cockpit.model.knobs import ServerAction
from cockpit.profiles.profile import Profile
from cockpit.session.capacity import CapacitySearch
from cockpit.session.changes import Assignments, Changes, Hold
from cockpit.session.controls import FinalSide, Preview, RoundsResult, UndoPreview
from cockpit.session.live_load import LiveLoad, RunExtension
from cockpit.session.loop import LatestState
from cockpit.session.rounds import ComparedSettings, Conclusion, Rounds
from cockpit.tuning.applied import AppliedChange, HistoryEntry, HistoryState
from cockpit.tuning.change_options import Approval
from cockpit.tuning.effect import TargetCheck
from cockpit.tuning.plan import Plan
from cockpit.tuning.reason import useful_line
from cockpit.tuning.remote import ReconnectingRemote, Remote, privileged
from cockpit.tuning.tuner import Tuner
from cockpit.tuning.unfinished import described, finish

# Maximum output of an observation of a study (bytes): the output is recorded completely.
OBSERVATION_LIMIT = 256 * 1024
# Timeout of its command (s).
_COMMAND_TIMEOUT = 30.0


def _preview(plan: Plan) -> Preview:
    return Preview(
        host=plan.host,
        diff=plan.diff,
        cost=plan.cost,
        notes=plan.notes,
        settings=plan.shown_settings,
        inactive=tuple(knob.name for knob in plan.inactive),
    )


class LiveTuning:
    """Tuning in a live session: one change at a time, each with a letter, and rounds under `load`.

    `probe` checks the target's response before and after a change; None: no check. `spawn` starts a background task of
    the session.
    """

    def __init__(
        self,
        profile: Profile,
        feeds: Mapping[str, HostFeed],
        clock: Clock,
        emit: Callable[[AnyEvent], None],
        load: LiveLoad,
        latest: LatestState,
        spawn: Callable[[Coroutine[None, None, None]], asyncio.Task[None]],
        probe: TargetCheck | None,
        capacity: CapacitySearch,
    ) -> None:
        self._actions = {action.name: action for action in profile.actions}
        self._clock = clock
        self._emit = emit
        self._tuner = Tuner(probe, port_on=lambda host: feeds[host].target_port())
        self._inside = {name: privileged(feed.config, ReconnectingRemote(feed.shell)) for name, feed in feeds.items()}
        self._remotes: dict[str, Remote] = {
            name: privileged(feed.config, ReconnectingRemote(feed.outside)) if feed.config.changes_outside else inside
            for (name, feed), inside in zip(feeds.items(), self._inside.values(), strict=True)
        }
        self._changes = Changes(profile, self._remotes, self._tuner, clock, emit)
        self._knobs = self._changes.knobs
        # Interrupted changes that are neither undone nor finished yet, with their hosts.
        self.unfinished: list[tuple[str, HistoryEntry]] = []
        self._action_count = 0
        self._awaited: asyncio.Future[bool] | None = None
        self._changing = asyncio.Lock()
        self._load = load
        self.extension = RunExtension(load, clock, latest, spawn)
        self._rounds = Rounds(load, self.extension, clock, emit, latest, capacity)

    @property
    def awaited(self) -> bool:
        """Whether a change waits for the user's confirmation."""
        return self._awaited is not None and not self._awaited.done()

    @property
    def running_rounds(self) -> bool:
        return self._rounds.running

    async def run_command(self, host: str, command: str) -> str:
        """Return the output of a command on the host, at most OBSERVATION_LIMIT bytes.

        Raises HostError; ChangeRefused with the command's error message if it fails.
        """
        done = await self._inside[host].run(command, timeout=_COMMAND_TIMEOUT)
        if done.exit_status != 0:
            no_message = f"the command failed without a message (exit status {done.exit_status})"
            raise ChangeRefused(f"{host}: {useful_line(done.stderr, done.stdout) or no_message}")
        if len(done.stdout) > OBSERVATION_LIMIT:
            limit = OBSERVATION_LIMIT // 1024
            raise ChangeRefused(f"{host}: the command printed more than {limit} KiB; limit its output, e.g. with head")
        return done.stdout.decode("utf-8", "replace").rstrip("\n")

    async def read(self, names: Collection[str]) -> dict[str, str | None]:
        """Read knobs on their hosts and return the values. Raises HostError, ChangeRefused for the first knob that
        cannot be read."""
        return await self._knobs.read(names)

    async def refresh(self) -> None:
        for host in {knob.host for knob in self._knobs.all}:
            await self.read_host(host)

    async def read_host(self, host: str) -> None:
        """Read all knobs of the host and find its unfinished changes; if a knob cannot be read, its event has the
        reason."""
        if not await self._knobs.read_host(host):
            return
        try:
            await self.find_unfinished(host)
        except CockpitError:
            return  # the events of the knobs have the reason

    async def history(self, host: str) -> list[HistoryEntry]:
        """Return the changes of this user on the host, newest first. Raises HostError, ChangeRefused."""
        return await self._tuner.history(self._remotes[host], host)

    async def find_unfinished(self, host: str) -> None:
        """Find the interrupted changes of the host; new ones get a note on the timeline. Raises HostError,
        ChangeRefused."""
        found = [past for past in await self.history(host) if past.state == HistoryState.INTERRUPTED]
        known = {past.change for _, past in self.unfinished}
        fresh = [(host, past) for past in found if past.change not in known]
        self.unfinished = [each for each in self.unfinished if each[0] != host or each[1] in found] + fresh
        for _, past in fresh:
            self._emit(Note(t=self._clock.now(), text=described(host, past)))

    async def undo_unfinished(self, host: str, past: HistoryEntry) -> None:
        """Let the host roll back a change that was interrupted or is in progress. Raises HostError, ChangeRefused."""
        async with self._turn():
            await self._tuner.force_undo(self._remotes[host], host, past)
        await self._remove_unfinished(host, past, "rolled back")

    async def finish_unfinished(self, host: str, past: HistoryEntry) -> None:
        """Roll back an interrupted change and apply it again. Raises CockpitError."""
        async with self._turn():
            await finish(self._tuner, self._remotes[host], host, past, self._knobs.all)
        await self._remove_unfinished(host, past, "finished")

    async def _remove_unfinished(self, host: str, past: HistoryEntry, outcome: str) -> None:
        self._emit(Note(t=self._clock.now(), text=f"{host}: change {past.name} is {outcome}"))
        self.unfinished = [each for each in self.unfinished if each != (host, past)]
        await self.read_host(host)

    async def preview(self, values: Mapping[str, str]) -> tuple[Preview, ...]:
        plans = [
            await self._changes.preview(host, assignments) for host, assignments in self._knobs.by_host(values).items()
        ]
        return tuple(map(_preview, plans))

    async def preview_undo(self, letter: str = "") -> UndoPreview | None:
        if self.awaited:
            return None
        change = self._changes.undoable(letter)
        return UndoPreview(change.letter, _preview(await self._changes.preview_undo(change)))

    async def apply(
        self,
        values: Mapping[str, str | None],
        confirm_within: float | None = None,
        ask: Callable[[], Awaitable[bool]] | None = None,
    ) -> tuple[AppliedChange, ...]:
        """See Tuning. `ask` returns whether the user confirms the change; None: wait for `confirm` or `undo`."""
        approval = Approval(confirm_within, ask or self._confirmed) if confirm_within else None
        async with self._turn():
            return tuple(
                [
                    await self._apply(host, assignments, approval)
                    for host, assignments in self._knobs.by_host(values).items()
                ]
            )

    def confirm(self) -> None:
        if self._awaited is None or not self.awaited:
            raise ChangeRefused("no change waits for confirmation")
        self._awaited.set_result(True)

    async def undo(self, letter: str = "") -> None:
        if self._awaited is not None and self.awaited:
            self._awaited.set_result(False)
            return
        async with self._turn():
            change = self._changes.undoable(letter)
            self.extension.release()
            await self._changes.undo(change)

    async def undo_past(self, host: str, past: HistoryEntry) -> AppliedChange:
        """Undo an applied change of the host's history. Raises ChangeRolledBack, ChangeRefused, HostError."""
        async with self._turn():
            return await self._changes.undo_past(host, past)

    def await_baseline(self, seconds: float) -> None:
        self.extension.extend_by("baseline", seconds)

    def release(self) -> None:
        self.extension.release()

    async def prove(
        self, values: Mapping[str, str], plan: RoundsPlan, afterwards: FinalSide = FinalSide.CHOSEN
    ) -> RoundsResult:
        async with self._turn():
            self._rounds.check()
            subject = await self._subject(values)
            other_values = self._knobs.by_host(subject.values(other_side(subject.active)))[subject.host]
            prepared = await self._changes.preview(subject.host, other_values)
            if not prepared.diff:
                raise ChangeRefused("nothing to compare: these values are already active")
            if prepared.inactive:
                names = ", ".join(knob.name for knob in prepared.inactive)
                raise ChangeRefused(f"{names}: only written, never active; rounds need a reload command in the knob")

            async def change(longest: float, hold: Hold) -> None:
                await self._changes.make_and_undo(subject.host, other_values, longest, hold)

            conclusion = await self._rounds.run(subject, plan, change)
            try:
                return await self._activate_chosen(subject, conclusion, afterwards)
            except BaseException as error:
                self._rounds.interrupted(subject, error)
                raise

    async def try_out(self, values: Mapping[str, str], longest: float, hold: Hold) -> None:
        """Activate values while `hold` runs, then undo them; the hosts roll back by themselves after `longest` seconds.

        Raises CockpitError if a host or its server refuses the values, and any exception of `hold`.
        """

        async def within(hosts: list[tuple[str, Assignments]]) -> None:
            if not hosts:
                await hold()
                return
            (host, assignments), *others = hosts

            async def inner() -> None:
                await within(others)

            await self._changes.make_and_undo(host, assignments, longest, inner)

        async with self._turn():
            await within(list(self._knobs.by_host(values).items()))

    def stop_rounds(self) -> None:
        self._rounds.stop()

    async def _subject(self, values: Mapping[str, str]) -> ComparedSettings:
        """Return the settings to compare: `values` that are not active yet, or the last active change if `values` is
        empty. Raises ChangeRefused."""
        if not values:
            if not self._changes.active:
                raise ChangeRefused("no change to prove; apply a change first")
            letter, host, applied = self._changes.active[-1]
            return ComparedSettings(host, applied.settings, "after", letter)
        by_host = self._knobs.by_host(values)
        if len(by_host) != 1:
            raise ChangeRefused("rounds can change only one host; choose knobs of one host")
        ((host, assignments),) = by_host.items()
        return ComparedSettings(host, await self._knobs.settings(assignments), "before")

    async def _activate_chosen(
        self, subject: ComparedSettings, conclusion: Conclusion, afterwards: FinalSide
    ) -> RoundsResult:
        """Activate the chosen side after the rounds, and report their end."""
        chosen = afterwards.side(subject.active, conclusion.outcome, conclusion.verdict)
        letter, why = "", ""
        if chosen != subject.active:
            try:
                values = self._knobs.by_host(subject.values(chosen))[subject.host]
                letter = (await self._changes.apply(subject.host, values))[0].letter
            except CockpitError as error:
                chosen, why = subject.active, str(error)
        self._rounds.end(conclusion.outcome, chosen, why)
        return RoundsResult(self._rounds.number, conclusion.outcome, conclusion.verdict, chosen, letter, why)

    def _turn(self) -> asyncio.Lock:
        """Return the lock for one change at a time. Raises ChangeRefused while rounds run: a change would wait for
        their end."""
        if self.running_rounds:
            raise ChangeRefused("rounds are running; stop them first")
        self._load.check_lock()
        return self._changing

    async def act(self, name: str) -> None:
        if name not in self._actions:
            raise ChangeRefused(f"unknown action {name!r}; the profile has: {', '.join(self._actions) or 'none'}")
        await self._do(self._actions[name])

    async def reload(self, names: Sequence[str]) -> None:
        """Run the reload commands of knobs, each once per host, without a change. Raises HostError, ChangeRefused."""
        knobs = [self._knobs.knob(name) for name in names]
        for (host, command), name in {(knob.host, knob.reload): knob.name for knob in knobs if knob.reload}.items():
            await self._do(ServerAction(name=f"reload {name}", host=host, command=command))

    async def _do(self, action: ServerAction) -> None:
        async with self._turn():
            self._action_count += 1
            number = self._action_count
            begun = self._clock.now()
            self._emit(ActionBegun(t=begun, number=number, action=action.name, host=action.host, times=action.times))
            done, detail = 0, "interrupted"
            try:
                while done < action.times:
                    await self._tuner.act(self._remotes[action.host], action)
                    done += 1
                detail = ""
            except CockpitError as error:
                detail = str(error)
                raise
            finally:
                self._emit(ActionEnded(t=self._clock.now(), number=number, done=done, detail=detail))

    async def close(self) -> None:
        """Stop rounds, undo a change that waits for confirmation, and return once no change is in progress."""
        self.stop_rounds()
        if self._awaited is not None and self.awaited:
            self._awaited.set_result(False)
        async with self._changing:
            return

    async def _apply(self, host: str, assignments: Assignments, approval: Approval | None) -> AppliedChange:
        """Apply a change, and extend the active run until its verdict."""
        self.extension.prepare()
        try:
            report, applied = await self._changes.apply(host, assignments, approval, self.extension.await_verdict)
        except BaseException:
            self.extension.release()
            raise
        if not report.active:
            self.extension.release()
        return applied

    async def _confirmed(self) -> bool:
        self._awaited = asyncio.get_running_loop().create_future()
        try:
            return await self._awaited
        finally:
            self._awaited = None
