"""Changes in a live session: asked for on the screen, carried out by the tuner, told as events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from cockpit.hosts.feed import HostFeed
from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.model.events import AnyEvent, ChangeBegun, ChangeEnded, KnobRead
from cockpit.model.knobs import Knob, Setting
from cockpit.tuning.applied import Applied, ChangeFailed
from cockpit.tuning.remote import Following
from cockpit.tuning.tuner import Tuner


class LiveTuning:
    """The Tuning of a live session: one change at a time, each with a letter."""

    def __init__(
        self,
        knobs: Sequence[Knob],
        feeds: Mapping[str, HostFeed],
        clock: Clock,
        emit: Callable[[AnyEvent], None],
    ) -> None:
        self._knobs = {knob.name: knob for knob in knobs}
        self._feeds = feeds
        self._clock = clock
        self._emit = emit
        self._tuner = Tuner()
        self._values: dict[str, str | None] = {}
        self._made = 0
        self._in_force: list[tuple[str, str, Applied]] = []
        self._changing = asyncio.Lock()

    async def refresh(self) -> None:
        for host in {knob.host for knob in self._knobs.values()}:
            await self.read_host(host)

    async def read_host(self, host: str) -> None:
        """Reads every knob of the host; one that cannot be read says why in its event."""
        for knob in self._knobs.values():
            if knob.host == host:
                await self._read(knob)

    async def apply(self, values: Mapping[str, str]) -> None:
        async with self._changing:
            for host in dict.fromkeys(self._knob(name).host for name in values):
                chosen = {name: value for name, value in values.items() if self._knob(name).host == host}
                await self._apply(host, chosen)

    async def undo(self) -> None:
        async with self._changing:
            if not self._in_force:
                raise ChangeRefused("nothing to undo: no change of this session is in force")
            undone, host, applied = self._in_force[-1]
            settings = tuple(Setting(knob=s.knob, old=s.new, new=s.old) for s in applied.settings)
            letter = self._begin(host, settings, undoes=undone)
            await self._carry_out(letter, lambda: self._undo(host, applied))
            self._in_force.pop()

    async def settled(self) -> None:
        """Returns once no change is under way."""
        async with self._changing:
            return

    async def _apply(self, host: str, values: Mapping[str, str]) -> None:
        for name in values:
            if name not in self._values:
                await self._read(self._knobs[name])
        settings = tuple(Setting(knob=name, old=self._values.get(name), new=new) for name, new in values.items())
        letter = self._begin(host, settings)
        assignments = [(self._knobs[name], value) for name, value in values.items()]

        async def change() -> Applied:
            return await self._tuner.apply(Following(self._feeds[host].shell), host, assignments)

        applied = await self._carry_out(letter, change)
        self._in_force.append((letter, host, applied))

    async def _undo(self, host: str, applied: Applied) -> Applied:
        return await self._tuner.undo(Following(self._feeds[host].shell), applied)

    def _begin(self, host: str, settings: tuple[Setting, ...], undoes: str = "") -> str:
        letter = letters(self._made)
        self._made += 1
        self._emit(ChangeBegun(t=self._clock.now(), change=letter, host=host, settings=settings, undoes=undoes))
        return letter

    async def _carry_out(self, letter: str, change: Callable[[], Awaitable[Applied]]) -> Applied:
        try:
            applied = await change()
        except ChangeFailed as error:
            self._emit(ChangeEnded(t=self._clock.now(), change=letter, outcome="failed", detail=str(error)))
            raise
        except CockpitError as error:
            self._emit(ChangeEnded(t=self._clock.now(), change=letter, outcome="restored", detail=str(error)))
            raise
        self._values |= {setting.knob: setting.new for setting in applied.settings}
        self._emit(ChangeEnded(t=self._clock.now(), change=letter, outcome="applied", detail="; ".join(applied.notes)))
        return applied

    async def _read(self, knob: Knob) -> None:
        try:
            value = await self._tuner.read(Following(self._feeds[knob.host].shell), knob)
        except CockpitError as error:
            self._emit(KnobRead(t=self._clock.now(), knob=knob.name, host=knob.host, value=None, detail=str(error)))
            return
        self._values[knob.name] = value
        self._emit(KnobRead(t=self._clock.now(), knob=knob.name, host=knob.host, value=value))

    def _knob(self, name: str) -> Knob:
        if name not in self._knobs:
            known = ", ".join(self._knobs) or "none"
            raise ChangeRefused(f"unknown knob {name!r}; the profile has: {known}")
        return self._knobs[name]


def letters(number: int) -> str:
    """0 is A, 25 is Z, 26 is AA."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
