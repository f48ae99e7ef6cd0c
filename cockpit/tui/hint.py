"""The line above the keys with the next key to press."""

from __future__ import annotations

from cockpit.tui.draw_context import DrawContext
from cockpit.tui.hints import Hints
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import EMPTY, Line, ends, length


class HintLine(Lines):
    """One line high; without a hint it takes no room."""

    DEFAULT_CSS = "HintLine { height: 1; padding: 0 1; display: none; }"

    def __init__(self, hints: Hints | None) -> None:
        super().__init__()
        self._hints = hints
        self._words = ""

    def show(self, scene: DrawContext) -> None:
        words = self._hints.next(scene) if self._hints else ""
        if self.display != bool(words):
            self.display = bool(words)
        # Its keys are those of this screen: they do nothing below another one.
        self._words = words if self.app.screen is self.screen else ""
        super().show(scene)

    def draw(self, scene: DrawContext, width: int, height: int) -> list[Line]:
        if not self._words:
            return [EMPTY]
        start = (("hint  ", "mark"), (self._words, "text"))
        end: Line = (("Esc hides hints", "dim"),)
        # The hint comes before the key that hides it.
        return [ends(start, end if length(start) + length(end) < width else (), width)]
