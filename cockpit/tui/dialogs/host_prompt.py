"""Prompts of hosts: a secret, entered without echo, or the confirmation of a host key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static

from cockpit.hosts.ssh.prompts import Question, UnknownHostKey
from cockpit.model.text import sanitize
from cockpit.tui.dialogs.prompt import Dialog, one_line_input
from cockpit.tui.key_names import key_hints
from cockpit.tui.key_table import DialogKey

# Seconds between checks whether the prompt is still pending.
CHECK_INTERVAL = 0.2


def ask_user(app: App[Any], screen: Screen[Any], pending: Callable[[], Question | None]) -> None:
    """Open the dialog for a host's pending prompt, unless another dialog is open."""
    question = pending()
    if question is not None and app.screen is screen:
        prompt = HostPromptScreen(pending, question)
        prompt.open_by_itself()
        app.push_screen(prompt)


class HostPromptScreen(Dialog[None]):
    """A host's prompt. Escape declines. The dialog closes when the host no longer waits for an answer."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding(DialogKey.CLOSE.key, "refuse", "no")]
    DEFAULT_CSS = "HostPromptScreen > Vertical { width: 76; border: solid $cockpit-warn; }"

    def __init__(self, pending: Callable[[], Question | None], question: Question) -> None:
        super().__init__()
        self.pending = pending
        self.question = question

    def compose(self) -> ComposeResult:
        key = self.question.key
        with Vertical():
            yield Static(Content("\n".join(self._words(key))))
            yield one_line_input(password=key is None)
            yield Static(self._hint(key), classes="hint")

    def on_mount(self) -> None:
        self.set_interval(CHECK_INTERVAL, self._still_asked)

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.value and not self.is_seen:
            event.input.clear()

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

    def _words(self, key: UnknownHostKey | None) -> list[str]:
        host = sanitize(self.question.host)
        if key is None:
            return [f"{host}: {sanitize(self.question.text)}"]
        return [
            f"{host}: the host key of {sanitize(key.where)} is unknown.",
            "",
            f"  {sanitize(key.kind)}",
            f"  {sanitize(key.fingerprint)}",
            "",
            "Compare it with the output of this command on the server:",
            "  ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub",
            f"If you trust the key, this line is added to {sanitize(str(key.file))}:",
            f"  {sanitize(key.line)}",
            "",
            "Trust this key? (yes/no)",
        ]

    def _hint(self, key: UnknownHostKey | None) -> Content:
        if key is None:
            return key_hints(("Enter", ": use it (never stored)"), (DialogKey.CLOSE, ": do not connect"))
        return key_hints(("", "yes: store the key and connect"), ("", "no,"), (DialogKey.CLOSE, ": do not connect"))

    def _close(self, answer: str | bool | None) -> None:
        if self.is_seen:
            self.question.answer(answer)
            self.dismiss()

    def _still_asked(self) -> None:
        if self.pending() is not self.question and self.is_current:
            self.dismiss()
