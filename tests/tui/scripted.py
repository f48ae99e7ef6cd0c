"""A session source that plays scripted events, and controls that record their calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from cockpit.analysis.rounds import RoundsPlan
from cockpit.cli.typed_load import plan_with
from cockpit.hosts.ssh.prompts import Question
from cockpit.model import events as ev
from cockpit.model.errors import ChangeRefused, ChangeRolledBack, CockpitError, UsageError
from cockpit.model.fold.fold import fold_all
from cockpit.model.knobs import Knob, Setting
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import Change, State
from cockpit.session.controls import (
    Action,
    Controls,
    Mode,
    SessionStatus,
    immediate,
)
from cockpit.session.loop import EventBatch, Session
from cockpit.session.tuning import FinalSide, Preview, RoundsResult
from cockpit.tui.app import CockpitApp


@dataclass
class ScriptedTuning:
    """Tuning that responds with events, like live tuning.

    A cleared `gate` blocks changes, a cleared `reading` blocks `refresh`; `refuse` is the error of the calls; `notes`
    is the server's comment on the values, in previews and outcomes; `expected` are the old values given with a change.
    """

    source: ScriptedSource
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    reading: asyncio.Event = field(default_factory=asyncio.Event)
    refuse: str = ""
    notes: str = ""
    running_rounds: bool = False
    sibling: dict[str, Knob] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False
    expected: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.gate.set()
        self.reading.set()

    def siblings(self, names: Collection[str]) -> dict[str, Knob]:
        return self.sibling

    async def refresh(self) -> None:
        self.calls.append(("refresh", {}))
        await self.reading.wait()

    async def preview(self, values: Mapping[str, str]) -> tuple[Preview, ...]:
        self.calls.append(("preview", dict(values)))
        if self.refuse:
            raise ChangeRefused(self.refuse)
        knobs = self.source.session.state.knobs
        lines = [f"-{name} {knobs[name].value}\n+{name} {value}\n" for name, value in values.items()]
        diff = f"--- conf\n+++ conf\n@@ -1 +1 @@\n{''.join(lines)}"
        settings = tuple(Setting(knob=name, old=knobs[name].value, new=value) for name, value in values.items())
        return (Preview("web1", diff, "graceful", (self.notes,) if self.notes else (), settings),)

    async def apply(
        self,
        values: Mapping[str, str],
        confirm_within: float | None = None,
        *,
        expected: Mapping[str, str | None] = MappingProxyType({}),
    ) -> None:
        self.calls.append(("apply", dict(values)))
        self.expected = dict(expected)
        knobs = self.source.session.state.knobs
        settings = tuple(Setting(knob=name, old=knobs[name].value, new=new) for name, new in values.items())
        await self._change(settings, confirm_within=confirm_within)

    def confirm(self) -> None:
        self.confirmed.set()

    def decline_confirmations(self) -> None:
        self.closed = True

    async def undo(self, letter: str = "") -> None:
        self.calls.append(("undo", {"letter": letter} if letter else {}))
        change = self._undoable(letter)
        settings = tuple(Setting(knob=s.knob, old=s.new, new=s.old) for s in change.settings)
        await self._change(settings, undoes=change.letter)

    async def preview_undo(self, letter: str = "") -> Preview | None:
        if any(change.confirm_by is not None for change in self.source.session.state.changes):
            return None
        change = self._undoable(letter)
        diff = "".join(f"-{setting.knob} {setting.new}\n+{setting.knob} {setting.old}\n" for setting in change.settings)
        return Preview("web1", diff, "graceful", letter=change.letter)

    def _undoable(self, letter: str) -> Change:
        applied = [change for change in self.source.session.state.changes if change.outcome == "applied"]
        if not applied:
            raise ChangeRefused("nothing to undo")
        return next((change for change in applied if change.letter == letter), applied[-1])

    @property
    def commands(self) -> ScriptedTuning:
        return self

    async def act(self, name: str) -> None:
        self.calls.append(("act", {"name": name}))
        now = self.source.session.state.t
        self.source.push(ev.ActionBegun(t=now, number=1, action=name, host="web1"))
        self.source.push(ev.ActionEnded(t=now, number=1, done=1))

    def await_baseline(self, seconds: float) -> None:
        self.calls.append(("await_baseline", {}))

    def release(self) -> None:
        self.calls.append(("release", {}))

    async def compare_in_rounds(
        self, values: Mapping[str, str], plan: RoundsPlan, afterwards: FinalSide = FinalSide.CHOSEN, letter: str = ""
    ) -> RoundsResult:
        of = values or {"letter": letter}
        self.calls.append(("compare_in_rounds", {**of, "rounds": str(plan.rounds), "seconds": f"{plan.seconds:g}"}))
        state, push = self.source.session.state, self.source.push
        settings = (Setting(knob="MaxSpareServers", old="10", new="30"),)
        rounds = {"first": plan.first_sides, "seconds": 15.0, "longest": 9.0}
        push(ev.RoundsBegun(t=state.t, number=1, run=state.runs, host="web1", settings=settings, **rounds))
        self.running_rounds = True
        self.gate.clear()
        await self.gate.wait()
        self.running_rounds = False
        push(ev.RoundsEnded(t=state.t, number=1, outcome="stopped", active="before"))
        return RoundsResult(1, "stopped", None, "before")

    def stop_rounds(self) -> None:
        self.gate.set()

    async def _change(
        self, settings: tuple[Setting, ...], undoes: str = "", confirm_within: float | None = None
    ) -> None:
        state, push = self.source.session.state, self.source.push
        letter, now = chr(ord("A") + len(state.changes)), state.t
        push(ev.ChangeBegun(t=now, change=letter, host="web1", settings=settings, undoes=undoes, diff="-1\n+2\n"))
        await self.gate.wait()
        if self.refuse:
            push(ev.ChangeEnded(t=now + 1, change=letter, outcome="rolled back", detail=self.refuse))
            raise ChangeRolledBack(self.refuse)
        push(ev.ChangeStage(t=now + 0.5, change=letter, stage="active", seconds=confirm_within))
        if confirm_within is not None:
            await self.confirmed.wait()
        push(ev.ChangeEnded(t=now + 1, change=letter, outcome="applied", detail=self.notes))


class ScriptedControls(Controls):
    """Controls with each kind of action: with and without a prompt, with and without a footer entry, and failing."""

    mode = Mode.LIVE
    actions: tuple[Action, ...] = ()
    status: SessionStatus | None = None
    extent: tuple[float, float] | None = None
    position: float | None = None
    question: Question | None = None
    tuning: ScriptedTuning | None = None
    load: ScriptedLoad | None = None

    def __init__(self, source: ScriptedSource) -> None:
        self.tuning = ScriptedTuning(source)
        self.load = ScriptedLoad(LoadPlan(url="http://web1/hello.html", concurrency=20, duration=30.0))
        self.done: list[tuple[str, str]] = []
        self.actions = (
            Action("toggle", "start/stop", self._record("toggle")),
            Action("mark", "mark", self._record("mark"), prompt="What happened?"),
            Action("more", "load", self._record("more")),
            Action("back", "back 1 s", self._record("back"), footer=False),
            Action("less", "fail", self._fail, footer=False),
        )

    def _record(self, name: str) -> Callable[[str], Awaitable[None]]:
        return immediate(lambda answer: self.done.append((name, answer)))

    async def _fail(self, answer: str) -> None:
        raise UsageError("no [load] in \x1b[31mthis profile: add one")


# Many tests start with the same script of hundreds of events; folding takes longer than the rest of the test.
_LONG = 100
_FOLDED: dict[tuple[int, ...], tuple[Sequence[ev.AnyEvent], State]] = {}


def state_after(script: Sequence[ev.AnyEvent]) -> State:
    """Return the state after these events; a long script of the same objects is folded only once."""
    if len(script) <= _LONG:
        return fold_all(script)
    key = tuple(map(id, script))
    if key not in _FOLDED:
        _FOLDED[key] = (tuple(script), fold_all(script))
    return _FOLDED[key][1]


class ScriptedSource:
    """Source of the scripted events and of pushed events, until it is closed; `fail` makes it raise an error."""

    def __init__(self, events: Sequence[ev.AnyEvent] = ()) -> None:
        self.controls = ScriptedControls(self)
        self.recorder = MemoryRecorder()
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

    async def batches(self) -> AsyncIterator[EventBatch]:
        while not self.closed:
            if self.error:
                raise self.error
            if self._waiting:
                events, self._waiting = self._waiting, []
                if self.session.revision == 0 and len(events) > _LONG:
                    *script, last = events
                    self.recorder.record(script)
                    yield EventBatch([last], base=state_after(script))
                else:
                    yield EventBatch(events)
            self._woken.clear()
            await self._woken.wait()

    async def close(self) -> None:
        self.closed = True
        self._woken.set()


@dataclass
class MemoryRecorder:
    """Recorder that keeps its events in memory."""

    path: str = "spare-servers.cockpit"
    trouble: str = ""
    gaps: tuple[str, ...] = ()
    events: list[ev.AnyEvent] = field(default_factory=list)
    closed: bool = False

    def record(self, events: Sequence[ev.AnyEvent]) -> None:
        self.events += events

    def settle(self, state: State, pending: Sequence[ev.AnyEvent] = ()) -> None:
        """Ignore the state."""

    def close(self) -> None:
        self.closed = True


@dataclass
class ScriptedLoad:
    """Load control of a session; `active` is the plan of the current run."""

    plan: LoadPlan
    active: LoadPlan | None = None

    def set_plan(self, plan: LoadPlan) -> None:
        self.plan = plan


def scripted_app(events: Sequence[ev.AnyEvent] = (), autostart: str = "") -> tuple[CockpitApp, ScriptedSource]:
    """Return the app on a session of `events`, and the source of the session."""
    source = ScriptedSource(events)
    return CockpitApp(source.session, autostart=autostart, load_parser=plan_with), source
