"""The line above the keys that says what to press next."""

from __future__ import annotations

from cockpit.tui.cells import Line, ends
from cockpit.tui.hints import Hints
from cockpit.tui.lines import Lines
from cockpit.tui.scene import Scene


class HintLine(Lines):
    """One line high; without hints, or where there is nothing to hint at, it takes no room."""

    DEFAULT_CSS = "HintLine { height: 1; padding: 0 1; display: none; }"

    def __init__(self, hints: Hints | None) -> None:
        super().__init__()
        self._hints = hints
        self._words = ""

    def show(self, scene: Scene) -> None:
        self._words = self._hints.next(scene) if self._hints else ""
        if self.display != bool(self._words):
            self.display = bool(self._words)
        super().show(scene)

    def draw(self, scene: Scene, width: int, height: int) -> list[Line]:
        start = (("hint  ", "mark"), (self._words, "text"))
        return [ends(start, (("Esc hides hints", "dim"),), width)]
