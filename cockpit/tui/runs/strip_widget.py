"""The verdict strip below the runs table."""

from __future__ import annotations

from cockpit.tui.draw_context import DrawContext
from cockpit.tui.runs.strip import strip
from cockpit.tui.runs.strip_lines import strip_lines
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import Line


class VerdictStrip(Lines):
    """As high as the screen makes it; no height without a comparison."""

    DEFAULT_CSS = "VerdictStrip { height: 0; }"

    def draw(self, scene: DrawContext, width: int, height: int) -> list[Line]:
        found = strip(scene)
        return [] if found is None else strip_lines(found, width, height)
