"""Lines around the panes: title and status, position in a recording, damaged parts, the hint above the keys."""

from __future__ import annotations

import math

from cockpit.model.fold_load import load_words
from cockpit.model.state import LoadSecond
from cockpit.model.text import clock, elapsed, milliseconds, neutral
from cockpit.session.controls import LoadPhase, LoadStatus, Mode, PlaybackPhase, PlaybackStatus, SessionStatus
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.hints import Hints
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import EMPTY, Line, clip, ends, length

_MODES = {Mode.LIVE: "LIVE", Mode.STUDY: "STUDY", Mode.REPLAY: "REPLAY", Mode.LOOKING_BACK: "LOOKING BACK"}
_LOADS = {
    LoadPhase.IDLE: "idle {}",
    LoadPhase.STARTING: "asking the target {}",
    LoadPhase.RUNNING: "{}",
    LoadPhase.ROUNDS: "{} · rounds",
}
_PHASES = {PlaybackPhase.FOLLOWING: "FOLLOWING", PlaybackPhase.PAUSED: "PAUSED", PlaybackPhase.END: "END"}


def status_words(mode: Mode | None, status: SessionStatus | None) -> str:
    """Return mode and status, e.g. `LIVE idle c=40`, `REPLAY ×4`."""
    words = [_MODES[mode]] if mode else []
    if isinstance(status, LoadStatus):
        words.append(_LOADS[status.phase].format(load_words(status.plan)))
    elif isinstance(status, PlaybackStatus):
        words.append(_PHASES.get(status.phase, f"×{status.speed:g}"))
        words += ["DAMAGED"] if status.damaged else []
    return " ".join(words) + (" · End: back to live" if mode is Mode.LOOKING_BACK else "")


# A pause (s) of a worker from which its measurements may be wrong.
PAUSE = 0.020


# Below this width only the name of the profile is shown.
_ROOMY = 30


class TopLine(Lines):
    DEFAULT_CSS = "TopLine { height: 1; background: $panel; padding: 0 1; }"

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        status = (*mode(context), *recording(context), *generator(context.second))
        if length(status) > width:
            return [clip((*recording(context), *mode(context)), width)]
        return [ends(_name(context, width - length(status) - 1), status, width)]


def _name(context: DrawContext, room: int) -> Line:
    """Return profile, target and, if there is room, its resolved address."""
    state = context.state
    if state.started is None:
        return (("cockpit", "strong"),)
    target = neutral(state.started.target.removeprefix("http://"))
    if room < _ROOMY:
        return ((neutral(state.started.name), "strong"),)
    name = (("cockpit  ", "strong"), (neutral(state.started.name) + (f" · {target}" if target else ""), ""))
    address = neutral(next(iter(state.segments[-1].addresses), "")) if state.segments else ""
    at = ((f" at {address}", "dim"),) if address and address not in target else ()
    return (*name, *at) if length((*name, *at)) <= room else name


def mode(context: DrawContext) -> Line:
    words = status_words(context.mode, context.status)
    lite: Line = (("lite  ", "dim"),) if context.lite else ()
    return ((f"{words}  ", "strong"), *run_clock(context), (f"{clock(context.now)}  ", "text"), *lite)


def run_clock(context: DrawContext) -> Line:
    """Return elapsed and total time of the last run, e.g. `0:07/0:10`; without a planned end only elapsed."""
    state, last = context.state, context.state.segment
    if last is None:
        return ()
    start = next(segment.start for segment in state.segments if segment.run == last.run)
    total = state.plans[last.run].seconds
    if state.extension is not None and total is not None:
        total = max(total, state.extension.until - start)
    passed = elapsed(max(0.0, (context.now if last.end is None else min(last.end, context.now)) - start))
    return ((f"{passed}/{elapsed(math.ceil(total))}  " if total is not None else f"{passed}  ", "strong"),)


def recording(context: DrawContext) -> Line:
    if context.trouble:
        return ((f" NOT RECORDING: {neutral(context.trouble)} ", "alarm"), ("  ", ""))
    if context.recording and context.gaps:
        return (("● rec ", "text"), (f" {context.gaps[-1]} ", "alarm"), ("  ", ""))
    return (("● rec  ", "text"),) if context.recording else ()


def generator(second: LoadSecond | None) -> Line:
    """Return CPU and lag of the generator."""
    if second is None:
        return ()
    shares = "/".join(f"{100 * share:.0f}" for share in second.workers)
    text = f"gen {shares:>2} % · lag {milliseconds(second.lag_p99)} ms"
    if second.pause >= PAUSE:
        text += f" · pause {milliseconds(second.pause)} ms"
    if second.saturated:
        return ((text + "  ", ""), (" GENERATOR SATURATED ", "alarm"))
    return ((text, ""),)


class Position(Lines):
    DEFAULT_CSS = "Position { height: 1; padding: 0 1; }"

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        if context.extent is None:
            return []
        first, last = context.extent
        room = width - 20
        if room < 4:
            return [((f"{clock(context.now)} of {clock(last)}", ""),)]

        def place(t: float) -> int:
            return round((min(max(t, first), last) - first) / (last - first) * (room - 1)) if last > first else 0

        here = place(context.now)
        track = ["━" if at <= here else "─" for at in range(room)]
        for marker in context.state.markers:
            track[place(marker.t)] = marker.sign[:1]
        track[here] = "●"
        pieces = [
            (char, "strong" if char == "●" else "chart" if char == "━" else "rule" if char == "─" else "mark")
            for char in track
        ]
        return [((f"{clock(first)}  ", "dim"), *pieces, (f"  {clock(last)}", "dim"))]


# Maximum number of lines.
_MOST = 3


class Losses(Lines):
    DEFAULT_CSS = "Losses { height: 0; padding: 0 1; }"

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        return loss_lines(context.lost)


def loss_lines(lost: tuple[str, ...]) -> list[Line]:
    """Return one line each; if there are too many, the last one counts the others."""
    shown = lost if len(lost) <= _MOST else lost[: _MOST - 1]
    lines: list[Line] = [((" DAMAGED ", "alarm"), (f"  {neutral(what)}", "warn")) for what in shown]
    if len(shown) < len(lost):
        lines.append(((f"           and {len(lost) - len(shown)} more", "warn"),))
    return lines


class HintLine(Lines):
    """One line high; hidden without a hint."""

    DEFAULT_CSS = "HintLine { height: 1; padding: 0 1; display: none; }"

    def __init__(self, hints: Hints | None) -> None:
        super().__init__()
        self._hints = hints
        self._words = ""

    def show(self, context: DrawContext) -> None:
        words = self._hints.next(context) if self._hints else ""
        if self.display != bool(words):
            self.display = bool(words)
        # The hinted keys work only on this screen.
        self._words = words if self.app.screen is self.screen else ""
        super().show(context)

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        if not self._words:
            return [EMPTY]
        start = (("hint  ", "mark"), (self._words, "text"))
        end: Line = (("Esc hides hints", "dim"),)
        # The hint has priority over the key that hides it.
        return [ends(start, end if length(start) + length(end) < width else (), width)]
