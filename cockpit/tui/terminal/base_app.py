"""The base of all apps: appearance, notices, and the state of the terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, TypeVar

from textual import on
from textual.actions import ActionParseResult
from textual.app import App
from textual.binding import BindingType
from textual.command import Provider
from textual.dom import DOMNode
from textual.events import Event, Key, Paste
from textual.filter import ANSIToTruecolor, LineFilter, Monochrome, NoColor
from textual.notifications import Notification, SeverityLevel

from cockpit.model.errors import UsageError
from cockpit.model.text import sanitize
from cockpit.tui.command_line import CommandLine, match
from cockpit.tui.key_help import show_help
from cockpit.tui.key_names import bindings
from cockpit.tui.key_table import AppKey
from cockpit.tui.palette import STYLE, CommandProvider, commands_of
from cockpit.tui.terminal import theme
from cockpit.tui.terminal.appearance import Appearance, save_settings
from cockpit.tui.terminal.driver import Terminal
from cockpit.tui.terminal.glyphs import Ascii, Inert
from cockpit.tui.terminal.key_queue import KeyQueue

Returned = TypeVar("Returned")

# Without colours the selected line is reversed.
_WITHOUT_COLOURS = """
App:nocolor .option-list--option-highlighted { text-style: reverse; }
"""
# Notices are below the top line, beside or below the verdict, and as small as possible.
_NOTICES = """
ToastRack { dock: top; align-vertical: top; margin: 1 0 0 0; }
MainScreen.-narrow ToastRack { margin: 5 0 0 0; }
Toast { width: auto; max-width: 50; margin: 0; padding: 0 1; }
"""
# Textual cannot wrap the lines of a list without any cells; a list that is cut off on a tiny terminal can be drawn.
_LISTS = """
OptionList { min-width: 8; }
"""
# Maximum duration (s) of a notice.
NOTICE = 4.0
# Frames are skipped while the terminal has not accepted the last one for this time (s).
_BEHIND = 0.1
# Skipped frames in a row after which the screen becomes lite automatically.
_MISSED = 4
LITE = "a frame every 2 s, no trends beside metrics; --no-lite: all frames"


class CockpitBase(App[Returned]):
    """Base of all apps. `lite`: few frames, as requested or because the line is slow."""

    TITLE = "cockpit"
    COMMAND_PALETTE_BINDING = AppKey.COMMANDS.key
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {CommandProvider}
    CSS = STYLE + _NOTICES + _LISTS + _WITHOUT_COLOURS
    BINDINGS: ClassVar[list[BindingType]] = bindings(AppKey, set(AppKey) - {AppKey.HELP_SIGN, AppKey.THEME})

    def __init__(self, appearance: Appearance | None = None) -> None:
        self.appearance = appearance or Appearance()
        # Set by the driver; None with another driver, as in tests.
        self.terminal: Terminal | None = None
        super().__init__(driver_class=Terminal)
        self.lite = self.appearance.lite
        self.hung_up = False
        self._missed = 0
        # By matter, the oldest first.
        self._notices: dict[str, Notification] = {}
        self._is_renewing = False
        self._keys = KeyQueue(self, super().on_event)
        self.animation_level = "none"
        self._line_filters = [
            *([NoColor()] if self.no_color else []),
            Inert(),
            *([Ascii(self.appearance.encoding)] if self.appearance.ascii else []),
        ]
        for name in theme.NAMES:
            self.register_theme(theme.theme(name, self.appearance.colours))
        self.theme = self.appearance.theme

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key | Paste) and not event.is_forwarded:
            await self._keys.put(event)
        else:
            await super().on_event(event)

    def get_line_filters(self) -> Sequence[LineFilter]:
        # Themes have no ANSI colours to convert in each line of each frame.
        replaced = Monochrome, ANSIToTruecolor
        return [*(each for each in super().get_line_filters() if not isinstance(each, replaced)), *self._line_filters]

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theme.VARIABLES

    def action_help(self) -> None:
        """Show the keys of the screen on top."""
        show_help(self)

    def action_command_line(self, text: str = "") -> None:
        """Type a command by its name, or a time."""
        commands = list(commands_of(self, self.screen))

        def answered(line: str | None) -> None:
            if line and line.strip():
                command, argument = match(line, commands)
                self.call_later(command.run, *filter(None, [argument]))

        self.push_screen(CommandLine(commands, text), answered)

    def action_leave(self, interrupted: bool = False) -> None:
        raise NotImplementedError

    def action_theme(self, name: str) -> None:
        """Use this theme, now and in later sessions. Raises UsageError."""
        if name not in theme.NAMES:
            raise UsageError(f"unknown theme {name!r}; choose {', '.join(theme.NAMES)}")
        self.theme = name
        try:
            save_settings({"theme": name})
            self.show_notice(f"theme: {name}", timeout=3)
        except UsageError as error:
            self.show_notice(f"theme: {name}; {error}", severity="warning")

    def action_next_theme(self) -> None:
        """Switch to the next theme."""
        at = theme.NAMES.index(self.theme) if self.theme in theme.NAMES else -1
        self.action_theme(theme.NAMES[(at + 1) % len(theme.NAMES)])

    def action_redraw(self) -> None:
        """Redraw the whole screen, after another program wrote to the terminal."""
        self.refresh(layout=True)

    @property
    def leaving(self) -> bool:
        """Whether the app is about to end; actions no longer start."""
        return False

    def busy_with(self) -> str:
        """Return the reason against a suspension; "" if there is none."""
        return ""

    def action_suspend_process(self) -> None:
        """Stop cockpit and return to the shell, whose fg continues it."""
        if busy := self.busy_with():
            self.show_notice(f"not suspended: {busy}", severity="warning")
        elif self.terminal is None or os.getpgrp() == os.getsid(0):
            # Nobody could continue a stopped cockpit.
            self.show_notice(f"{AppKey.SUSPEND} needs a shell with job control, and cockpit was not started from one")
        else:
            self.app_suspend_signal.publish(self)
            # The whole process group, as a terminal does: a shell also waits for make or a script around cockpit.
            os.killpg(0, signal.SIGTSTP)

    @on(Terminal.SignalResume)
    def redraw_after_suspension(self) -> None:
        self.action_redraw()

    def show_notice(
        self, words: str, severity: SeverityLevel = "information", timeout: float = NOTICE, matter: str = ""
    ) -> None:
        """Show a notice for `timeout` seconds; control characters are replaced.

        The notice replaces the previous one about the same `matter`; without a matter, the one with the same words.
        """
        words = sanitize(words)
        self._notices.pop(matter or words, None)
        self._notices[matter or words] = Notification(words, severity=severity, timeout=min(NOTICE, timeout))
        self._renew_notices()

    def notices(self) -> tuple[Notification, ...]:
        return tuple(notice for notice in self._notices.values() if not notice.has_expired)

    def forget_notices(self, notices: Iterable[Notification]) -> None:
        gone = {notice.identity for notice in notices}
        kept = {matter: notice for matter, notice in self._notices.items() if notice.identity not in gone}
        if len(kept) < len(self._notices):
            self._notices = kept
            self._renew_notices()

    def _renew_notices(self) -> None:
        """Show the current notices in place of the shown ones, after the notices that Textual has not shown yet."""
        if not self._is_renewing:
            self._is_renewing = True
            self.call_later(self._replace_notices)

    def _replace_notices(self) -> None:
        self._is_renewing = False
        self.clear_notifications()
        for notice in self.notices():
            self.notify(notice.message, severity=notice.severity, timeout=notice.time_left, markup=False)

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        before = self.notices()
        done = await super().run_action(action, default_namespace, namespaces)
        if done:
            self.forget_notices(before)
        return done

    def show_startup_notices(self) -> None:
        for notice in self.appearance.notices:
            self.show_notice(notice, severity="warning")
        if self.lite:
            self.show_notice(f"lite: {self.appearance.why}; {LITE}")

    def keeps_up(self) -> bool:
        """Return whether the terminal accepts output in time; become lite after several skipped frames."""
        terminal = self.terminal
        if terminal is None or terminal.waiting < _BEHIND:
            self._missed = 0
            return True
        self._missed += 1
        if self._missed >= _MISSED and self.appearance.may_lite and not self.lite:
            self.lite = True
            self.show_notice(f"lite: the terminal takes {terminal.waiting:.1f} s for a frame; {LITE}")
        return False

    def lost_terminal(self) -> None:
        """Handle a closed terminal or SIGHUP."""
        if self.terminal is not None and self.terminal.is_gone():
            self.terminal.detach()
        if not self.hung_up:
            self.hung_up = True
            self.end_without_terminal()

    def end_without_terminal(self) -> None:
        self.action_leave(True)

    def check_terminal(self) -> None:
        """Detect a terminal that closed without a signal."""
        if self.terminal is not None and self.terminal.is_gone():
            self.lost_terminal()
