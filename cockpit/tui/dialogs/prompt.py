"""Dialogs with one answer: a line of text, yes or no, or an entry of a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, ClassVar, TypeVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static

from cockpit.model.errors import UsageError
from cockpit.model.text import sanitize
from cockpit.tui.key_names import close_binding, key_hints
from cockpit.tui.key_table import DialogKey, Shortcut, ViewKey

DialogAnswer = TypeVar("DialogAnswer")

# Seconds for which a dialog that opens by itself cannot be answered: keys under way were typed for another screen.
UNSEEN = 0.5


class Dialog(ModalScreen[DialogAnswer]):
    """A bordered box over the screen below it. Ends with an answer; cancelled: with None, or False for yes or no."""

    DEFAULT_CSS = """
    Dialog { align: center middle; background: transparent; }
    Dialog > Vertical, Dialog > VerticalScroll, Dialog > LongText {
        max-width: 100%; height: auto; max-height: 100%; padding: 0 1; scrollbar-size: 1 1;
        border: solid $cockpit-chart; border-title-color: $cockpit-strong; background: $surface;
    }
    Dialog Input { background: $panel; }
    Dialog .hint { color: $cockpit-dim; }
    """

    _unseen_until = 0.0

    def open_by_itself(self) -> None:
        """Ignore answers for UNSEEN seconds: no key of the user opens this dialog."""
        self._unseen_until = monotonic() + UNSEEN

    @property
    def is_seen(self) -> bool:
        return monotonic() >= self._unseen_until

    def action_answer(self, answer: DialogAnswer) -> None:
        """End with the answer."""
        if self.is_seen:
            self.dismiss(answer)

    def ask(self, app: App[Any], then: Callable[[DialogAnswer], object]) -> None:
        """Show the dialog; call `then` with the answer unless it is cancelled."""

        def answered(answer: DialogAnswer | None) -> None:
            if answer is not None and answer is not False:
                then(answer)

        app.push_screen(self, answered)


def one_line_input(
    value: str = "", name: str | None = None, hint: str = "", classes: str = "", *, password: bool = False
) -> Input:
    """Return a field for one line; `hint` is shown while the field is empty.

    Its cursor does not blink: each blink would send data over a slow connection.
    """
    field = Input(
        value,
        placeholder=hint,
        id=name,
        classes=classes,
        password=password,
        compact=True,
        select_on_focus=False,
    )
    field.cursor_blink = False
    return field


class TextDialog(Dialog[str]):
    """A field of one line; ends with its text."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding(DialogKey.CLOSE.key, "cancel", "cancel")]

    def action_cancel(self) -> None:
        """Close the dialog without an answer."""
        self.dismiss()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.action_submit()

    def action_submit(self) -> None:
        """End with the text."""
        self.dismiss(self.query_one(Input).value)


class PromptScreen(TextDialog):
    """A question with a text answer.

    `check` raises UsageError for an invalid answer; the dialog stays open and shows the error. `value`: the answer,
    unless it is edited.
    """

    DEFAULT_CSS = """
    PromptScreen > Vertical { width: 72; }
    PromptScreen #error { display: none; color: $cockpit-warn; }
    """

    def __init__(self, question: str, check: Callable[[str], object] = str, value: str = "") -> None:
        super().__init__()
        self.question, self.check, self.value = question, check, value

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(self.question))
            yield one_line_input(self.value)
            yield Static(id="error")
            cancel = f"[@click=screen.cancel]{DialogKey.CLOSE}: cancel[/]"
            yield Static(f"[@click=screen.submit]Enter: confirm[/]   {cancel}", classes="hint")

    def action_submit(self) -> None:
        text, error = self.query_one(Input).value, self.query_one("#error", Static)
        try:
            self.check(text)
        except UsageError as problem:
            error.update(Content(sanitize(str(problem), 400)))
            error.display = True
        else:
            self.dismiss(text)


class ConfirmScreen(Dialog[bool]):
    """A yes/no question; ends with True for yes. `yes` and `no` are the labels of the answers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(f"{DialogKey.YES.key},enter", "answer(True)", "yes"),
        close_binding(action="answer(False)", description="no"),
    ]
    DEFAULT_CSS = """
    ConfirmScreen > VerticalScroll { width: 100; border: solid $cockpit-warn; }
    ConfirmScreen Static { width: 1fr; height: auto; }
    """

    def __init__(self, question: Content, yes: str, no: str, title: str = "") -> None:
        super().__init__()
        self.question, self.yes, self.no, self.heading = question, yes, no, title

    def compose(self) -> ComposeResult:
        with VerticalScroll() as panel:
            panel.border_title = Content(self.heading)
            panel.border_subtitle = key_hints(("Enter", f" {self.yes}"), (DialogKey.CLOSE, f" {self.no}"))
            yield Static(self.question)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


class FilterScreen(TextDialog):
    """A filter line at the bottom; `typed` gets the text after each edit, and the first text if it is cancelled."""

    DEFAULT_CSS = """
    FilterScreen { align: center bottom; }
    FilterScreen > Horizontal { width: 1fr; height: 1; padding: 0 1; background: $surface; }
    FilterScreen Static { width: auto; color: $cockpit-dim; }
    FilterScreen Input { width: 1fr; }
    """

    hints: ClassVar[tuple[tuple[Shortcut | str, str], ...]] = ((" Enter", ": apply"), (DialogKey.CLOSE, ": cancel"))

    def __init__(self, label: str, text: str, typed: Callable[[str], None]) -> None:
        super().__init__()
        self.label = label
        self.text = text
        self.typed = typed

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(Content(f"{self.label} "))
            yield one_line_input(self.text)
            yield Static(key_hints(*self.hints))

    def on_input_changed(self, event: Input.Changed) -> None:
        self.typed(event.value)

    def action_cancel(self) -> None:
        self.typed(self.text)
        super().action_cancel()


class ChoiceScreen(Dialog[int]):
    """A list to choose from; ends with the index of the chosen line. `at` is selected at first."""

    BINDINGS: ClassVar[list[BindingType]] = [close_binding(ViewKey.MARKERS)]
    DEFAULT_CSS = """
    ChoiceScreen > Vertical { width: 50; }
    ChoiceScreen OptionList { height: auto; max-height: 14; background: $surface; }
    ChoiceScreen.-wide > Vertical { width: 100; }
    ChoiceScreen.-wide OptionList { max-height: 20; }
    """

    def __init__(
        self,
        title: str,
        lines: Sequence[str],
        at: int | None,
        hint: Content | None = None,
        *,
        wide: bool = False,
    ) -> None:
        super().__init__(classes="-wide" if wide else None)
        self.heading, self.lines, self.at, self.hint = title, lines, at, hint

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = Content(sanitize(self.heading))
            yield OptionList(*map(Content, self.lines), compact=True)
            yield Static(self.hint or key_hints(("Enter", ": choose"), (DialogKey.CLOSE, ": cancel")), classes="hint")

    def on_mount(self) -> None:
        if self.at is not None:
            self.query_one(OptionList).highlighted = self.at

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)
