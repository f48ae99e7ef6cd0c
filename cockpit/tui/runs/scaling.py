"""The Universal Scalability Law on the screen: its claim, and a bar per load level with the fitted curve."""

from __future__ import annotations

from textwrap import wrap

from cockpit.analysis.capacity.scaling import usl_fit_with
from cockpit.analysis.words.usl import USL_TITLES, usl_details, usl_line, usl_row
from cockpit.model.state import Segment, State
from cockpit.tui.terminal.styled_line import EMPTY, Line

_COLUMN = 10
_CURVE = "│"


def scaling_lines(state: State, segment: Segment, width: int) -> list[Line]:
    """Return the fit over the levels to which a segment belongs; [] without one."""
    if (fit := usl_fit_with(state, segment)) is None:
        return []
    role = "warn" if fit.problem else "strong"
    lines: list[Line] = [EMPTY, *(((line, role),) for line in wrap(usl_line(fit), width))]
    lines += [((line, "dim"),) for words in usl_details(fit) for line in wrap(words, width)]
    titles = "".join(f"{title:>{_COLUMN}}" for title in USL_TITLES)
    lines.append(((f"{titles}  {_CURVE} curve", "dim"),))
    room = max(8, width - _COLUMN * len(USL_TITLES) - 4)
    top = max(max(level.rate, level.fitted or 0.0) for level in fit.levels)
    for level in fit.levels:
        bar = "█" * round(level.rate / top * room)
        at = None if level.fitted is None else min(room - 1, int(level.fitted / top * room))
        drawn = bar if at is None else f"{bar[:at]:<{at}}{_CURVE}{bar[at + 1 :]}"
        text = "".join(f"{cell:>{_COLUMN}}" for cell in usl_row(level))
        lines.append(((f"{text}  ", "strong" if level.segment == segment.number else ""), (drawn, "chart")))
    return lines
