"""The app of the start screen; ends with the user's choice."""

from __future__ import annotations

from typing import Any

from cockpit.tui.app import CHECK_INTERVAL, signal_handlers
from cockpit.tui.start.choices import Choice
from cockpit.tui.start.history import HistoryReader, HistoryScreen
from cockpit.tui.start.screen import StartScreen
from cockpit.tui.terminal.appearance import Appearance
from cockpit.tui.terminal.base_app import CockpitBase


class StartApp(CockpitBase[Choice]):
    """Returns a Choice, or None if the user quits. `interrupted`: Ctrl-C or a signal ended the app. `history` reads
    the checks of profiles."""

    def __init__(
        self, first: StartScreen, appearance: Appearance | None = None, history: HistoryReader | None = None
    ) -> None:
        super().__init__(appearance)
        self.interrupted = False
        self._first = first
        self._history = history or HistoryReader()

    def get_default_screen(self) -> StartScreen:
        return self._first

    def on_mount(self) -> None:
        self.set_interval(CHECK_INTERVAL, self.check_terminal)
        self.show_startup_notices()

    def action_history(self) -> None:
        """Show the checks of profiles over months."""
        if not isinstance(self.screen, HistoryScreen):
            self.push_screen(HistoryScreen(self._history))

    async def run_async(self, **options: Any) -> Choice | None:
        with signal_handlers(lambda: self.action_leave(True), self.lost_terminal):
            return await super().run_async(**{"mouse": self.appearance.mouse, **options})

    def action_leave(self, interrupted: bool = False) -> None:
        self.interrupted |= interrupted
        self.exit()
