"""The tuning panel: every knob with its value in force, new values to type, and what became of earlier changes."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from types import MappingProxyType
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import DescendantFocus
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from cockpit.model.errors import CockpitError
from cockpit.model.state import Change, KnobState, State
from cockpit.model.text import clock, neutral
from cockpit.session.loop import Session
from cockpit.tui.cells import fit

_REFRESH = 0.5
_NOTHING: Mapping[str, str] = MappingProxyType({})
_KEYS = (
    "[@click=screen.apply]Enter apply[/]   [@click=screen.undo]^Z undo last[/]   "
    "[@click=screen.reread]^R read again[/]   [@click=screen.dismiss(None)]Esc close[/]"
)
_READ_ONLY = "values can only be looked at here   [@click=screen.dismiss(None)]Esc close[/]"


class Value(Static, can_focus=True):
    """A knob's line where nothing can be typed, so that the arrows still reach its details."""


class KnobRow(Horizontal):
    """Name, value in force and, where it can be changed, a field for a new one."""

    def __init__(self, state: KnobState, editable: bool) -> None:
        super().__init__()
        self.knob = state.knob
        self.editable = editable
        self.known = state

    def compose(self) -> ComposeResult:
        yield Static(Content(neutral(self.knob.name)), classes="name")
        if not self.editable:
            yield Value(_in_force(self.known), classes="value")
            return
        yield Static(_in_force(self.known), classes="value")
        suggester = SuggestFromList(self.knob.choices) if self.knob.choices else None
        field = Input(compact=True, suggester=suggester)
        # A blinking cursor is traffic on a line that may have little to spare.
        field.cursor_blink = False
        yield field

    def update(self, state: KnobState) -> None:
        """Shows the value as it is now."""
        if state is not self.known:
            self.known = state
            self.query_one(".value", Static).update(_in_force(state))

    def typed(self) -> str:
        """The new value that was typed; empty where there is none or it is in force already."""
        value = self.query_one(Input).value.strip() if self.editable else ""
        return "" if self.known.known and value == self.known.value else value

    def clear(self) -> None:
        """Forgets what was typed."""
        self.query_one(Input).value = ""


class TuningScreen(ModalScreen[None]):
    """Shows what the session's state says; types go to `session.controls.tuning` as one change."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close"),
        Binding("up", "move(-1)", "knob above", priority=True),
        Binding("down", "move(1)", "knob below", priority=True),
        Binding("ctrl+s", "apply", "apply"),
        Binding("ctrl+z", "undo", "undo"),
        Binding("ctrl+r", "reread", "read again"),
    ]
    DEFAULT_CSS = """
    TuningScreen { align: center middle; background: transparent; }
    TuningScreen > Vertical {
        width: 90; max-width: 100%; height: auto; max-height: 100%;
        padding: 0 1; border: solid $cockpit-chart; border-title-color: $cockpit-strong; background: $surface;
    }
    TuningScreen .quiet { color: $cockpit-dim; }
    TuningScreen #knobs { height: auto; max-height: 14; }
    TuningScreen KnobRow { height: 1; }
    TuningScreen .name { width: 2fr; height: 1; text-overflow: ellipsis; text-wrap: nowrap; }
    TuningScreen .value { width: 1fr; height: 1; text-overflow: ellipsis; text-wrap: nowrap; padding: 0 1; }
    TuningScreen Value:focus { text-style: reverse; }
    TuningScreen Input, TuningScreen .entry { width: 1fr; }
    TuningScreen Input { background: $panel; }
    TuningScreen Input:focus { background: $cockpit-rule; }
    TuningScreen #details {
        height: 5; margin: 1 0 0 0; color: $cockpit-dim;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    TuningScreen #plan { height: auto; }
    TuningScreen #status { height: auto; min-height: 1; text-style: bold; }
    TuningScreen #status.-bad { color: $cockpit-alarm; }
    TuningScreen #heading { margin: 1 0 0 0; height: 1; }
    TuningScreen #history { height: auto; max-height: 6; }
    TuningScreen #history Static { height: auto; }
    TuningScreen #keys { height: auto; margin: 1 0 0 0; color: $cockpit-dim;
        link-color: $cockpit-text; link-style: none; }
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self._busy = ""
        self._seen = -1

    def compose(self) -> ComposeResult:
        editable = self.session.controls.tuning is not None
        knobs = self.session.state.knobs.values()
        with Vertical() as panel:
            panel.border_title = "tuning"
            with Horizontal(classes="quiet") as head:
                head.styles.height = 1
                yield Static("knob", classes="name")
                yield Static("in force", classes="value")
                if editable:
                    yield Static("new value", classes="entry")
            with VerticalScroll(id="knobs", can_focus=False):
                for knob in knobs:
                    yield KnobRow(knob, editable)
                if not knobs:
                    yield Static(
                        Content("This profile names no knobs. A [[knob]] block in it adds one."), classes="quiet"
                    )
            yield Static(id="details")
            yield Static(id="plan")
            yield Static(id="status")
            yield Static("changes, the newest first and in full", id="heading", classes="quiet")
            with VerticalScroll(id="history", can_focus=False):
                yield Static(id="changes")
            yield Static(_KEYS if editable else _READ_ONLY, id="keys")

    def on_mount(self) -> None:
        self.set_interval(_REFRESH, self._poll)
        self.action_reread()

    def on_resize(self) -> None:
        self.call_after_refresh(self._tell_changes)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        row = event.widget.parent
        if isinstance(row, KnobRow):
            self.query_one("#details", Static).update(Content(_details(row.known)))

    def on_input_changed(self, event: Input.Changed) -> None:
        self._tell_plan()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.action_apply()

    def action_move(self, step: int) -> None:
        """Up and down between the knobs, round the ends."""
        places = [row.query_one(Input if row.editable else Value) for row in self.query(KnobRow)]
        if places:
            at = places.index(self.focused) if self.focused in places else -step
            # At once, where focus() would wait its turn: what is typed right after belongs to the next field.
            self.set_focus(places[(at + step) % len(places)])

    def action_apply(self) -> None:
        """All typed values as one change."""
        tuning = self.session.controls.tuning
        values = self._typed()
        if tuning is None or self._waits():
            return
        if not values:
            self._tell("type a new value for one or several knobs first")
            return
        done = f"in force: {_plan(self.session.state, values)}"
        self._start("applying …", tuning.apply(values), done, values)

    def action_undo(self) -> None:
        """Takes back the last change."""
        tuning = self.session.controls.tuning
        if tuning is not None and not self._waits():
            self._start("taking the last change back …", tuning.undo(), "taken back")

    def action_reread(self) -> None:
        """Reads every value anew."""
        tuning = self.session.controls.tuning
        if tuning is not None and not self._waits():
            self._start("reading the values …", tuning.refresh(), "")

    def _waits(self) -> bool:
        if self._busy:
            self._tell(f"{self._busy} (one thing at a time)")
        return bool(self._busy)

    def _start(self, words: str, work: Awaitable[None], done: str, values: Mapping[str, str] = _NOTHING) -> None:
        """Runs as work of the app, not of this panel: closing the panel must not break off a change half made."""
        self._busy = words
        self._tell(words)
        self.app.run_worker(self._carry_out(work, done, values))

    async def _carry_out(self, work: Awaitable[None], done: str, values: Mapping[str, str]) -> None:
        try:
            await work
        except CockpitError as error:
            self._report(str(error), bad=True)
        else:
            self._forget(values)
            self._report(done, bad=False)
        finally:
            self._busy = ""

    def _report(self, words: str, bad: bool) -> None:
        if self.is_attached:
            self._tell(words, bad)
        elif words:
            self.app.notify(neutral(words), severity="error" if bad else "information", markup=False)

    def _forget(self, values: Mapping[str, str]) -> None:
        """Empties the fields whose value came into force, unless another was typed meanwhile."""
        for row in self.query(KnobRow) if self.is_attached else ():
            if row.knob.name in values and row.typed() in ("", values[row.knob.name]):
                row.clear()

    def _poll(self) -> None:
        if not self.is_attached or self.session.revision == self._seen:
            return
        self._seen = self.session.revision
        state = self.session.state
        for row in self.query(KnobRow):
            row.update(state.knobs.get(row.knob.name, row.known))
        self._tell_plan()
        self._tell_changes()

    def _typed(self) -> dict[str, str]:
        return {row.knob.name: row.typed() for row in self.query(KnobRow) if row.typed()}

    def _tell_plan(self) -> None:
        values = self._typed()
        words = f"will change  {_plan(self.session.state, values)}" if values else ""
        self.query_one("#plan", Static).update(Content(words))

    def _tell(self, words: str, bad: bool = False) -> None:
        status = self.query_one("#status", Static)
        status.set_class(bad, "-bad")
        status.update(Content(f"not applied: {neutral(words)}" if bad else neutral(words)))

    def _tell_changes(self) -> None:
        state = self.session.state
        changes = self.query_one("#changes", Static)
        newest, *older = [_history(change, state.t) for change in reversed(state.changes)] or ["none yet"]
        room = max(20, changes.size.width)
        changes.update(Content("\n".join([newest, *(fit(line, room).rstrip() for line in older)])))


def _in_force(state: KnobState) -> Content:
    if not state.known:
        return Content("could not be read" if state.detail else "not read yet")
    return Content("unset" if state.value is None else neutral(state.value))


def _details(state: KnobState) -> str:
    knob = state.knob
    section = f" in <{neutral(knob.section)}>" if knob.section else ""
    allowed = neutral(knob.allowed.replace(", ", " ")) or "one word"
    where = f":{neutral(knob.file)}" if knob.file else ""
    what = knob.directive or knob.key or knob.mount or knob.get or " | ".join(knob.choices)
    trouble = f"could not be read: {neutral(state.detail)}" if state.detail else ""
    lines = (
        f"{neutral(knob.host)}{where}",
        f"{neutral(what)}{section} · allowed: {allowed}",
        f"test: {neutral(knob.test)}",
        f"reload: {neutral(knob.reload)}",
        trouble,
    )
    return "\n".join(lines)


def _plan(state: State, values: dict[str, str]) -> str:
    def old(name: str) -> str:
        knob = state.knobs.get(name)
        if knob is None or not knob.known:
            return "?"
        return "unset" if knob.value is None else neutral(knob.value)

    return ", ".join(f"{neutral(name)} {old(name)} → {neutral(value)}" for name, value in values.items())


def _history(change: Change, now: float) -> str:
    label = f"{clock(change.begun)}  {neutral(change.label)}"
    if not change.outcome:
        return f"{label}: under way for {max(0.0, now - change.begun):.0f} s"
    if change.outcome == "applied":
        return f"{label}: in force since {clock(change.ended or change.begun)}"
    said = "undone" if change.outcome == "restored" else "FAILED, look at the host"
    return f"{label}: {said}: {neutral(change.detail)}"
