"""A recording as a source: the same events in the same order, at whatever pace and from whatever instant is asked."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable

from cockpit.model.errors import UsageError
from cockpit.model.fold import fold
from cockpit.model.state import State
from cockpit.model.units import parse_duration
from cockpit.session.asking import Question
from cockpit.session.controls import Action, Tuning
from cockpit.session.loop import Batch
from cockpit.session.recording.reader import Recording

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
FRAME = 0.05
# A state is kept every so many events, so that going back folds at most that many anew.
CHECKPOINT_EVERY = 500
LANDMARKS = ("run_started", "change_ended", "action_begun", "note", "load_adjusted", "worker_lost")


class ReplaySource:
    """Plays `recording` from `start` (s) on; pauses at the end and stays."""

    def __init__(self, recording: Recording, start: float = 0.0, playing: bool = True) -> None:
        self._recording = recording
        self._landmarks = recording.times_of(LANDMARKS)
        self._position = max(0.0, min(start, recording.end))
        self._at = 0
        self._state = State()
        self._checkpoints: list[tuple[int, State]] = [(0, State())]
        self._rewound = False
        self._woken = asyncio.Event()
        self._closed = False
        self.playing = playing
        self.speed = 1.0
        self.controls = Playback(self)

    @property
    def position(self) -> float:
        """The instant under the cursor, session seconds."""
        return self._position

    @property
    def end(self) -> float:
        return self._recording.end

    async def batches(self) -> AsyncIterator[Batch]:
        yield self._advance()
        then = time.monotonic()
        while not self._closed:
            if self.playing:
                await self._pause_for(FRAME)
            else:
                await self._pause_for(None)
                then = time.monotonic()
            now = time.monotonic()
            if self.playing:
                self._position = min(self.end, self._position + (now - then) * self.speed)
                self.playing = self._position < self.end
            then = now
            yield self._advance()

    async def close(self) -> None:
        self._closed = True
        self._woken.set()

    def seek(self, t: float) -> None:
        """Puts the cursor at `t`, kept within the recording."""
        self._position = max(0.0, min(t, self.end))
        self._woken.set()

    def seek_landmark(self, direction: int) -> None:
        """To the next (+1) or previous (-1) run, change or note; to the end or beginning when there is none."""
        if direction > 0:
            at = bisect_right(self._landmarks, self._position + 1e-6)
            self.seek(self._landmarks[at] if at < len(self._landmarks) else self.end)
        else:
            at = bisect_left(self._landmarks, self._position - 1e-6) - 1
            self.seek(self._landmarks[at] if at >= 0 else 0.0)

    def toggle(self) -> None:
        """Pause or resume; from the end it begins anew."""
        if not self.playing and self._position >= self.end:
            self._position = 0.0
        self.playing = not self.playing
        self._woken.set()

    def change_speed(self, direction: int) -> None:
        at = SPEEDS.index(self.speed) + direction
        self.speed = SPEEDS[max(0, min(at, len(SPEEDS) - 1))]
        self._woken.set()

    async def _pause_for(self, seconds: float | None) -> None:
        try:
            await asyncio.wait_for(self._woken.wait(), seconds)
        except TimeoutError:
            return
        self._woken.clear()

    def _advance(self) -> Batch:
        """The events between where the reader stands and the cursor, from a kept state where the cursor went back."""
        target = max(1, self._recording.index_at(self._position))
        base = None
        if target < self._at:
            self._at, self._state = next(kept for kept in reversed(self._checkpoints) if kept[0] <= target)
            base = self._state
        events = list(self._recording.events(self._at, target)) if target > self._at else []
        for event in events:
            self._state = fold(self._state, event)
            self._at += 1
            if self._at - self._checkpoints[-1][0] >= CHECKPOINT_EVERY:
                self._checkpoints.append((self._at, self._state))
        return Batch(events=events, base=base)


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


def _time_of_day(text: str, wall: float) -> float:
    """The first such time of day that is not before the minute in which the session began."""
    began = dt.datetime.fromtimestamp(wall)
    when = dt.datetime.combine(began.date(), dt.time.fromisoformat(text.zfill(5)))
    if when < began.replace(second=0, microsecond=0):
        when += dt.timedelta(days=1)
    return when.timestamp() - wall


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
        if source.playing:
            return f"×{source.speed:g}"
        return "END" if source.position >= source.end else "PAUSED"

    @property
    def position(self) -> float | None:
        return self._source.position

    @property
    def extent(self) -> tuple[float, float] | None:
        return 0.0, self._source.end

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
            source.seek(parse_jump(answer, source.position, source._recording.started.wall))

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
            Action("jump", ("colon",), "jump", jump, prompt="Jump to (-30s, +2m, 14:05, 00:01:30)"),
        )
