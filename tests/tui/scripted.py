"""A source that plays what a test tells it, and controls that do what a test can see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from cockpit.model import events as ev
from cockpit.model.errors import ChangeRefused, ChangeUndone, CockpitError, UsageError
from cockpit.model.knobs import Setting
from cockpit.session.asking import Question
from cockpit.session.controls import Action, Tuning
from cockpit.session.loop import Batch, Session
from cockpit.tui.app import CockpitApp


@dataclass
class ScriptedTuning:
    """Answers with events, as the live one does. Cleared, `gate` holds every call back; `refuse` fails the next."""

    source: ScriptedSource
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    refuse: str = ""
    calls: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gate.set()

    async def refresh(self) -> None:
        self.calls.append(("refresh", {}))

    async def apply(self, values: Mapping[str, str]) -> None:
        self.calls.append(("apply", dict(values)))
        knobs = self.source.session.state.knobs
        settings = tuple(Setting(knob=name, old=knobs[name].value, new=new) for name, new in values.items())
        await self._change(settings)

    async def undo(self) -> None:
        self.calls.append(("undo", {}))
        applied = [change for change in self.source.session.state.changes if change.outcome == "applied"]
        if not applied:
            raise ChangeRefused("nothing to undo")
        await self._change(tuple(Setting(knob=s.knob, old=s.new, new=s.old) for s in applied[-1].settings))

    async def _change(self, settings: tuple[Setting, ...]) -> None:
        letter = chr(ord("A") + len(self.source.session.state.changes))
        now = self.source.session.state.t
        self.source.push(ev.ChangeBegun(t=now, change=letter, host="web1", settings=settings))
        await self.gate.wait()
        if self.refuse:
            self.source.push(ev.ChangeEnded(t=now + 1, change=letter, outcome="restored", detail=self.refuse))
            raise ChangeUndone(self.refuse)
        self.source.push(ev.ChangeEnded(t=now + 1, change=letter, outcome="applied"))


class ScriptedControls:
    """Every kind of action: with and without a prompt, with and without a place in the footer, one that fails."""

    def __init__(self, source: ScriptedSource) -> None:
        self.mode = "LIVE"
        self.condition = ""
        self.extent: tuple[float, float] | None = None
        self.position: float | None = None
        self.question: Question | None = None
        self.tuning: Tuning | None = ScriptedTuning(source)
        self.done: list[tuple[str, str]] = []
        self.actions = (
            Action("toggle", ("space",), "start/stop", self._doing("toggle")),
            Action("mark", ("m",), "mark", self._doing("mark"), prompt="What happened?"),
            Action("more", ("plus", "equals_sign"), "load", self._doing("more")),
            Action("back", ("left",), "back 1 s", self._doing("back"), footer=False),
            Action("fail", ("x",), "fail", self._fail, footer=False),
        )

    def _doing(self, name: str):  # type: ignore[no-untyped-def]
        async def run(answer: str) -> None:
            self.done.append((name, answer))

        return run

    async def _fail(self, answer: str) -> None:
        raise UsageError("no [load] in \x1b[31mthis profile: add one")


class ScriptedSource:
    """Gives the events of the script, then whatever is pushed, until it is closed. `error` ends it badly."""

    def __init__(self, events: Sequence[ev.AnyEvent] = ()) -> None:
        self.controls = ScriptedControls(self)
        self.recorder = KeptRecorder()
        self.session = Session(self, self.recorder)
        self.closed = False
        self.error: CockpitError | None = None
        self._waiting = list(events)
        self._woken = asyncio.Event()

    def push(self, *events: ev.AnyEvent) -> None:
        self._waiting += events
        self._woken.set()

    def fail(self, error: CockpitError) -> None:
        self.error = error
        self._woken.set()

    async def batches(self) -> AsyncIterator[Batch]:
        while not self.closed:
            if self.error:
                raise self.error
            if self._waiting:
                events, self._waiting = self._waiting, []
                yield Batch(events)
            self._woken.clear()
            await self._woken.wait()

    async def close(self) -> None:
        self.closed = True
        self._woken.set()


@dataclass
class KeptRecorder:
    """A recorder of which one sees what it was given."""

    path: str = "spare-servers.cockpit"
    trouble: str = ""
    events: list[ev.AnyEvent] = field(default_factory=list)
    closed: bool = False

    def record(self, events: Sequence[ev.AnyEvent]) -> None:
        self.events += events

    def close(self) -> None:
        self.closed = True


def scripted_app(events: Sequence[ev.AnyEvent] = (), autostart: str = "") -> tuple[CockpitApp, ScriptedSource]:
    """The app on a session of those events."""
    source = ScriptedSource(events)
    return CockpitApp(source.session, autostart=autostart), source
