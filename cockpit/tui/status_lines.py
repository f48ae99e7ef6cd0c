"""Lines around the panes: title and status, position in a recording, damaged parts."""

from __future__ import annotations

import math

from rich.cells import cell_len
from textual.events import Click
from textual.message import Message

from cockpit.analysis.warnings import WarningKind, segment_warnings
from cockpit.analysis.words.timeline import load_words, marker_sign
from cockpit.model.load.plan import VERSUS
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.text import clock, elapsed, milliseconds, sanitize
from cockpit.session.controls import LoadPhase, LoadStatus, Mode, PlaybackPhase, PlaybackStatus, SessionStatus
from cockpit.tui.alert import alert
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_table import MainKey, SessionKey
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import Line, clip, fit, left_and_right, length

_MODES = {
    Mode.LIVE: "LIVE",
    Mode.STUDY: "STUDY",
    Mode.SEARCH: "SEARCH",
    Mode.REPLAY: "REPLAY",
    Mode.LOOKING_BACK: "LOOKING BACK",
}
_LOADS = {
    LoadPhase.IDLE: "idle {}",
    LoadPhase.STARTING: "checking the target {}",
    LoadPhase.RUNNING: "{}",
    LoadPhase.ROUNDS: "{} · rounds",
    LoadPhase.ASKING: f"{{}} · rounds: {SessionKey.KEEP} switches now, {MainKey.ROUNDS} ends them",
    LoadPhase.CAPACITY: "capacity search",
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
    return " ".join(words) + (f" · {SessionKey.END}: back to live" if mode is Mode.LOOKING_BACK else "")


# Pauses (s) of a load worker from this length on can distort its measurements.
PAUSE = 0.020


# From this number of load workers on, the header shows the range of their CPU.
_MANY = 5
# Minimum cells for the target; with less room the generator's lag is dropped, then the target.
_TARGET = 24
# The same for an alert, which replaces the name.
_ALERT = 40
# Minimum cells for the name; with less room it is dropped.
_NAME = 4


class TopLine(Lines):
    DEFAULT_CSS = "TopLine { height: 1; background: $panel; padding: 0 1; }"

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        session: Line = (*_saturated(context), *mode(context), *recording(context))
        badge, failing = _badge(context.second), bool(alert(context, width))
        # Without the lag if the target or an alert has no room beside it.
        ways = [
            ((*session, *generator(context.second)), _ALERT if failing else _TARGET),
            ((*session, *generator(context.second, brief=True)), _ALERT if failing else _NAME),
            ((*session, *badge), _ALERT if failing else _NAME),
        ]
        if failing:
            # The alert is more important than clocks.
            recorded = recording(context) if context.recording_error or context.gaps else ()
            ways.append(((*_words(context), *recorded, *badge), _NAME))
        status = next((status for status, least in ways if length(status) <= width - least), None)
        if status is None:
            return [clip((*recording(context), *badge, *mode(context)), width)]
        room = width - length(status) - 1
        return [left_and_right(alert(context, room) if failing else _name(context, room), status, width)]


def _name(context: DrawContext, room: int) -> Line:
    """Return profile, target and, if there is room, its resolved address."""
    state = context.state
    if state.started is None:
        return (("cockpit", "strong"),)
    profile, target = sanitize(state.started.name), sanitize(state.started.target.removeprefix("http://"))
    if target.removeprefix("https://").partition("?")[0].rstrip("/") == profile.partition(VERSUS)[0]:
        # A load without a profile is named after its targets.
        profile, target = target, ""
    name: Line = (("cockpit  ", "strong"), (profile + (f" · {target}" if target else ""), ""))
    if length(name) > room:
        left = room - cell_len(profile) - 2
        rest = ((f"  {shortened(target, left)}", ""),) if target and left >= _TARGET // 2 else ()
        return ((profile, "strong"), *rest)
    address = sanitize(next(iter(state.segments[-1].addresses), "")) if state.segments else ""
    at = ((f" at {address}", "dim"),) if address and address not in target else ()
    return (*name, *at) if length((*name, *at)) <= room else name


def shortened(url: str, width: int) -> str:
    """Return the URL in at most `width` cells; the middle is cut, so that host and resource stay visible."""
    if cell_len(url) <= width:
        return url
    end = (width - 1) // 2
    return fit(url, width - end) + url[len(url) - end :]


def mode(context: DrawContext) -> Line:
    words = _words(context)
    lite: Line = (("lite  ", "dim"),) if context.lite else ()
    if context.extent:
        # The line of the position has the time.
        run: Line = (("run ", "strong"), *run_clock(context)) if context.state.running is not None else ()
        return (*words, *run, *lite)
    return (*words, *run_clock(context), (f"{clock(context.now)}  ", "text"), *lite)


def _words(context: DrawContext) -> Line:
    return ((f"{status_words(context.mode, context.status)}  ", "strong"),)


def run_clock(context: DrawContext) -> Line:
    """Return elapsed and planned time of the last run, e.g. `0:07/0:10`; without a planned end only the elapsed
    time."""
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
    if context.recording_error:
        return ((f" NOT RECORDING: {sanitize(context.recording_error)} ", "alarm"), ("  ", ""))
    if context.recording and context.gaps:
        return (("● rec ", "text"), (f" {context.gaps[-1]} ", "alarm"), ("  ", ""))
    return (("● rec  ", "text"),) if context.recording else ()


def generator(second: LoadSecond | None, brief: bool = False) -> Line:
    """Return CPU and lag of the load generator; `brief`: without the lag."""
    if second is None:
        return ()
    many = len(second.workers) >= _MANY
    shown = (min(second.workers), max(second.workers)) if many else second.workers
    shares = ("–" if many else "/").join(f"{100 * share:.0f}" for share in shown)
    text = f"gen {shares:>2}%" + ("" if brief else f" · lag {milliseconds(second.lag_p99)} ms")
    if second.pause >= PAUSE:
        text += f" · pause {milliseconds(second.pause)} ms"
    return ((text + ("  " if second.saturated else ""), ""), *_badge(second))


def _badge(second: LoadSecond | None) -> Line:
    return ((" GENERATOR SATURATED ", "alarm"),) if second is not None and second.saturated else ()


def _saturated(context: DrawContext) -> Line:
    """Return a badge for a segment whose metrics the generator limited, also when it is not saturated now."""
    segment, second = context.segment, context.second
    if segment is None or (second is not None and second.saturated):
        return ()
    limited = any(warning.kind is WarningKind.GENERATOR_SATURATED for warning in segment_warnings(segment))
    return (("generator was saturated  ", "warn"),) if limited else ()


class Position(Lines):
    DEFAULT_CSS = "Position { height: 1; padding: 0 1; }"

    class Clicked(Message):
        """A click on an instant (session seconds)."""

        def __init__(self, t: float) -> None:
            super().__init__()
            self.t = t

    def __init__(self) -> None:
        super().__init__()
        # First cell and width of the track, its first and last instant.
        self._track: tuple[int, int, float, float] | None = None

    def on_click(self, event: Click) -> None:
        at = event.get_content_offset(self)
        if at is None or self._track is None:
            return
        start, cells, first, last = self._track
        if 0 <= at.x - start < cells:
            self.post_message(self.Clicked(first + (at.x - start) / max(1, cells - 1) * (last - first)))

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        if context.extent is None:
            self._track = None
            return []
        first, last = context.extent
        room = width - 20
        self._track = (len(clock(context.now)) + 2, room, first, last) if room >= 4 else None
        if room < 4:
            return [((f"{clock(context.now)} of {clock(last)}", ""),)]

        def place(t: float) -> int:
            return round((min(max(t, first), last) - first) / (last - first) * (room - 1)) if last > first else 0

        here = place(context.now)
        track = ["━" if at <= here else "─" for at in range(room)]
        for marker in context.state.markers:
            track[place(marker.t)] = marker_sign(marker)[:1]
        track[here] = "●"
        pieces = [
            (char, "strong" if char == "●" else "chart" if char == "━" else "rule" if char == "─" else "mark")
            for char in track
        ]
        return [((f"{clock(context.now)}  ", "strong"), *pieces, (f"  {clock(last)}", "dim"))]


_MAX_LOSSES = 3  # lines


class DamageLines(Lines):
    DEFAULT_CSS = "DamageLines { height: 0; padding: 0 1; }"

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        return loss_lines(context.damaged)


def loss_lines(lost: tuple[str, ...]) -> list[Line]:
    """Return one line per damaged part; if there are too many, the last line counts the rest."""
    shown = lost if len(lost) <= _MAX_LOSSES else lost[: _MAX_LOSSES - 1]
    lines: list[Line] = [((" DAMAGED ", "alarm"), (f"  {sanitize(part)}", "warn")) for part in shown]
    if len(shown) < len(lost):
        lines.append(((f"           and {len(lost) - len(shown)} more", "warn"),))
    return lines
