"""Changes and actions of a live session: requested by a person or a command, made by the tuner, reported as events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence

from cockpit.analysis.rounds import RoundsPlan, other
from cockpit.hosts.feed import HostFeed
from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.model.events import ActionBegun, ActionEnded, AnyEvent, Note
from cockpit.model.knobs import ServerAction
from cockpit.profiles.profile import Profile
from cockpit.session.changes import Assignments, Changes, Hold
from cockpit.session.controls import Afterwards, Preview, Proven, UndoPreview
from cockpit.session.live_load import LiveLoad, RunExtension
from cockpit.session.loop import Latest
from cockpit.session.rounds import Conclusion, Rounds, Subject
from cockpit.tuning.applied import Applied, Past, PastState
from cockpit.tuning.change_options import Approval
from cockpit.tuning.effect import Probe
from cockpit.tuning.plan import Plan
from cockpit.tuning.reason import useful_line
from cockpit.tuning.remote import Following, Remote, privileged
from cockpit.tuning.tuner import Tuner
from cockpit.tuning.unfinished import described, finish

# Bytes that an observation of a study may print: each is recorded whole.
OBSERVATION_LIMIT = 256 * 1024
# Seconds that its command may take.
_PATIENCE = 30.0


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
    """The Tuning of a live session: one change at a time, each with a letter, and rounds under `load`.

    `probe` asks the target for a good reply before and after a change; None: it is not asked. `spawn` starts background
    work of the session.
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
        probe: Probe | None,
    ) -> None:
        self._actions = {action.name: action for action in profile.actions}
        self._clock = clock
        self._emit = emit
        self._tuner = Tuner(probe, port_on=lambda host: feeds[host].target_port())
        self._inside = {name: privileged(feed.config, Following(feed.shell)) for name, feed in feeds.items()}
        self._remotes: dict[str, Remote] = {
            name: privileged(feed.config, Following(feed.outside)) if feed.config.changes_outside else inside
            for (name, feed), inside in zip(feeds.items(), self._inside.values(), strict=True)
        }
        self._changes = Changes(profile, self._remotes, self._tuner, clock, emit)
        self._knobs = self._changes.knobs
        # Interrupted changes of the hosts that nobody has undone or finished yet.
        self.unfinished: list[tuple[str, Past]] = []
        self._acted = 0
        self._awaited: asyncio.Future[bool] | None = None
        self._changing = asyncio.Lock()
        self._extension = RunExtension(load, clock, latest, spawn)
        self._rounds = Rounds(load, self._extension, clock, emit, latest)

    @property
    def awaited(self) -> bool:
        """Whether a change waits for a person to confirm it."""
        return self._awaited is not None and not self._awaited.done()

    @property
    def running_rounds(self) -> bool:
        return self._rounds.running

    async def run_command(self, host: str, command: str) -> str:
        """Return the output of a command on the host, at most OBSERVATION_LIMIT bytes.

        Raises HostError, or ChangeRefused with the command's own words when it fails.
        """
        done = await self._inside[host].run(command, timeout=_PATIENCE)
        if done.exit_status != 0:
            silent = f"it failed without a message (exit status {done.exit_status})"
            raise ChangeRefused(f"{host}: {useful_line(done.stderr, done.stdout) or silent}")
        if len(done.stdout) > OBSERVATION_LIMIT:
            limit = OBSERVATION_LIMIT // 1024
            raise ChangeRefused(f"{host}: the command printed more than {limit} KiB; have it print less")
        return done.stdout.decode("utf-8", "replace").rstrip("\n")

    async def read(self, names: Collection[str]) -> dict[str, str | None]:
        """Return the values of these knobs that the hosts have now. Raises HostError, ChangeRefused for the first that
        cannot be read."""
        return await self._knobs.read(names)

    async def refresh(self) -> None:
        for host in {knob.host for knob in self._knobs.all}:
            await self.read_host(host)

    async def read_host(self, host: str) -> None:
        """Read every knob of the host, and find its unfinished changes; a knob that cannot be read has the reason in
        its event."""
        if not await self._knobs.read_host(host):
            return
        try:
            await self.find_unfinished(host)
        except CockpitError:
            return  # reading the knobs has shown why

    async def history(self, host: str) -> list[Past]:
        """Return the changes of this user on the host, newest first. Raises HostError, ChangeRefused."""
        return await self._tuner.history(self._remotes[host], host)

    async def find_unfinished(self, host: str) -> None:
        """Look for interrupted changes of the host, and put a new one on the timeline. Raises HostError,
        ChangeRefused."""
        found = [past for past in await self.history(host) if past.state == PastState.HALF_DONE]
        known = {past.change for _, past in self.unfinished}
        fresh = [(host, past) for past in found if past.change not in known]
        self.unfinished = [each for each in self.unfinished if each[0] != host or each[1] in found] + fresh
        for _, past in fresh:
            self._emit(Note(t=self._clock.now(), text=described(host, past)))

    async def undo_unfinished(self, host: str, past: Past) -> None:
        """Have the host roll back an interrupted change, or one that is under way. Raises HostError, ChangeRefused."""
        async with self._turn():
            await self._tuner.give_up(self._remotes[host], host, past)
        await self._settled_unfinished(host, past, "rolled back")

    async def finish_unfinished(self, host: str, past: Past) -> None:
        """Make an interrupted change again. Raises CockpitError."""
        async with self._turn():
            await finish(self._tuner, self._remotes[host], host, past, self._knobs.all)
        await self._settled_unfinished(host, past, "finished")

    async def _settled_unfinished(self, host: str, past: Past, how: str) -> None:
        self._emit(Note(t=self._clock.now(), text=f"{host}: change {past.name} is {how}"))
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
    ) -> tuple[Applied, ...]:
        """See Tuning. `ask` returns whether a person confirms the change; None: `confirm` and `undo` answer."""
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
            raise ChangeRefused("no change waits to be confirmed")
        self._awaited.set_result(True)

    async def undo(self, letter: str = "") -> None:
        if self._awaited is not None and self.awaited:
            self._awaited.set_result(False)
            return
        async with self._turn():
            change = self._changes.undoable(letter)
            self._extension.release()
            await self._changes.undo(change)

    async def undo_past(self, host: str, past: Past) -> Applied:
        """Undo an applied change of the host's history. Raises ChangeUndone, ChangeRefused, HostError."""
        async with self._turn():
            return await self._changes.undo_past(host, past)

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
            prepared = await self._changes.preview(subject.host, away)
            if not prepared.diff:
                raise ChangeRefused("nothing to compare: the host has these values already")
            if prepared.inactive:
                names = ", ".join(knob.name for knob in prepared.inactive)
                raise ChangeRefused(f"{names}: only written, never active: rounds need a reload command in the knob")

            async def change(longest: float, hold: Hold) -> None:
                await self._changes.make_and_undo(subject.host, away, longest, hold)

            found = await self._rounds.run(subject, plan, change)
            try:
                return await self._keep_chosen(subject, found, afterwards)
            except BaseException as error:
                self._rounds.interrupted(subject, error)
                raise

    async def try_out(self, values: Mapping[str, str], longest: float, hold: Hold) -> None:
        """Have these values active during `hold`, then undo them; the hosts do it themselves after `longest` seconds.

        Raises CockpitError if a host or its server refuses them, and what `hold` raises.
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

    async def _subject(self, values: Mapping[str, str]) -> Subject:
        """The comparison of values that are not active yet, or (none given) the last active change. Raises
        ChangeRefused."""
        if not values:
            if not self._changes.active:
                raise ChangeRefused("no change to prove: apply one first; then rounds can compare it")
            letter, host, applied = self._changes.active[-1]
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
                letter = (await self._changes.apply(subject.host, values))[0].letter
            except CockpitError as error:
                chosen, why = subject.active, str(error)
        self._rounds.end(found.outcome, chosen, why)
        return Proven(self._rounds.number, found.outcome, found.verdict, chosen, letter, why)

    def _turn(self) -> asyncio.Lock:
        """One change at a time. Raises ChangeRefused while rounds run: it would only be queued."""
        if self.running_rounds:
            raise ChangeRefused("rounds are running; stop them first")
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

    async def close(self) -> None:
        """Stop rounds, undo a change that waits to be confirmed, and return once no change is under way."""
        self.stop_rounds()
        if self._awaited is not None and self.awaited:
            self._awaited.set_result(False)
        async with self._changing:
            return

    async def _apply(self, host: str, assignments: Assignments, approval: Approval | None) -> Applied:
        """Apply, and let the run in flight go on until the verdict is in."""
        self._extension.prepare()
        try:
            report, applied = await self._changes.apply(host, assignments, approval, self._extension.await_verdict)
        except BaseException:
            self._extension.release()
            raise
        if not report.active:
            self._extension.release()
        return applied

    async def _confirmed(self) -> bool:
        self._awaited = asyncio.get_running_loop().create_future()
        try:
            return await self._awaited
        finally:
            self._awaited = None
