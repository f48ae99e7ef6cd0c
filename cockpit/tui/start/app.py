"""The app of the start screen: it ends with the choice of the person."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cockpit.tui.app import LOOK, handled
from cockpit.tui.start.choices import Choice, StartChoices
from cockpit.tui.start.screen import StartScreen
from cockpit.tui.terminal.appearance import Appearance
from cockpit.tui.terminal.base_app import CockpitBase


class StartApp(CockpitBase[Choice]):
    """Returns a Choice, or None if the person quits. `interrupted` is whether ctrl+c or a signal ended it.

    The rest is as in StartScreen.
    """

    def __init__(
        self,
        offers: Callable[[], StartChoices],
        *,
        told: str = "",
        bad: bool = False,
        at: Choice | None = None,
        ssh_config: Path | None = None,
        now: Callable[[], dt.datetime] = dt.datetime.now,
        look: Appearance | None = None,
    ) -> None:
        super().__init__(look)
        self.interrupted = False
        self._first = StartScreen(offers, told=told, bad=bad, at=at, ssh_config=ssh_config, now=now)

    def get_default_screen(self) -> StartScreen:
        return self._first

    def on_mount(self) -> None:
        self.set_interval(LOOK, self.look_at_terminal)
        self.tell_of_look()

    async def run_async(self, **options: Any) -> Choice | None:
        with handled(lambda: self.action_leave(True), self.lost_terminal):
            return await super().run_async(**{"mouse": self.look.mouse, **options})

    def action_leave(self, interrupted: bool = False) -> None:
        """Ends it with nothing to open."""
        self.interrupted |= interrupted
        self.exit()
