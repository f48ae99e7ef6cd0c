"""The command line (`:`): the commands of the screen by their names, some with an argument, and times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.suggester import Suggester
from textual.widgets import Input, Static

from cockpit.model.errors import UsageError
from cockpit.model.text import sanitize
from cockpit.tui.dialogs.prompt import FilterScreen
from cockpit.tui.key_names import bindings
from cockpit.tui.key_table import AppKey, DialogKey
from cockpit.tui.palette import Command
from cockpit.tui.terminal.styled_line import Piece, clip, content

# The command that a time without a name is for.
JUMP = "jump"
_TIME = re.compile(r"[+-]?\d")
# Names listed in an error.
_LISTED = 4


def match(text: str, commands: Sequence[Command]) -> tuple[Command, str]:
    """Return the command and its argument, "" without one. The start of a name is enough if no other name starts so.

    Raises UsageError.
    """
    text = text.strip()
    if _TIME.match(text):
        text = f"{JUMP} {text}"
    exact = [command for command in commands if command.title == text]
    near = exact or [command for command in commands if command.title.casefold().startswith(text.casefold())]
    if len(near) == 1:
        return near[0], ""
    if (command := _with_argument(text, commands)) is not None:
        return command, text[len(command.title) :].strip()
    if near:
        raise UsageError(f"{text}: ambiguous: {', '.join(command.title for command in near[:_LISTED])}")
    if text.startswith(f"{JUMP} "):
        raise UsageError("this session cannot show another time")
    raise UsageError(f"{text}: unknown command; {AppKey.COMMANDS} lists all")


def completions(text: str, commands: Sequence[Command]) -> list[str]:
    """Return the lines that begin with the text, then those that contain it."""
    command = _with_argument(text, commands)
    if command is None:
        lines = [f"{command.title} " if command.argument else command.title for command in commands]
    else:
        argument = text[len(command.title) + 1 :]
        lines = [f"{command.title} {value}" for value in command.complete(argument)]
        text = f"{command.title} {argument}"
    folded = text.casefold()
    begin = [line for line in lines if line.casefold().startswith(folded)]
    within = folded if command is None else folded.rpartition(" ")[2]
    return [*begin, *(line for line in lines if line not in begin and within in line.casefold())]


def _with_argument(text: str, commands: Sequence[Command]) -> Command | None:
    """Return the command whose name and a space begin the text."""
    named = (command for command in commands if command.argument and text.startswith(f"{command.title} "))
    return max(named, key=lambda command: len(command.title), default=None)


def _problem(text: str, command: Command) -> str:
    """Return what the argument lacks, e.g. the allowed values of a setting; "" if it is valid."""
    try:
        command.check(text[len(command.title) :].strip())
    except UsageError as error:
        return sanitize(str(error))
    return ""


class _Completer(Suggester):
    """Shows the rest of the first line that begins with the text."""

    def __init__(self, commands: Sequence[Command]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._commands = commands

    async def get_suggestion(self, value: str) -> str | None:
        return next((line for line in completions(value, self._commands) if line.startswith(value)), None)


class CommandLine(FilterScreen):
    """A line at the bottom for a command, below the possible completions; ends with a valid line, or None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings([DialogKey.COMPLETE], [DialogKey.COMPLETE])
    DEFAULT_CSS = """
    CommandLine #offers { width: 1fr; height: 1; padding: 0 1; background: $surface; text-wrap: nowrap; }
    """

    hints = ((" Tab", ": complete"), ("Enter", ": run"), (DialogKey.CLOSE, ": cancel"))

    def __init__(self, commands: Sequence[Command], text: str = "") -> None:
        super().__init__(":", text, self._typed)
        self._commands = commands
        self._offers: list[str] = []
        self._completed = ""

    def compose(self) -> ComposeResult:
        yield Static(id="offers")
        yield from super().compose()

    def on_mount(self) -> None:
        self.query_one(Input).suggester = _Completer(self._commands)
        self._typed(self.text)

    def _typed(self, text: str) -> None:
        if text != self._completed or len(self._offers) < 2:
            self._offers = completions(text, self._commands)
        line: list[Piece] = [(f"{sanitize(offer)}  ", "strong" if offer == text else "") for offer in self._offers]
        command = _with_argument(text, self._commands)
        # Tab still leads to the next completion of a completed name.
        if command is not None and (not self._offers or (text.endswith(" ") and text in self._offers)):
            line = [(_problem(text, command) or f"{command.title} {command.argument}  {command.words}", "dim")]
        self._show(*line)

    def action_complete(self) -> None:
        """Complete the line; again: the next completion."""
        field = self.query_one(Input)
        if self._offers:
            at = self._offers.index(field.value) + 1 if field.value in self._offers else 0
            self._completed = field.value = self._offers[at % len(self._offers)]
            field.cursor_position = len(field.value)

    def action_submit(self) -> None:
        """End with the line, or show why it is invalid."""
        text = self.query_one(Input).value
        try:
            if text.strip():
                command, argument = match(text, self._commands)
                command.check(argument)
        except UsageError as error:
            self._show((sanitize(str(error)), "warn"))
        else:
            self.dismiss(text)

    def _show(self, *line: Piece) -> None:
        self.query_one("#offers", Static).update(content([clip(line, self.size.width - 2)]))
