"""The screen: a reader of a session, live or replayed, that it also runs."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import Provider

from cockpit.session.loop import Session
from cockpit.tui import theme
from cockpit.tui.hints import Hints
from cockpit.tui.keys import show_help
from cockpit.tui.palette import STYLE, Everything
from cockpit.tui.screens.main import MainScreen

# What ends the screen as ctrl+c does: load stopped, recording closed, terminal as before.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CockpitApp(App[object]):
    """Runs the session and shows it. `interrupted` is whether ctrl+c or a signal ended it.

    `autostart` names an action of the session's controls to carry out once the screen is up. `hints` are shown to
    those who are new to it. When the session fails, the screen ends and `run()` raises what it failed with.
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

    def __init__(self, session: Session, *, autostart: str = "", hints: Hints | None = None) -> None:
        super().__init__()
        self.session = session
        self.autostart = autostart
        self.hints = hints
        self.interrupted = False
        self.failure: BaseException | None = None
        self._session_task: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        self.animation_level = "none"
        self.register_theme(theme.DARK)
        self.theme = theme.DARK.name

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theme.VARIABLES

    def get_default_screen(self) -> MainScreen:
        return MainScreen(self.session, self.autostart, self.hints)

    def on_mount(self) -> None:
        self._session_task = asyncio.create_task(self.session.run())
        self._session_task.add_done_callback(self._session_over)
        for number in _SIGNALS:
            # Only the main thread may; elsewhere there is nobody to send one.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                asyncio.get_running_loop().add_signal_handler(number, self.action_leave, True)

    async def on_unmount(self) -> None:
        await self._end_session()
        for number in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)

    async def run_async(self, **options: Any) -> object:
        returned = await super().run_async(**options)
        if self.failure is not None:
            raise self.failure
        return returned

    def action_help(self) -> None:
        """The keys of the screen on top."""
        show_help(self)

    def action_leave(self, interrupted: bool = False) -> None:
        """Ends the session, then the screen; asked a second time, does not wait for the session."""
        self.interrupted |= interrupted
        if self._leaving is not None:
            self.exit()
            return
        self.notify("ending …", timeout=60)
        self._leaving = asyncio.create_task(self._leave())

    async def _leave(self) -> None:
        await self._end_session()
        self.exit()

    async def _end_session(self) -> None:
        """What the session fails with is kept by `_session_over`."""
        if self._session_task is not None:
            self._session_task.cancel()
            await asyncio.wait([self._session_task])

    def _session_over(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            self.failure = failure
            self.exit()
