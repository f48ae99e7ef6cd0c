"""A source that plays what a test tells it, and controls that do what a test can see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from cockpit.analysis.rounds import RoundsPlan
from cockpit.cli.load_flags import plan_with
from cockpit.hosts.prompts import Question
from cockpit.model import events as ev
from cockpit.model.errors import ChangeRefused, ChangeUndone, CockpitError, UsageError
from cockpit.model.fold import fold_all
from cockpit.model.knobs import Setting
from cockpit.model.load import LoadPlan
from cockpit.model.state import Change, State
from cockpit.session.controls import (
    Action,
    Afterwards,
    LoadControl,
    Mode,
    Preview,
    Proven,
    SessionStatus,
    Tuning,
    UndoPreview,
)
from cockpit.session.loop import EventBatch, Session
from cockpit.tui.app import CockpitApp


@dataclass
class ScriptedTuning:
    """Answers with events, as the live one does. Cleared, `gate` holds every call back; `refuse` fails the next;
    `notes` is what the server makes of the values, told before and after."""

    source: ScriptedSource
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    refuse: str = ""
    notes: str = ""
    running_rounds: bool = False
    calls: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def refresh(self) -> None:
        self.calls.append(("refresh", {}))

    async def preview(self, values: Mapping[str, str]) -> tuple[Preview, ...]:
        self.calls.append(("preview", dict(values)))
        knobs = self.source.session.state.knobs
        if self.refuse:
            raise ChangeRefused(self.refuse)
        lines = [f"-{name} {knobs[name].value}\n+{name} {value}\n" for name, value in values.items()]
        return (
            Preview(
                "web1",
                f"--- conf\n+++ conf\n@@ -1 +1 @@\n{''.join(lines)}",
                "graceful",
                (self.notes,) if self.notes else (),
            ),
        )

    async def apply(self, values: Mapping[str, str], confirm_within: float | None = None) -> None:
        self.calls.append(("apply", dict(values)))
        knobs = self.source.session.state.knobs
        settings = tuple(Setting(knob=name, old=knobs[name].value, new=new) for name, new in values.items())
        await self._change(settings, confirm_within=confirm_within)

    def confirm(self) -> None:
        self.confirmed.set()

    async def undo(self, letter: str = "") -> None:
        self.calls.append(("undo", {"letter": letter} if letter else {}))
        back = self._undoable(letter)
        settings = tuple(Setting(knob=s.knob, old=s.new, new=s.old) for s in back.settings)
        await self._change(settings, undoes=back.letter)

    async def preview_undo(self, letter: str = "") -> UndoPreview | None:
        if any(change.confirm_by is not None for change in self.source.session.state.changes):
            return None
        back = self._undoable(letter)
        diff = "".join(f"-{one.knob} {one.new}\n+{one.knob} {one.old}\n" for one in back.settings)
        return UndoPreview(back.letter, Preview("web1", diff, "graceful"))

    def _undoable(self, letter: str) -> Change:
        applied = [change for change in self.source.session.state.changes if change.outcome == "applied"]
        if not applied:
            raise ChangeRefused("nothing to undo")
        return next((change for change in applied if change.letter == letter), applied[-1])

    async def act(self, name: str) -> None:
        self.calls.append(("act", {"name": name}))
        self.source.push(ev.ActionBegun(t=self.source.session.state.t, number=1, action=name, host="web1"))
        self.source.push(ev.ActionEnded(t=self.source.session.state.t, number=1, done=1))

    def await_baseline(self, seconds: float) -> None:
        self.calls.append(("await_baseline", {}))

    def release(self) -> None:
        self.calls.append(("release", {}))

    async def prove(
        self, values: Mapping[str, str], plan: RoundsPlan, afterwards: Afterwards = Afterwards.CHOSEN
    ) -> Proven:
        self.calls.append(("prove", {**values, "rounds": str(plan.rounds), "seconds": f"{plan.seconds:g}"}))
        state = self.source.session.state
        setting = Setting(knob="MaxSpareServers", old="10", new="30")
        push, now = self.source.push, state.t
        push(
            ev.RoundsBegun(
                t=now,
                number=1,
                run=state.runs,
                host="web1",
                settings=(setting,),
                first=plan.first,
                seconds=15.0,
                longest=9.0,
            )
        )
        self.running_rounds = True
        self.gate.clear()
        await self.gate.wait()
        self.running_rounds = False
        push(ev.RoundsEnded(t=now, number=1, outcome="stopped", active="before"))
        return Proven(1, "stopped", None, "before")

    def stop_rounds(self) -> None:
        self.gate.set()

    async def _change(
        self, settings: tuple[Setting, ...], undoes: str = "", confirm_within: float | None = None
    ) -> None:
        letter = chr(ord("A") + len(self.source.session.state.changes))
        now = self.source.session.state.t
        push = self.source.push
        push(ev.ChangeBegun(t=now, change=letter, host="web1", settings=settings, undoes=undoes, diff="-1\n+2\n"))
        await self.gate.wait()
        if self.refuse:
            push(ev.ChangeEnded(t=now + 1, change=letter, outcome="rolled back", detail=self.refuse))
            raise ChangeUndone(self.refuse)
        push(ev.ChangeStage(t=now + 0.5, change=letter, stage="active", seconds=confirm_within))
        if confirm_within is not None:
            await self.confirmed.wait()
        push(ev.ChangeEnded(t=now + 1, change=letter, outcome="applied", detail=self.notes))


class ScriptedControls:
    """Every kind of action: with and without a prompt, with and without a place in the footer, one that fails."""

    def __init__(self, source: ScriptedSource) -> None:
        self.mode = Mode.LIVE
        self.status: SessionStatus | None = None
        self.extent: tuple[float, float] | None = None
        self.position: float | None = None
        self.lost: tuple[str, ...] = ()
        self.question: Question | None = None
        self.tuning: Tuning | None = ScriptedTuning(source)
        self.load: LoadControl | None = ScriptedLoad(
            LoadPlan(url="http://web1/hello.html", concurrency=20, duration=30.0)
        )
        self.done: list[tuple[str, str]] = []
        self.actions = (
            Action("toggle", "start/stop", self._doing("toggle")),
            Action("mark", "mark", self._doing("mark"), prompt="What happened?"),
            Action("more", "load", self._doing("more")),
            Action("back", "back 1 s", self._doing("back"), footer=False),
            Action("less", "fail", self._fail, footer=False),
        )

    def end_state(self) -> State | None:
        return None

    def _doing(self, name: str):  # type: ignore[no-untyped-def]
        async def run(answer: str) -> None:
            self.done.append((name, answer))

        return run

    async def _fail(self, answer: str) -> None:
        raise UsageError("no [load] in \x1b[31mthis profile: add one")


# Many tests begin with the same script of hundreds of events, which takes longer to fold than the rest of the test.
_LONG = 100
_FOLDED: dict[tuple[int, ...], tuple[Sequence[ev.AnyEvent], State]] = {}


def state_after(script: Sequence[ev.AnyEvent]) -> State:
    """The state after these events; the same objects are folded once, if they are many."""
    if len(script) <= _LONG:
        return fold_all(script)
    key = tuple(map(id, script))
    if key not in _FOLDED:
        _FOLDED[key] = (tuple(script), fold_all(script))
    return _FOLDED[key][1]


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
class KeptRecorder:
    """A recorder of which one sees what it was given."""

    path: str = "spare-servers.cockpit"
    trouble: str = ""
    gaps: tuple[str, ...] = ()
    events: list[ev.AnyEvent] = field(default_factory=list)
    closed: bool = False

    def record(self, events: Sequence[ev.AnyEvent]) -> None:
        self.events += events

    def settle(self, state: State, pending: Sequence[ev.AnyEvent] = ()) -> None:
        """The state is not kept."""

    def close(self) -> None:
        self.closed = True


@dataclass
class ScriptedLoad:
    """The load of a session; `active` is the plan of its run."""

    plan: LoadPlan
    active: LoadPlan | None = None

    def set_plan(self, plan: LoadPlan) -> None:
        self.plan = plan


def scripted_app(events: Sequence[ev.AnyEvent] = (), autostart: str = "") -> tuple[CockpitApp, ScriptedSource]:
    """The app on a session of those events."""
    source = ScriptedSource(events)
    return CockpitApp(source.session, autostart=autostart, load_parser=plan_with), source
