"""Damaged parts of a recording, which are left out."""

from __future__ import annotations

from cockpit.model.text import neutral
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import Line

# Maximum number of lines.
_MOST = 3


class Losses(Lines):
    """As high as `loss_lines` are many, which the screen sees to."""

    DEFAULT_CSS = "Losses { height: 0; padding: 0 1; }"

    def draw(self, scene: DrawContext, width: int, height: int) -> list[Line]:
        return loss_lines(scene.lost)


def loss_lines(lost: tuple[str, ...]) -> list[Line]:
    """Return one line each; if there are too many, the last one counts the others."""
    told = lost if len(lost) <= _MOST else lost[: _MOST - 1]
    lines: list[Line] = [((" DAMAGED ", "alarm"), (f"  {neutral(what)}", "warn")) for what in told]
    if len(told) < len(lost):
        lines.append(((f"           and {len(lost) - len(told)} more", "warn"),))
    return lines
