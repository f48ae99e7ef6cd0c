"""What a person can do with a recording: the Controls of a replay."""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from cockpit.model.errors import UsageError
from cockpit.model.units import parse_duration
from cockpit.session.asking import Question
from cockpit.session.controls import Action, Tuning

if TYPE_CHECKING:
    from cockpit.session.replay import ReplaySource


JUMP = "Jump to (-30s, +2m, 14:05, 00:01:30)"


class Playback:
    """The Controls of a replay."""

    mode = "REPLAY"
    tuning: Tuning | None = None
    question: Question | None = None

    def __init__(self, source: ReplaySource) -> None:
        self._source = source
        self.actions = self._make_actions()

    @property
    def condition(self) -> str:
        source = self._source
        damaged = " DAMAGED" if source.recording.damage else ""
        if source.playing:
            return ("FOLLOWING" if source.growing and source.at_end else f"×{source.speed:g}") + damaged
        return ("END" if source.at_end else "PAUSED") + damaged

    @property
    def position(self) -> float | None:
        return self._source.position

    @property
    def extent(self) -> tuple[float, float] | None:
        return 0.0, self._source.end

    @property
    def lost(self) -> tuple[str, ...]:
        return self._source.recording.lost

    def _make_actions(self) -> tuple[Action, ...]:
        source = self._source

        def do(step: Callable[[], None]) -> Callable[[str], Awaitable[None]]:
            async def run(_: str) -> None:
                step()

            return run

        def by(seconds: float) -> Callable[[str], Awaitable[None]]:
            return do(lambda: source.seek(source.position + seconds))

        def share(part: float) -> Callable[[str], Awaitable[None]]:
            return do(lambda: source.seek(source.position + part * source.end))

        async def jump(answer: str) -> None:
            source.seek(parse_jump(answer, source.position, source.recording.started.wall))

        async def mark(answer: str) -> None:
            source.annotate(answer)

        return (
            Action("toggle", ("space",), "pause/resume", do(source.toggle)),
            Action("back", ("left",), "step back 1 s", by(-1), footer=False),
            Action("forward", ("right",), "step 1 s", by(1)),
            Action("back_10", ("comma",), "back 10 s", by(-10), footer=False),
            Action("forward_10", ("full_stop",), "forward 10 s", by(10), footer=False),
            Action("back_tenth", ("pageup",), "back 10 %", share(-0.1), footer=False),
            Action("forward_tenth", ("pagedown",), "forward 10 %", share(0.1), footer=False),
            Action("home", ("home",), "to the beginning", do(lambda: source.seek(0.0)), footer=False),
            Action("end", ("end",), "to the end", do(lambda: source.seek(source.end)), footer=False),
            Action(
                "previous",
                ("left_square_bracket",),
                "previous marker",
                do(lambda: source.seek_landmark(-1)),
                footer=False,
            ),
            Action("next", ("right_square_bracket",), "next marker", do(lambda: source.seek_landmark(1))),
            Action("faster", ("plus",), "faster", do(lambda: source.change_speed(1))),
            Action("slower", ("minus",), "slower", do(lambda: source.change_speed(-1)), footer=False),
            Action("jump", ("colon",), "jump", jump, prompt=JUMP),
            Action("mark", ("m",), "note", mark, prompt="Note for this instant", footer=False),
        )


def parse_jump(text: str, position: float, wall: float) -> float:
    """Session seconds for `-30s` and `+2m` (from the cursor), `90s` or `00:01:30` (as the screen's clock shows it), and
    `14:05` (time of day).

    `wall` is the epoch time of session second 0. Raises UsageError.
    """
    text = text.strip()
    try:
        if text.count(":") == 2:
            hours, minutes, seconds = (int(part) for part in text.split(":"))
            return 3600.0 * hours + 60 * minutes + seconds
        if ":" in text:
            return _time_of_day(text, wall)
        if text[:1] in ("+", "-"):
            seconds_away = parse_duration(text[1:])
            return position + (seconds_away if text[0] == "+" else -seconds_away)
        return parse_duration(text)
    except ValueError:
        raise UsageError(f"{text!r} is no instant; write -30s, +2m, 00:01:30 or a time of day as 14:05") from None


def parse_instant(text: str, end: float, wall: float, begin: float = 0.0) -> float:
    """As `parse_jump`, of a whole recording: `+2m` counts from its beginning, or from `begin`, and `-30s` from its
    end."""
    return parse_jump(text, end if text.strip().startswith("-") else begin, wall)


def _time_of_day(text: str, wall: float) -> float:
    """The first such time of day that is not before the minute in which the session began."""
    began = dt.datetime.fromtimestamp(wall)
    when = dt.datetime.combine(began.date(), dt.time.fromisoformat(text.zfill(5)))
    if when < began.replace(second=0, microsecond=0):
        when += dt.timedelta(days=1)
    return when.timestamp() - wall
