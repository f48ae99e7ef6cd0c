"""The markers of the session with their words; the one picked has the cursor of the charts put on it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static

from cockpit.model.text import clock
from cockpit.tui.charts.markers import all_markers, words_of
from cockpit.tui.dialogs.listing import ListScreen
from cockpit.tui.draw_context import DrawContext


class MarkersScreen(ListScreen[float]):
    """Ends with the instant of a marker (s), or None. It begins at the newest one that the screen has come to."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,l,q", "dismiss(None)", "close")]
    DEFAULT_CSS = """
    MarkersScreen > Vertical { width: 100; }
    MarkersScreen OptionList { max-height: 20; }
    """

    def __init__(self, scene: DrawContext) -> None:
        super().__init__()
        self.markers = sorted(all_markers(scene.state), key=lambda marker: marker.t)
        self.here = scene.now if scene.view.cursor is None else scene.view.cursor

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "markers"
            lines = [f"{clock(one.t)}  {one.sign[:1] or '▸'}  {words_of(one)}" for one in self.markers]
            yield OptionList(*(Content(line) for line in lines), compact=True)
            none = "none yet: changes, notes, restarts and lost hosts become markers   Esc: close"
            yield Static(Content("Enter: the cursor there   Esc: close" if lines else none), classes="hint")

    def on_mount(self) -> None:
        if self.markers:
            # Where the cursor stands a cell holds the marker, which may lie a little behind its beginning.
            nearest = min(range(len(self.markers)), key=lambda at: abs(self.markers[at].t - self.here))
            self.query_one(OptionList).highlighted = nearest

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self.markers[event.option_index].t)
