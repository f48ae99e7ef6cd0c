"""Knob values and changes as events of a session."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from cockpit.hosts.fault import fault
from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.model.events import AnyEvent, ChangeBegun, ChangeEnded, ChangeStage, KnobRead, Outcome, Stage
from cockpit.model.knobs import Knob, Setting
from cockpit.tuning.change_options import Watch, whoami
from cockpit.tuning.plan import Plan
from cockpit.tuning.remote import Remote
from cockpit.tuning.tuner import Tuner


class ChangeReport(Watch):
    """Reports one change of `host`: its begin once the diff is known, or once it failed before that.

    `letter` is its name from then on, made by `name`; `active` is whether it became active, and then `on_active` is
    called with the letter. `rounds` is the number of the rounds of which it is a set-up, 0: none. `planned` is the
    detail of its end if it is undone after it was active, "": the error's own words.
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
        rounds: int = 0,
        planned: str = "",
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
        self._rounds = rounds
        self._planned = planned
        self._on_active = on_active

    def begun(self, plan: Plan) -> None:
        inactive = tuple(knob.name for knob in plan.inactive)
        self._begin(plan.settings or self._settings, plan.diff, plan.cost, inactive)

    def stage(self, stage: Stage, seconds: float | None = None) -> None:
        self._emit(ChangeStage(t=self._clock.now(), change=self.letter, stage=stage, seconds=seconds))
        if stage == "in force":
            self.active = True
            if self._on_active is not None:
                self._on_active(self.letter)

    def end(self, outcome: Outcome, detail: str) -> None:
        """Report the end, also of a change that failed before it was worked out."""
        if not self.letter:
            self._begin(self._settings, "", "")
        if outcome == "restored" and self.active and self._planned:
            detail = self._planned
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
                rounds=self._rounds,
            )
        )


def letters(number: int) -> str:
    """Return the name of a change by its number: 0 is A, 25 is Z, 26 is AA."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


# Knobs of one host with their new values; None: not set.
Assignments = list[tuple[Knob, str | None]]


class KnobValues:
    """Every value is as it was read last; what cannot be read has its reason in the event."""

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
        """Sort new values by the host that they are for. Raises ChangeRefused for an unknown knob."""
        chosen: dict[str, Assignments] = {}
        for name, value in values.items():
            knob = self.knob(name)
            chosen.setdefault(knob.host, []).append((knob, value))
        return chosen

    async def read(self, names: Collection[str]) -> dict[str, str | None]:
        """Return the values that the hosts have now. Raises HostError, ChangeRefused for the first that cannot be
        read.
        """
        found: dict[str, str | None] = {}
        for knob in map(self.knob, names):
            found[knob.name] = await self._tuner.read(self._remotes[knob.host], knob)
            self._values[knob.name] = found[knob.name]
            self._emit(KnobRead(t=self._clock.now(), knob=knob.name, host=knob.host, value=found[knob.name]))
        return found

    async def read_host(self, host: str) -> bool:
        """Read every knob of the host; return whether it has any."""
        knobs = [knob for knob in self._knobs.values() if knob.host == host]
        for knob in knobs:
            await self._read(knob)
        return bool(knobs)

    async def settings(self, assignments: Assignments) -> tuple[Setting, ...]:
        """Return what will be changed, as far as it is known before the host is asked."""
        for knob, _ in assignments:
            if knob.name not in self._values:
                await self._read(knob)
        return tuple(Setting(knob=knob.name, old=self._values.get(knob.name), new=new) for knob, new in assignments)

    def take(self, settings: Iterable[Setting]) -> None:
        """Keep the new values of a change that was made."""
        self._values |= {setting.knob: setting.new for setting in settings}

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
