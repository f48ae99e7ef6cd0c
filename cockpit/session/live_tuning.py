"""Changes and actions in a live session: asked for on the screen, carried out by the tuner, told as events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from cockpit.hosts.fault import fault
from cockpit.hosts.feed import HostFeed
from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused, ChangeUndone, CockpitError, UsageError
from cockpit.model.events import (
    ActionBegun,
    ActionEnded,
    AnyEvent,
    ChangeBegun,
    ChangeEnded,
    ChangeStage,
    KnobRead,
    Note,
    Outcome,
    Stage,
)
from cockpit.model.knobs import Knob, ServerAction, Setting
from cockpit.profiles.profile import Profile
from cockpit.session.controls import Flipped, Preview
from cockpit.session.flipping import Flips, Hold
from cockpit.session.live_load import LiveLoad
from cockpit.session.unfinished import described, finish, unfinished
from cockpit.tuning.applied import Applied, ChangeFailed, Past
from cockpit.tuning.plan import Plan
from cockpit.tuning.probing import probe_of
from cockpit.tuning.reason import useful_line
from cockpit.tuning.remote import Following, Remote, privileged
from cockpit.tuning.terms import Approval, Watch, whoami
from cockpit.tuning.tuner import Tuner

# What is said of a change that was only made to be measured.
TAKEN_BACK = "taken back as planned"
# Bytes that a look of a study may print: each is recorded whole.
LOOK_LIMIT = 256 * 1024


class LiveTuning:
    """The Tuning of a live session: one change at a time, each with a letter. `load` is what `flip` runs under."""

    def __init__(
        self,
        profile: Profile,
        feeds: Mapping[str, HostFeed],
        clock: Clock,
        emit: Callable[[AnyEvent], None],
        tuner: Tuner | None = None,
        load: LiveLoad | None = None,
    ) -> None:
        self._knobs = {knob.name: knob for knob in profile.knobs}
        self._actions = {action.name: action for action in profile.actions}
        self._clock = clock
        self._emit = emit
        self._tuner = tuner or Tuner(probe_of(profile.plan))
        self._remotes: dict[str, Remote] = {
            name: privileged(feed.config, Following(feed.shell)) for name, feed in feeds.items()
        }
        self._values: dict[str, str | None] = {}
        # Changes that were left half done, with their hosts.
        self.unfinished: list[tuple[str, Past]] = []
        self._made = 0
        self._acted = 0
        self._in_force: list[tuple[str, str, Applied]] = []
        self._awaited: asyncio.Future[bool] | None = None
        self._changing = asyncio.Lock()
        self._flips = None if load is None else Flips(load, clock)

    @property
    def awaited(self) -> bool:
        """Whether a change waits for a person to confirm it."""
        return self._awaited is not None and not self._awaited.done()

    @property
    def flipping(self) -> str:
        return self._flips.words if self._flips else ""

    async def look(self, host: str, command: str, seconds: float = 30.0) -> str:
        """What a command prints on the host, at most LOOK_LIMIT bytes.

        Raises HostError, or ChangeRefused with the command's own words when it fails.
        """
        done = await self._remotes[host].run(command, timeout=seconds)
        if done.exit_status != 0:
            silent = f"it failed without a word (exit status {done.exit_status})"
            raise ChangeRefused(f"{host}: {useful_line(done.stderr, done.stdout) or silent}")
        if len(done.stdout) > LOOK_LIMIT:
            raise ChangeRefused(f"{host}: the look printed more than {LOOK_LIMIT // 1024} KiB; have it print less")
        return done.stdout.decode("utf-8", "replace").rstrip("\n")

    async def read(self, names: Collection[str]) -> dict[str, str | None]:
        """These knobs' values as the hosts have them now. Raises HostError, ChangeRefused for the first that cannot be
        read.
        """
        found: dict[str, str | None] = {}
        for knob in map(self._knob, names):
            found[knob.name] = await self._tuner.read(self._remotes[knob.host], knob)
            self._values[knob.name] = found[knob.name]
            self._emit(KnobRead(t=self._clock.now(), knob=knob.name, host=knob.host, value=found[knob.name]))
        return found

    async def refresh(self) -> None:
        for host in {knob.host for knob in self._knobs.values()}:
            await self.read_host(host)

    async def read_host(self, host: str) -> None:
        """Reads every knob of the host; one that cannot be read says why in its event."""
        for knob in self._knobs.values():
            if knob.host == host:
                await self._read(knob)
        if any(knob.host == host for knob in self._knobs.values()):
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
                await finish(self._tuner, self._remotes[host], host, past, self._knobs.values())
            else:
                raise UsageError(f"{past.name}: type undo or finish")
        del self.unfinished[0]
        await self.read_host(host)

    async def preview(self, values: Mapping[str, str]) -> tuple[Preview, ...]:
        plans = [
            await self._tuner.prepare(self._remotes[host], host, assignments)
            for host, assignments in self._by_host(values).items()
        ]
        return tuple(Preview(plan.host, plan.diff, plan.cost, plan.notes) for plan in plans)

    async def apply(self, values: Mapping[str, str | None], confirm_within: float | None = None) -> None:
        async with self._turn():
            for host, assignments in self._by_host(values).items():
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
            undone, host, applied = self._in_force[place]
            settings = tuple(Setting(knob=s.knob, old=s.new, new=s.old) for s in applied.settings)
            telling = _Telling(self, host, settings, undoes=undone)
            await self._carry_out(telling, lambda: self._tuner.undo(self._remotes[host], applied, telling))
            del self._in_force[place]

    def _to_undo(self, letter: str) -> int:
        """The place of a change in force that can be taken back. Raises ChangeRefused."""
        if not self._in_force:
            raise ChangeRefused(
                "nothing to undo: no change of this session is in force; earlier ones: cockpit tune … undo"
            )
        letters = [each for each, _, _ in self._in_force]
        if letter and letter not in letters:
            raise ChangeRefused(f"{letter} is not in force; what can be taken back: {', '.join(letters)}")
        place = letters.index(letter) if letter else len(letters) - 1
        _, host, applied = self._in_force[place]
        knobs = {setting.knob for setting in applied.settings}
        for later, where, other in reversed(self._in_force[place + 1 :]):
            if both := knobs & {setting.knob for setting in other.settings if where == host}:
                raise ChangeRefused(f"{later} changed {', '.join(sorted(both))} since: take that back first")
        return place

    async def flip(self, values: Mapping[str, str], pairs: int, seconds: float) -> Flipped:
        if self._flips is None:
            raise ChangeRefused("there is no load here to compare under")
        async with self._turn():
            by_host = self._by_host(values)
            if len(by_host) != 1:
                raise ChangeRefused("A-B-A-B changes one host at a time")
            ((host, assignments),) = by_host.items()
            self._flips.check()
            plan = await self._tuner.prepare(self._remotes[host], host, assignments)
            if not plan.diff:
                raise ChangeRefused("nothing to compare: the host has these values already")
            if plan.inactive:
                names = ", ".join(knob.name for knob in plan.inactive)
                raise ChangeRefused(f"{names}: only written, never active: A-B-A-B needs a reload command in the knob")

            async def change(longest: float, hold: Hold) -> None:
                await self._make_and_take_back(host, assignments, longest, hold)

            return await self._flips.run(change, pairs, seconds)

    def stop_flipping(self) -> None:
        if self._flips:
            self._flips.stop()

    def _turn(self) -> asyncio.Lock:
        """One change at a time. Raises ChangeRefused while A-B-A-B goes on: it would only be waited for."""
        if self.flipping:
            raise ChangeRefused("A-B-A-B is under way: stop it first")
        return self._changing

    async def act(self, name: str) -> None:
        if name not in self._actions:
            raise ChangeRefused(f"unknown action {name!r}; the profile has: {', '.join(self._actions) or 'none'}")
        await self._do(self._actions[name])

    async def reload(self, names: Sequence[str]) -> None:
        """Run the reload commands of knobs without a change, each once per host. Raises HostError, ChangeRefused."""
        knobs = [self._knobs[name] for name in names]
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
        """Returns once no change is under way; one that waits to be confirmed is not waited for, but undone."""
        self.stop_flipping()
        if self._awaited is not None and self.awaited:
            self._awaited.set_result(False)
        async with self._changing:
            return

    def begin(self, event: Callable[[float, str], AnyEvent]) -> str:
        """Tells of a change under the next letter, and returns that."""
        letter = letters(self._made)
        self._made += 1
        self._emit(event(self._clock.now(), letter))
        return letter

    def tell_stage(self, letter: str, stage: Stage, seconds: float | None) -> None:
        """Tells how far a change has come."""
        self._emit(ChangeStage(t=self._clock.now(), change=letter, stage=stage, seconds=seconds))

    async def _apply(self, host: str, assignments: list[tuple[Knob, str | None]], confirm_within: float | None) -> None:
        telling = _Telling(self, host, await self._settings(assignments))
        approval = None if confirm_within is None else Approval(confirm_within, self._confirmed)

        async def change() -> Applied:
            return await self._tuner.apply(self._remotes[host], host, assignments, telling, approval)

        applied = await self._carry_out(telling, change)
        if applied.change:
            self._in_force.append((telling.letter, host, applied))

    async def _make_and_take_back(
        self, host: str, assignments: list[tuple[Knob, str | None]], longest: float, hold: Hold
    ) -> None:
        """A change that is never confirmed: the host takes it back after `longest` seconds if nobody else does."""
        telling = _Telling(self, host, await self._settings(assignments))

        async def given() -> bool:
            telling.planned = True
            await hold()
            return False

        async def change() -> Applied:
            return await self._tuner.apply(
                self._remotes[host], host, assignments, telling, Approval(longest, given, asked=False)
            )

        try:
            await self._carry_out(telling, change)
        except ChangeUndone:
            if not telling.planned:
                raise

    async def _settings(self, assignments: list[tuple[Knob, str | None]]) -> tuple[Setting, ...]:
        """What will be changed, as far as it is known before the host is asked."""
        for knob, _ in assignments:
            if knob.name not in self._values:
                await self._read(knob)
        return tuple(Setting(knob=knob.name, old=self._values.get(knob.name), new=new) for knob, new in assignments)

    async def _confirmed(self) -> bool:
        self._awaited = asyncio.get_running_loop().create_future()
        try:
            return await self._awaited
        finally:
            self._awaited = None

    async def _carry_out(self, telling: _Telling, change: Callable[[], Awaitable[Applied]]) -> Applied:
        try:
            applied = await change()
        except ChangeFailed as error:
            self._end(telling, "failed", str(error))
            raise
        except CockpitError as error:
            self._end(telling, "restored", TAKEN_BACK if telling.planned else str(error))
            raise
        except asyncio.CancelledError:
            self._end(telling, "restored", "interrupted")
            raise
        self._values |= {setting.knob: setting.new for setting in applied.settings}
        self._end(telling, applied.outcome, "; ".join(applied.notes))
        return applied

    def _end(self, telling: _Telling, outcome: Outcome, detail: str) -> None:
        telling.begin_anyway()
        self._emit(ChangeEnded(t=self._clock.now(), change=telling.letter, outcome=outcome, detail=detail))

    async def _read(self, knob: Knob) -> None:
        try:
            value = await self._tuner.read(self._remotes[knob.host], knob)
        except CockpitError as error:
            self._unread(knob, str(error))
            return
        except Exception as error:
            self._unread(knob, fault(error))
            return
        self._values[knob.name] = value
        self._emit(KnobRead(t=self._clock.now(), knob=knob.name, host=knob.host, value=value))

    def _unread(self, knob: Knob, detail: str) -> None:
        self._emit(KnobRead(t=self._clock.now(), knob=knob.name, host=knob.host, value=None, detail=detail))

    def _by_host(self, values: Mapping[str, str | None]) -> dict[str, list[tuple[Knob, str | None]]]:
        chosen: dict[str, list[tuple[Knob, str | None]]] = {}
        for name, value in values.items():
            knob = self._knob(name)
            chosen.setdefault(knob.host, []).append((knob, value))
        return chosen

    def _knob(self, name: str) -> Knob:
        if name not in self._knobs:
            known = ", ".join(self._knobs) or "none"
            raise ChangeRefused(f"unknown knob {name!r}; the profile has: {known}")
        return self._knobs[name]


class _Telling(Watch):
    """Tells of one change: that it is begun once its diff is known, or once it has failed before that. `planned`: it
    came into force and is to be taken back."""

    def __init__(self, tuning: LiveTuning, host: str, settings: tuple[Setting, ...], undoes: str = "") -> None:
        self.letter = ""
        self.planned = False
        self._tuning = tuning
        self._host = host
        self._settings = settings
        self._undoes = undoes

    def begun(self, plan: Plan) -> None:
        inactive = tuple(knob.name for knob in plan.inactive)
        self._begin(plan.settings or self._settings, plan.diff, plan.cost, inactive)

    def stage(self, stage: Stage, seconds: float | None = None) -> None:
        self._tuning.tell_stage(self.letter, stage, seconds)

    def begin_anyway(self) -> None:
        """For a change that failed before it was worked out."""
        if not self.letter:
            self._begin(self._settings, "", "")

    def _begin(self, settings: tuple[Setting, ...], diff: str, cost: str, inactive: tuple[str, ...] = ()) -> None:
        def event(t: float, letter: str) -> ChangeBegun:
            return ChangeBegun(
                t=t,
                change=letter,
                host=self._host,
                settings=settings,
                undoes=self._undoes,
                diff=diff,
                cost=cost,
                who=whoami(),
                inactive=inactive,
            )

        self.letter = self._tuning.begin(event)


def letters(number: int) -> str:
    """0 is A, 25 is Z, 26 is AA."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
