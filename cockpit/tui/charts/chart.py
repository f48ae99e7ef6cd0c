"""The base of the charts over time: a click sets the cursor."""

from __future__ import annotations

from textual.events import Click
from textual.message import Message

from cockpit.tui.charts.window import AXIS, ChartWindow
from cockpit.tui.terminal.lines import Lines


class Chart(Lines):
    """`window` is the drawn part of the session, None without charts."""

    class Pointed(Message):
        """Somebody clicked on an instant, session seconds."""

        def __init__(self, t: float) -> None:
            super().__init__()
            self.t = t

    window: ChartWindow | None = None

    def on_click(self, event: Click) -> None:
        cell = event.x - AXIS - 1
        if self.window is not None and 0 <= cell < self.window.cells:
            self.post_message(self.Pointed(self.window.instant(cell)))
