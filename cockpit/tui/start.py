"""The app of the start screen: it ends with what is to be opened next."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import signal
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import Provider

from cockpit.tui import theme
from cockpit.tui.keys import show_help
from cockpit.tui.offers import Choice, Offers
from cockpit.tui.palette import STYLE, Everything
from cockpit.tui.screens.start import StartScreen

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StartApp(App[Choice]):
    """Returns a Choice, or None where the person leaves. `interrupted` is whether ctrl+c or a signal ended it.

    The rest is as in StartScreen.
    """

    TITLE = "cockpit"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {Everything}
    CSS = STYLE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "leave", "quit", priority=True, show=False),
        Binding("ctrl+c", "leave(True)", "quit", priority=True, show=False),
        Binding("f1", "help", "help", priority=True, show=False),
        Binding("question_mark", "help", "help", show=False),
    ]

    def __init__(
        self,
        look: Callable[[], Offers],
        *,
        told: str = "",
        bad: bool = False,
        at: Choice | None = None,
        ssh_config: Path | None = None,
        now: Callable[[], dt.datetime] = dt.datetime.now,
    ) -> None:
        super().__init__()
        self.interrupted = False
        self._first = StartScreen(look, told=told, bad=bad, at=at, ssh_config=ssh_config, now=now)
        self.animation_level = "none"
        self.register_theme(theme.DARK)
        self.theme = theme.DARK.name

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theme.VARIABLES

    def get_default_screen(self) -> StartScreen:
        return self._first

    def on_mount(self) -> None:
        for number in _SIGNALS:
            # Only the main thread may; elsewhere there is nobody to send one.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                asyncio.get_running_loop().add_signal_handler(number, self.action_leave, True)

    def on_unmount(self) -> None:
        for number in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)

    def action_help(self) -> None:
        """The keys of the screen on top."""
        show_help(self)

    def action_leave(self, interrupted: bool = False) -> None:
        """Ends it with nothing to open."""
        self.interrupted |= interrupted
        self.exit()
