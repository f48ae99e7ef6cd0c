"""Prompts of hosts: a secret, typed without echo, or the confirmation of a host key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, Static

from cockpit.hosts.prompts import OfferedKey, Question
from cockpit.model.text import neutral
from cockpit.session.loop import Session

# Seconds between checks whether the prompt is still needed.
LOOK = 0.2


def attend(app: App[object], screen: Screen[None], session: Session) -> None:
    """Open the dialog for a host's prompt, unless another dialog is open: then later."""
    ask(app, screen, lambda: session.controls.question)


def ask(app: App[Any], screen: Screen[Any], standing: Callable[[], Question | None]) -> None:
    """The same for whoever has questions: `standing` is the one that is open."""
    question = standing()
    if question is not None and app.screen is screen:
        app.push_screen(AskingScreen(standing, question))


class AskingScreen(ModalScreen[None]):
    """One question. Escape is no; it goes by itself when the host no longer waits for the answer."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "refuse", "no")]
    DEFAULT_CSS = """
    AskingScreen { align: center middle; background: transparent; }
    AskingScreen > Vertical {
        width: 76; max-width: 100%; height: auto;
        padding: 0 1; border: solid $cockpit-warn; background: $surface;
    }
    AskingScreen Input { background: $panel; }
    AskingScreen .hint { color: $cockpit-dim; }
    """

    def __init__(self, standing: Callable[[], Question | None], question: Question) -> None:
        super().__init__()
        self.standing = standing
        self.question = question

    def compose(self) -> ComposeResult:
        key = self.question.key
        with Vertical():
            yield Static(Content("\n".join(self._words(key))))
            field = Input(compact=True, password=key is None)
            field.cursor_blink = False
            yield field
            yield Static(Content(self._hint(key)), classes="hint")

    def on_mount(self) -> None:
        self.set_interval(LOOK, self._still_asked)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        text = event.value
        event.input.clear()
        if self.question.key is None:
            self._close(text)
        elif text.strip().lower() == "yes":
            self._close(True)
        elif text.strip().lower() == "no":
            self._close(None)

    def action_refuse(self) -> None:
        self._close(None)

    def _words(self, key: OfferedKey | None) -> list[str]:
        host = neutral(self.question.host)
        if key is None:
            return [f"{host}: {neutral(self.question.text)}"]
        return [
            f"{host}: nobody has vouched for the key of {neutral(key.where)} yet.",
            "",
            f"  {neutral(key.kind)}",
            f"  {neutral(key.fingerprint)}",
            "",
            "Compare it with the output of this command on the server:",
            "  ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub",
            f"If it is right, this line goes to {neutral(str(key.file))}:",
            f"  {neutral(key.line)}",
            "",
            "Trust it from now on? (yes/no)",
        ]

    def _hint(self, key: OfferedKey | None) -> str:
        if key is None:
            return "Enter: use it, it is kept nowhere   Esc: leave the host alone"
        return "yes: keep it and connect   no, Esc: leave the host alone"

    def _close(self, answer: str | bool | None) -> None:
        self.question.answer(answer)
        self.dismiss()

    def _still_asked(self) -> None:
        if self.standing() is not self.question and self.is_current:
            self.dismiss()
