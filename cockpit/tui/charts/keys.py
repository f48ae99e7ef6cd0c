"""The keys of the charts over time: the cursor in them, how much time they show, the list of markers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen

from cockpit.session.controls import Action
from cockpit.session.loop import Session
from cockpit.tui.charts import cursor
from cockpit.tui.charts.chart import Chart
from cockpit.tui.charts.marker_list import MarkersScreen
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.draw_context import DrawContext, View

# What moves the cursor: by how many cells, by how many tenths of the charts, to the marker before or behind it. Far is
# more cells than any session has.
_FAR = 1 << 30
_CELLS = {"left": -1, "right": 1, "home": -_FAR, "end": _FAR}
_PAGES = {"pageup": -1, "pagedown": 1}
_MARKERS = {"left_square_bracket": -1, "right_square_bracket": 1}
# The last ticks of a second come so much later (s).
_TICKS = 0.5


class OverTime(Screen[None]):
    """A screen with charts over time; `view` is its view."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "cursor", "examine the charts"),
        Binding("i", "zoom(-1)", "zoom in"),
        Binding("o", "zoom(1)", "zoom out"),
        Binding("l", "markers", "list of markers"),
    ]

    session: Session
    view: View

    def scene(self) -> DrawContext:
        """Return the context of the next frame."""
        raise NotImplementedError

    def _look(self, view: View) -> None:
        raise NotImplementedError

    def say(self, words: str) -> None:
        """Show why a key has no effect; a key with effect clears it."""
        raise NotImplementedError

    async def _carry_out(self, action: Action, answer: str) -> None:
        raise NotImplementedError

    def over_time(self, key: str) -> bool:
        """Handle a key for the charts at once; False: it has no meaning there.

        A binding would come later than session keys typed after it.
        """
        if key == "e":
            self.action_cursor()
        elif self.view.cursor is None:
            return False
        elif key == "escape":
            self._look(cursor.gone(self.view))
        elif key == "enter":
            self._go_there()
        elif key in _MARKERS:
            self._over_time(cursor.to_marker, _MARKERS[key])
        elif key in _PAGES:
            self._over_time(cursor.moved, _PAGES[key] * max(1, self.query_one(Throughput).size.width // 10))
        elif key in _CELLS:
            self._over_time(cursor.moved, _CELLS[key])
        else:
            return False
        return True

    def action_cursor(self) -> None:
        """The arrows go into the charts over time, or out of them again."""
        self._over_time(cursor.begun)

    def action_zoom(self, step: int) -> None:
        """Less time across, or more."""
        self._over_time(cursor.zoomed, step)

    def action_markers(self) -> None:
        """All markers with their words; the one picked has the cursor put on it."""

        def picked(t: float | None) -> None:
            if t is not None:
                self._over_time(cursor.placed_at, t)

        self.app.push_screen(MarkersScreen(self.scene()), picked)

    def on_chart_pointed(self, event: Chart.Pointed) -> None:
        """A click puts the cursor there."""
        self._over_time(cursor.placed_at, event.t)

    def _over_time(self, change: Callable[..., View], *more: float) -> None:
        """Change the view by `change(scene, window, …)`, if the charts have room."""
        chart = self.query_one(Throughput)
        if chart.window is None or not chart.size.area:
            self.say("the charts over time have no room here: Esc brings them back, or a larger terminal")
            return
        self._look(change(self.scene(), chart.window, *more))

    def _go_there(self) -> None:
        """Show the whole screen at the end of the cell under the cursor, if the session can seek there."""
        scene, window = self.scene(), self.query_one(Throughput).window
        at = None if window is None else scene.cursor(window)
        jump = next((action for action in self.session.controls.actions if action.name == "jump"), None)
        if window is not None and at is not None and jump is not None:
            over = min(at // 1 + max(1.0, window.span) + _TICKS, scene.now)
            # As wide as it is: fewer seconds would have wider cells of their own accord.
            self._look(replace(self.view, span=window.span))
            self.app.run_worker(self._carry_out(jump, f"{over:.1f}s"))
