"""Changes and actions in a live session: requested on the screen, made by the tuner, reported as events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence

from cockpit.analysis.orders import other
from cockpit.analysis.rounds import RoundsPlan
from cockpit.hosts.feed import HostFeed
from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused, ChangeUndone, CockpitError, UsageError
from cockpit.model.events import ActionBegun, ActionEnded, AnyEvent, Note
from cockpit.model.knobs import ServerAction, Setting
from cockpit.profiles.profile import Profile
from cockpit.session.changes import Assignments, ChangeReport, KnobValues, letters
from cockpit.session.controls import Afterwards, Preview, Proven
from cockpit.session.live_load import LiveLoad, RunExtension
from cockpit.session.loop import Latest
from cockpit.session.rounds import Conclusion, Hold, Rounds, Subject
from cockpit.tuning.applied import Applied, ChangeFailed, Past
from cockpit.tuning.change_options import Approval
from cockpit.tuning.probing import probe_of
from cockpit.tuning.reason import useful_line
from cockpit.tuning.remote import Following, Remote, privileged
from cockpit.tuning.tuner import Tuner
from cockpit.tuning.unfinished import described, finish, unfinished

# The end of a change that was made only to be measured.
PLANNED = "undone as planned"
# Bytes that a look of a study may print: each is recorded whole.
LOOK_LIMIT = 256 * 1024


class LiveTuning:
    """The Tuning of a live session: one change at a time, each with a letter, and rounds under `load`.

    `spawn` starts background work of the session.
    """

    def __init__(
        self,
        profile: Profile,
        feeds: Mapping[str, HostFeed],
        clock: Clock,
        emit: Callable[[AnyEvent], None],
        load: LiveLoad,
        latest: Latest,
        spawn: Callable[[Coroutine[None, None, None]], asyncio.Task[None]],
    ) -> None:
        self._actions = {action.name: action for action in profile.actions}
        self._clock = clock
        self._emit = emit
        self._tuner = Tuner(probe_of(profile.plan))
        self._remotes: dict[str, Remote] = {
            name: privileged(feed.config, Following(feed.shell)) for name, feed in feeds.items()
        }
        self._knobs = KnobValues(profile.knobs, self._remotes, self._tuner, clock, emit)
        # Changes that were left half done, with their hosts.
        self.unfinished: list[tuple[str, Past]] = []
        self._made = 0
        self._set_ups = 0
        self._acted = 0
        # Changes that are active, the newest last: letter, host, change.
        self._active: list[tuple[str, str, Applied]] = []
        self._awaited: asyncio.Future[bool] | None = None
        self._changing = asyncio.Lock()
        self._extension = RunExtension(load, clock, latest, spawn)
        self._rounds = Rounds(load, self._extension, clock, emit, latest)

    @property
    def awaited(self) -> bool:
        """Whether a change waits for a person to confirm it."""
        return self._awaited is not None and not self._awaited.done()

    @property
    def proving(self) -> bool:
        return self._rounds.running

    async def run_command(self, host: str, command: str, seconds: float = 30.0) -> str:
        """What a command prints on the host, at most LOOK_LIMIT bytes.

        Raises HostError, or ChangeRefused with the command's own words when it fails.
        """
        done = await self._remotes[host].run(command, timeout=seconds)
        if done.exit_status != 0:
            silent = f"it failed without a word (exit status {done.exit_status})"
            raise ChangeRefused(f"{host}: {useful_line(done.stderr, done.stdout) or silent}")
        if len(done.stdout) > LOOK_LIMIT:
            raise ChangeRefused(f"{host}: the command printed more than {LOOK_LIMIT // 1024} KiB; have it print less")
        return done.stdout.decode("utf-8", "replace").rstrip("\n")

    async def read(self, names: Collection[str]) -> dict[str, str | None]:
        """Return the values of these knobs that the hosts have now. Raises HostError, ChangeRefused for the first that
        cannot be read."""
        return await self._knobs.read(names)

    async def refresh(self) -> None:
        for host in {knob.host for knob in self._knobs.all}:
            await self.read_host(host)

    async def read_host(self, host: str) -> None:
        """Read every knob of the host; one that cannot be read has the reason in its event."""
        if await self._knobs.read_host(host):
            await self._find_unfinished(host)

    async def _find_unfinished(self, host: str) -> None:
        """Look for changes that were left half done; the person is asked, and the timeline notes each."""
        try:
            found = await unfinished(self._tuner, self._remotes[host], host)
        except CockpitError:
            return  # reading the knobs has shown why
        fresh = [(host, past) for past in found if past.change not in {known.change for _, known in self.unfinished}]
        self.unfinished = [each for each in self.unfinished if each[0] != host or each[1] in found] + fresh
        for _, past in fresh:
            self._emit(Note(t=self._clock.now(), text=f"{described(host, past)}; U: undo or finish it"))

    async def settle(self, answer: str) -> None:
        """Undo or finish the first unfinished change. Raises CockpitError."""
        host, past = self.unfinished[0]
        async with self._turn():
            if answer.strip().lower() in ("undo", "u"):
                await self._tuner.give_up(self._remotes[host], host, past)
            elif answer.strip().lower() in ("finish", "f"):
                await finish(self._tuner, self._remotes[host], host, past, self._knobs.all)
            else:
                raise UsageError(f"{past.name}: type undo or finish")
        del self.unfinished[0]
        await self.read_host(host)

    async def preview(self, values: Mapping[str, str]) -> tuple[Preview, ...]:
        plans = [
            await self._tuner.prepare(self._remotes[host], host, assignments)
            for host, assignments in self._knobs.by_host(values).items()
        ]
        return tuple(Preview(plan.host, plan.diff, plan.cost, plan.notes) for plan in plans)

    async def apply(self, values: Mapping[str, str | None], confirm_within: float | None = None) -> None:
        async with self._turn():
            for host, assignments in self._knobs.by_host(values).items():
                await self._apply(host, assignments, confirm_within)

    def confirm(self) -> None:
        if self._awaited is None or not self.awaited:
            raise ChangeRefused("no change waits to be confirmed; ^G before Enter makes the next one wait")
        self._awaited.set_result(True)

    async def undo(self, letter: str = "") -> None:
        if self._awaited is not None and self.awaited:
            self._awaited.set_result(False)
            return
        async with self._turn():
            place = self._to_undo(letter)
            undone, host, applied = self._active[place]
            settings = tuple(Setting(knob=s.knob, old=s.new, new=s.old) for s in applied.settings)
            report = ChangeReport(self._clock, self._emit, self._letter, host, settings, undoes=undone)
            self._extension.release()
            await self._carry_out(report, self._tuner.undo(self._remotes[host], applied, report))
            del self._active[place]

    def _to_undo(self, letter: str) -> int:
        """Return the place of an active change that can be undone. Raises ChangeRefused."""
        if not self._active:
            raise ChangeRefused(
                "nothing to undo: no change of this session is active; earlier ones: cockpit tune … undo"
            )
        known = [each for each, _, _ in self._active]
        if letter and letter not in known:
            raise ChangeRefused(f"{letter} is not active; changes that can be undone: {', '.join(known)}")
        place = known.index(letter) if letter else len(known) - 1
        _, host, applied = self._active[place]
        knobs = {setting.knob for setting in applied.settings}
        for later, where, change in reversed(self._active[place + 1 :]):
            if both := knobs & {setting.knob for setting in change.settings if where == host}:
                raise ChangeRefused(f"{later} changed {', '.join(sorted(both))} since: undo {later} first")
        return place

    def await_baseline(self, seconds: float) -> None:
        self._extension.hold("baseline", seconds)

    def release(self) -> None:
        self._extension.release()

    async def prove(
        self, values: Mapping[str, str], plan: RoundsPlan, afterwards: Afterwards = Afterwards.CHOSEN
    ) -> Proven:
        async with self._turn():
            self._rounds.check()
            subject = await self._subject(values)
            away = self._knobs.by_host(subject.values(other(subject.active)))[subject.host]
            prepared = await self._tuner.prepare(self._remotes[subject.host], subject.host, away)
            if not prepared.diff:
                raise ChangeRefused("nothing to compare: the host has these values already")
            if prepared.inactive:
                names = ", ".join(knob.name for knob in prepared.inactive)
                raise ChangeRefused(f"{names}: only written, never active: rounds need a reload command in the knob")

            async def change(longest: float, hold: Hold) -> None:
                await self._make_and_undo(subject.host, away, longest, hold)

            found = await self._rounds.run(subject, plan, change)
            try:
                return await self._keep_chosen(subject, found, afterwards)
            except BaseException as error:
                self._rounds.interrupted(subject, error)
                raise

    def stop_rounds(self) -> None:
        self._rounds.stop()

    async def _subject(self, values: Mapping[str, str]) -> Subject:
        """Return what rounds compare: values that are not active yet, or (none given) the last active change. Raises
        ChangeRefused."""
        if not values:
            if not self._active:
                raise ChangeRefused("no change to prove: t, type a value, Enter; then rounds can compare it")
            letter, host, applied = self._active[-1]
            return Subject(host, applied.settings, "after", letter)
        by_host = self._knobs.by_host(values)
        if len(by_host) != 1:
            raise ChangeRefused("rounds change one host at a time")
        ((host, assignments),) = by_host.items()
        return Subject(host, await self._knobs.settings(assignments), "before")

    async def _keep_chosen(self, subject: Subject, found: Conclusion, afterwards: Afterwards) -> Proven:
        """Make the chosen side active after the rounds, and report their end."""
        chosen = afterwards.side(subject.active, found.outcome, found.verdict)
        letter, why = "", ""
        if chosen != subject.active:
            try:
                values = self._knobs.by_host(subject.values(chosen))[subject.host]
                letter = (await self._applied(subject.host, values)).letter
            except CockpitError as error:
                chosen, why = subject.active, str(error)
        self._rounds.end(found.outcome, chosen, why)
        return Proven(self._rounds.number, found.outcome, found.verdict, chosen, letter, why)

    def _turn(self) -> asyncio.Lock:
        """One change at a time. Raises ChangeRefused while rounds run: it would only be queued."""
        if self.proving:
            raise ChangeRefused("rounds are running: r stops them")
        return self._changing

    async def act(self, name: str) -> None:
        if name not in self._actions:
            raise ChangeRefused(f"unknown action {name!r}; the profile has: {', '.join(self._actions) or 'none'}")
        await self._do(self._actions[name])

    async def reload(self, names: Sequence[str]) -> None:
        """Run the reload commands of knobs without a change, each once per host. Raises HostError, ChangeRefused."""
        knobs = [self._knobs.knob(name) for name in names]
        for (host, command), name in {(knob.host, knob.reload): knob.name for knob in knobs if knob.reload}.items():
            await self._do(ServerAction(name=f"reload {name}", host=host, command=command))

    async def _do(self, action: ServerAction) -> None:
        async with self._turn():
            self._acted += 1
            number = self._acted
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

    async def settled(self) -> None:
        """Return once no change is under way; one that waits to be confirmed is undone."""
        self.stop_rounds()
        if self._awaited is not None and self.awaited:
            self._awaited.set_result(False)
        async with self._changing:
            return

    def _letter(self) -> str:
        self._made += 1
        return letters(self._made - 1)

    def _set_up_name(self) -> str:
        self._set_ups += 1
        return f"r{self._set_ups}"

    async def _apply(self, host: str, assignments: Assignments, confirm_within: float | None) -> None:
        """Apply, and let the run in flight go on until the verdict is in."""
        approval = None if confirm_within is None else Approval(confirm_within, self._confirmed)
        self._extension.prepare()
        try:
            report = await self._applied(host, assignments, approval, self._extension.await_verdict)
        except BaseException:
            self._extension.release()
            raise
        if not report.active:
            self._extension.release()

    async def _applied(
        self,
        host: str,
        assignments: Assignments,
        approval: Approval | None = None,
        active: Callable[[str], None] | None = None,
    ) -> ChangeReport:
        """Apply under the next letter, to be kept; `active` is called with it once the change is active."""
        settings = await self._knobs.settings(assignments)
        report = ChangeReport(self._clock, self._emit, self._letter, host, settings, on_active=active)
        applied = await self._carry_out(
            report, self._tuner.apply(self._remotes[host], host, assignments, report, approval)
        )
        if applied.change:
            self._active.append((report.letter, host, applied))
        return report

    async def _make_and_undo(self, host: str, assignments: Assignments, longest: float, hold: Hold) -> None:
        """Make a change that is never confirmed: the host undoes it after `longest` seconds if nobody else does."""
        settings = await self._knobs.settings(assignments)
        report = ChangeReport(
            self._clock, self._emit, self._set_up_name, host, settings, rounds=self._rounds.number, planned=PLANNED
        )

        async def given() -> bool:
            await hold()
            return False

        approval = Approval(longest, given, asked=False)
        try:
            await self._carry_out(report, self._tuner.apply(self._remotes[host], host, assignments, report, approval))
        except ChangeUndone:
            if not report.active:
                raise

    async def _confirmed(self) -> bool:
        self._awaited = asyncio.get_running_loop().create_future()
        try:
            return await self._awaited
        finally:
            self._awaited = None

    async def _carry_out(self, report: ChangeReport, change: Awaitable[Applied]) -> Applied:
        try:
            applied = await change
        except ChangeFailed as error:
            report.end("failed", str(error))
            raise
        except CockpitError as error:
            report.end("restored", str(error))
            raise
        except asyncio.CancelledError:
            report.end("restored", "interrupted")
            raise
        self._knobs.take(applied.settings)
        report.end(applied.outcome, "; ".join(applied.notes))
        return applied
