"""Widgets of the tuning panel: knob rows, the history of changes, the status of the running action."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Key
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input, OptionList, Static

from cockpit.model.errors import CockpitError
from cockpit.model.knobs import Knob
from cockpit.model.state import Change, KnobState, State
from cockpit.model.text import sanitize
from cockpit.tui.key_names import click_hint
from cockpit.tui.key_table import DialogKey, TuningKey
from cockpit.tui.terminal.styled_line import fit
from cockpit.tui.tuning.changes import active_value, hint, history_line

if TYPE_CHECKING:
    from cockpit.tui.app import CockpitApp

_SHOWN = (
    *(TuningKey.GUARD, TuningKey.KEEP, TuningKey.UNDO, TuningKey.ROUNDS, TuningKey.REREAD, TuningKey.SECTION),
    *(TuningKey.FILTER, TuningKey.CLOSE),
)
KEYS = "  ".join(["[@click=screen.apply]Enter diff, then apply[/]", *map(click_hint, _SHOWN)])
READ_ONLY = f"read-only   {click_hint(TuningKey.SECTION, 'history')}   {click_hint(TuningKey.CLOSE)}"
STYLE = """
TuningScreen > Vertical { width: 100; }
TuningScreen .quiet { color: $cockpit-dim; }
TuningScreen #knobs { height: auto; max-height: 10; }
TuningScreen KnobRow { height: 1; }
TuningScreen .name { width: 3fr; height: 1; text-overflow: ellipsis; text-wrap: nowrap; }
TuningScreen .value { width: 2fr; height: 1; text-overflow: ellipsis; text-wrap: nowrap; padding: 0 1; }
TuningScreen .cost { width: 10; height: 1; color: $cockpit-dim; }
TuningScreen ReadOnlyValue:focus { text-style: reverse; }
TuningScreen Input, TuningScreen .entry { width: 3fr; }
TuningScreen Input:focus { background: $cockpit-band; }
TuningScreen #details { height: 4; color: $cockpit-dim; text-wrap: nowrap; text-overflow: ellipsis; }
TuningScreen #diff { height: auto; max-height: 12; scrollbar-size: 1 1; }
TuningScreen #diff:focus { background: $panel; }
TuningScreen #plan { height: auto; }
TuningScreen #status { height: auto; min-height: 1; max-height: 5; text-style: bold; }
TuningScreen #status.-bad { color: $cockpit-alarm; }
TuningScreen .heading { height: 1; color: $cockpit-dim; }
TuningScreen OptionList {
    height: auto; max-height: 5; background: $surface; scrollbar-gutter: stable; scrollbar-size: 1 1;
    text-wrap: nowrap; text-overflow: ellipsis;
}
TuningScreen OptionList > .option-list--option-highlighted {
    background: $surface; color: $cockpit-text; text-style: none;
}
TuningScreen OptionList:focus { background-tint: transparent; }
TuningScreen OptionList:focus > .option-list--option-highlighted { background: $cockpit-band; color: $cockpit-strong; }
TuningScreen #actions { max-height: 4; }
TuningScreen .-none { display: none; }
TuningScreen #keys { height: auto; color: $cockpit-dim; link-color: $cockpit-text; link-style: none; }
TuningScreen.-short #knobs { max-height: 4; }
TuningScreen.-short #details { height: 3; }
TuningScreen.-short #diff { max-height: 8; }
TuningScreen.-short.-acting #diff { max-height: 5; }
TuningScreen.-short #status { max-height: 2; }
TuningScreen.-short #history { max-height: 2; }
TuningScreen.-short #actions { max-height: 2; }
"""

# With priority, because the next typed key belongs to the next field.
_UP_AND_DOWN: list[BindingType] = [
    Binding(each.key, f"screen.{each.action}", each.description, priority=True)
    for each in (TuningKey.UP, TuningKey.DOWN)
]


class ReadOnlyValue(Static, can_focus=True):
    """A read-only value; focus shows its details."""

    BINDINGS: ClassVar[list[BindingType]] = _UP_AND_DOWN


class ValueInput(Input):
    """The input of a new value; space opens the list of choices, if any."""

    BINDINGS: ClassVar[list[BindingType]] = _UP_AND_DOWN

    class Picking(Message):
        """The user opens the list of choices."""

        def __init__(self, field: ValueInput) -> None:
            super().__init__()
            self.field = field

    def __init__(self, knob: Knob) -> None:
        super().__init__(compact=True, suggester=SuggestFromList(knob.choices) if knob.choices else None)
        self.knob = knob
        # A blinking cursor sends bytes all the time, also over a slow line.
        self.cursor_blink = False

    def on_key(self, event: Key) -> None:
        if event.key == DialogKey.SELECT.key and self.knob.choices:
            event.stop()
            event.prevent_default()
            self.post_message(self.Picking(self))
        elif event.key == TuningKey.FILTER.key and not self.value and self.knob.format_error(str(TuningKey.FILTER)):
            # No value of this setting starts so.
            event.stop()
            event.prevent_default()
            self.screen.call_later(self.screen.run_action, TuningKey.FILTER.action)


class KnobRow(Horizontal):
    def __init__(self, state: KnobState, editable: bool, draft: str = "") -> None:
        super().__init__()
        self.knob = state.knob
        self.editable = editable
        self.known = state
        self._draft = draft

    def compose(self) -> ComposeResult:
        yield Static(Content(sanitize(self.knob.name)), classes="name")
        value = Static if self.editable else ReadOnlyValue
        yield value(Content(active_value(self.known)), classes="value")
        yield Static(Content(sanitize(self.knob.effective_cost)), classes="cost")
        if self.editable:
            field = ValueInput(self.knob)
            field.value = self._draft
            field.placeholder = hint(self.known)
            yield field

    def update(self, state: KnobState) -> bool:
        """Show the current value; return whether it changed."""
        if state is self.known:
            return False
        self.known = state
        self.query_one(".value", Static).update(Content(active_value(state)))
        if self.editable:
            self.query_one(ValueInput).placeholder = hint(state)
        return True

    @property
    def place(self) -> ValueInput | ReadOnlyValue:
        return self.query_one(ValueInput) if self.editable else self.query_one(ReadOnlyValue)

    def typed(self) -> str:
        """Return the typed value; "" if the field is empty or has the active value."""
        value = self.query_one(ValueInput).value.strip() if self.editable else ""
        return "" if self.known.known and value == self.known.value else value

    def format_error(self) -> str:
        """Return why the form of the typed value is invalid; "" if it is valid."""
        return sanitize(self.knob.format_error(self.typed()), 400) if self.typed() else ""


class History(OptionList):
    """The list of changes; keeps its selection when new changes are added above."""

    def show_changes(self, state: State) -> None:
        room = max(20, self.size.width)
        lines = [fit(history_line(change, state), room).rstrip() for change in reversed(state.own_changes)]
        if len(lines) == self.option_count:
            for at, line in enumerate(lines):
                self.replace_option_prompt_at_index(at, Content(line))
            return
        chosen, added = self.highlighted, len(lines) - self.option_count
        self.set_options([Content(line) for line in lines])
        self.highlighted = None if chosen is None else chosen + added

    def change(self, state: State, line: int | None) -> Change | None:
        changes = state.own_changes
        return changes[-1 - line] if line is not None and line < len(changes) else None


class ActionStatus(Static):
    """The status line; runs one action at a time. `busy` is the running action, `shown` the shown text."""

    busy = ""
    shown = ""

    def show_text(self, words: str, bad: bool = False) -> None:
        self.shown = words
        self.set_class(bad, "-bad")
        self.update(Content(sanitize(words)))

    @property
    def _cockpit(self) -> CockpitApp:
        return cast("CockpitApp", self.app)

    def waits(self) -> bool:
        """Return whether an action runs, and show that."""
        if self.busy:
            self.show_text(f"{self.busy} (one action at a time)")
        return bool(self.busy)

    def start(
        self,
        words: str,
        work: Awaitable[None],
        done: str = "",
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Start an action as work of the app, because closing the panel must not interrupt a change.

        `done` is shown at the end; if it is empty, the last text of the action stays.
        """
        self.busy = words
        self.show_text(words)
        self._cockpit.run_work(self._carry_out(words, work, done, failed))

    async def _carry_out(self, words: str, work: Awaitable[None], done: str, failed: Callable[[], None]) -> None:
        try:
            await work
        except CockpitError as error:
            failed()
            self.report(f"not done: {error}", bad=True)
        else:
            if done or self.shown == words:
                self.report(done)
        finally:
            self.busy = ""

    def report(self, words: str, bad: bool = False) -> None:
        """Show the result of an action, as a notice if the panel is closed."""
        if self.is_attached:
            self.show_text(words, bad)
        elif words:
            self._cockpit.show_notice(words, severity="error" if bad else "information", matter="tuning")
