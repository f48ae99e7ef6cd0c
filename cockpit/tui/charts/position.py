"""The position in the session, if it has a beginning and an end."""

from __future__ import annotations

from cockpit.model.text import clock
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import Line


class Position(Lines):
    """One line high; drawn if the controls have an extent."""

    DEFAULT_CSS = "Position { height: 1; padding: 0 1; }"

    def draw(self, scene: DrawContext, width: int, height: int) -> list[Line]:
        if scene.extent is None:
            return []
        first, last = scene.extent
        room = width - 20
        if room < 4:
            return [((f"{clock(scene.now)} of {clock(last)}", ""),)]

        def place(t: float) -> int:
            return round((min(max(t, first), last) - first) / (last - first) * (room - 1)) if last > first else 0

        here = place(scene.now)
        track = ["━" if at <= here else "─" for at in range(room)]
        for marker in scene.state.markers:
            track[place(marker.t)] = marker.sign[:1]
        track[here] = "●"
        pieces = [
            (char, "strong" if char == "●" else "chart" if char == "━" else "rule" if char == "─" else "mark")
            for char in track
        ]
        return [((f"{clock(first)}  ", "dim"), *pieces, (f"  {clock(last)}", "dim"))]
