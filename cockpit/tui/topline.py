"""The first line: what is done, in which mode, at what instant, whether it is recorded, how the generator fares."""

from __future__ import annotations

from cockpit.model.state import LoadSecond
from cockpit.model.text import clock, milliseconds, neutral
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.status_words import status_words
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import Line, clip, ends, length

# A worker that was away for so long (s) may have coloured what it measured.
PAUSE = 0.020


# With less room than this the session's own name is all that is said of what it is.
_ROOMY = 30


class TopLine(Lines):
    """One line high."""

    DEFAULT_CSS = "TopLine { height: 1; background: $panel; padding: 0 1; }"

    def draw(self, scene: DrawContext, width: int, height: int) -> list[Line]:
        status = (*mode(scene), *recording(scene), *generator(scene.second))
        if length(status) > width:
            return [clip((*recording(scene), *mode(scene)), width)]
        return [ends(_name(scene, width - length(status) - 1), status, width)]


def _name(scene: DrawContext, room: int) -> Line:
    """Profile, target and, where there is room for it, the address that its name was resolved to."""
    state = scene.state
    if state.started is None:
        return (("cockpit", "strong"),)
    target = neutral(state.started.target.removeprefix("http://"))
    if room < _ROOMY:
        return ((neutral(state.started.name), "strong"),)
    name = (("cockpit  ", "strong"), (neutral(state.started.name) + (f" · {target}" if target else ""), ""))
    address = neutral(next(iter(state.segments[-1].addresses), "")) if state.segments else ""
    at = ((f" at {address}", "dim"),) if address and address not in target else ()
    return (*name, *at) if length((*name, *at)) <= room else name


def mode(scene: DrawContext) -> Line:
    """The mode's word, then the session's clock."""
    words = status_words(scene.mode, scene.status)
    lite: Line = (("lite  ", "dim"),) if scene.lite else ()
    return ((f"{words}  ", "strong"), (f"{clock(scene.now)}  ", "text"), *lite)


def recording(scene: DrawContext) -> Line:
    """Whether the session is kept."""
    if scene.trouble:
        return ((f" NOT RECORDING: {neutral(scene.trouble)} ", "alarm"), ("  ", ""))
    if scene.recording and scene.gaps:
        return (("● rec ", "text"), (f" {scene.gaps[-1]} ", "alarm"), ("  ", ""))
    return (("● rec  ", "text"),) if scene.recording else ()


def generator(second: LoadSecond | None) -> Line:
    """How busy and how late the generator is; saturated means that it, not the server, set the pace."""
    if second is None:
        return ()
    shares = "/".join(f"{100 * share:.0f}" for share in second.workers)
    figures = f"gen {shares:>2} % · lag {milliseconds(second.lag_p99)} ms"
    if second.pause >= PAUSE:
        figures += f" · pause {milliseconds(second.pause)} ms"
    if second.saturated:
        return ((figures + "  ", ""), (" GENERATOR SATURATED ", "alarm"))
    return ((figures, ""),)
