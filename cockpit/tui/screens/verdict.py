"""The verdict on the row looked at, in full, growing as its window does."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from cockpit.tui.cells import Line
from cockpit.tui.scene import Scene
from cockpit.tui.verdicts import verdict_lines

_REFRESH = 0.5
_STYLES = {"strong": "bold", "dim": "$cockpit-dim", "chart": "$cockpit-chart", "warn": "$cockpit-warn", "": ""}


class VerdictScreen(ModalScreen[None]):
    """Draws `scene()` anew as long as it is open; the row stays the one that was looked at when it was opened."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,c,enter", "dismiss(None)", "close")]
    DEFAULT_CSS = """
    VerdictScreen { align: center middle; background: transparent; }
    VerdictScreen > Vertical {
        width: 112; max-width: 100%; height: auto; max-height: 100%;
        padding: 0 1; border: solid $cockpit-chart; border-title-color: $cockpit-strong; background: $surface;
    }
    VerdictScreen VerticalScroll { height: auto; max-height: 100%; scrollbar-gutter: stable; scrollbar-size: 1 1; }
    VerdictScreen #told { height: auto; }
    """

    def __init__(self, scene: Callable[[], Scene]) -> None:
        super().__init__()
        self.scene = scene
        row = scene().row
        self.number = row.number if row else 0
        self._shown: list[Line] = []

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "verdict"
            panel.border_subtitle = "↑ ↓ scroll   Esc close"
            with VerticalScroll():
                yield Static(id="told")

    def on_mount(self) -> None:
        self.set_interval(_REFRESH, self._tell)
        self.call_after_refresh(self._tell)

    def on_resize(self) -> None:
        self.call_after_refresh(self._tell)

    def _tell(self) -> None:
        scene = self.scene()
        row = next((row for row in scene.state.segments if row.number == self.number), None)
        told = self.query_one("#told", Static)
        if row is None or not told.size.width:
            return
        lines = verdict_lines(scene, row, told.size.width)
        if lines != self._shown:
            self._shown = lines
            told.update(content(lines))


def content(lines: list[Line]) -> Content:
    """Lines with their roles as what Textual shows."""
    pieces: list[str | tuple[str, str]] = []
    for at, line in enumerate(lines):
        pieces += ["\n"] if at else []
        pieces += [(text, _STYLES[role]) if _STYLES[role] else text for text, role in line]
    return Content.assemble(*pieces)
