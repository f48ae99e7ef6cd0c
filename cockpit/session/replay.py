"""Replay of a recording at any speed from any position: source of events and controls."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import AsyncIterator, Awaitable, Callable

from cockpit.analysis.timeline import all_markers
from cockpit.model.errors import UsageError
from cockpit.model.state import State
from cockpit.model.units import parse_duration
from cockpit.recording.reader import BEGINNING, Recording, ReplayStart, TimedEvent, last_state
from cockpit.session.controls import Action, Controls, Mode, PlaybackPhase, PlaybackStatus, immediate
from cockpit.session.loop import EventBatch

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
FRAME = 0.05
# Seconds between two reads of a recording that is still being written.
REFRESH_EVERY = 0.25
# Minimum number of events between cached states (none if the recording has a state nearby), and their maximum number.
CHECKPOINT_EVERY = 500
CHECKPOINTS = 128


class ReplaySource:
    """Plays `recording` from `start` (s) and pauses at the end; a recording that is still being written is followed."""

    def __init__(self, recording: Recording, start: float = 0.0, playing: bool = True) -> None:
        self.recording = recording
        self._position = max(0.0, min(start, recording.end))
        self._reached = BEGINNING
        self._cached: list[ReplayStart] = []
        self._woken = asyncio.Event()
        self._closed = False
        self._refreshed = time.monotonic()
        self.growing = not recording.ended
        self.playing = playing
        self.speed = 1.0
        self.controls = Playback(self)

    @property
    def position(self) -> float:
        """The session time (s) at the cursor."""
        return self._position

    @property
    def end(self) -> float:
        return self.recording.end

    @property
    def at_end(self) -> bool:
        return self._position >= self.end

    async def batches(self) -> AsyncIterator[EventBatch]:
        yield self._advance()
        then = time.monotonic()
        while not self._closed:
            if self.playing:
                await self._pause_for(FRAME)
            else:
                await self._pause_for(REFRESH_EVERY if self.growing else None)
                then = time.monotonic()
            now = time.monotonic()
            self._refresh(now)
            if self.playing:
                self._position = min(self.end, self._position + (now - then) * self.speed)
                self.playing = self.growing or not self.at_end
            then = now
            yield self._advance()

    async def close(self) -> None:
        self._closed = True
        self._woken.set()

    def seek(self, t: float) -> None:
        """Move the cursor to `t`, within the recording."""
        self._position = max(0.0, min(t, self.end))
        self._woken.set()

    def seek_landmark(self, direction: int) -> None:
        """Move to the next (+1) or previous (-1) run or marker; to the end or beginning if there is none."""
        markers = (marker.t for marker in all_markers(last_state(self.recording)))
        landmarks = sorted([*markers, *self.recording.times_of(["run_started"])])
        if direction > 0:
            at = bisect_right(landmarks, self._position + 1e-6)
            self.seek(landmarks[at] if at < len(landmarks) else self.end)
        else:
            at = bisect_left(landmarks, self._position - 1e-6) - 1
            self.seek(landmarks[at] if at >= 0 else 0.0)

    def toggle(self) -> None:
        """Pause or resume; at the end, start over."""
        if not self.playing and self.at_end and not self.growing:
            self._position = 0.0
        self.playing = not self.playing
        self._woken.set()

    def change_speed(self, direction: int) -> None:
        at = SPEEDS.index(self.speed) + direction
        self.speed = SPEEDS[max(0, min(at, len(SPEEDS) - 1))]
        self._woken.set()

    def annotate(self, text: str) -> None:
        """Add a note to the recording at the cursor. Raises RecordingError if it cannot be written."""
        self.recording.annotate(self._position, text.strip() or "mark")
        # Recompute the state at the cursor, with the note.
        self._cached = [anchor for anchor in self._cached if anchor.instant < self._position]
        self._reached = BEGINNING
        self._woken.set()

    async def _pause_for(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()

    def _refresh(self, now: float) -> None:
        if self.growing and now - self._refreshed >= REFRESH_EVERY:
            self._refreshed = now
            before = self.recording.last_packed
            self.recording.refresh()
            # Cached states within a new page do not match its compacted ticks.
            within = range(before + 1, self.recording.last_packed)
            self._cached = [anchor for anchor in self._cached if anchor.number not in within]
            if self._reached.number in within:
                self._reached = BEGINNING
            self.growing = not self.recording.ended

    def _advance(self) -> EventBatch:
        """Return the events up to the cursor, starting from a cached state if that is nearer than the last one."""
        here = self._position
        anchor = self._nearest(here)
        jumped = self._reached.number == 0 or here < self._reached.instant or anchor.number > self._reached.number
        start = anchor if jumped else self._reached
        following = self.recording.following(start.number, start.instant, here)
        number = following[-1].number if following else start.number
        self._reached = ReplayStart(BEGINNING.state, number, here)
        events = [known.event for known in following]
        return EventBatch(
            events, start.state if jumped else None, lambda count, state: self._cache(following[count - 1], state)
        )

    def _nearest(self, t: float) -> ReplayStart:
        """Return the latest cached or recorded state at or before `t`; BEGINNING: continue from the current state."""
        forwards = self._reached.number > 0 and self._reached.instant <= t
        # Folding up to 10 s of events is faster than loading a state.
        if forwards and t - self._reached.instant < 10:
            return BEGINNING
        recorded = self.recording.latest_checkpoint(t)
        place = bisect_right(self._cached, t, key=lambda anchor: anchor.instant) - 1
        cached = self._cached[place] if place >= 0 else BEGINNING
        return cached if cached.number > recorded.number else recorded

    def _cache(self, known: TimedEvent, state: State) -> None:
        place = bisect_right(self._cached, known.number, key=lambda anchor: anchor.number)
        before = self._cached[place - 1].number if place else 0
        if known.number - before < CHECKPOINT_EVERY or self.recording.has_checkpoint_near(
            known.number, CHECKPOINT_EVERY
        ):
            return
        insort(self._cached, ReplayStart(state, known.number, known.instant), key=lambda anchor: anchor.number)
        if len(self._cached) > CHECKPOINTS:
            self._cached = self._cached[::2]


class Playback(Controls):
    """The controls of a replay."""

    mode = Mode.REPLAY
    actions: tuple[Action, ...] = ()

    def __init__(self, source: ReplaySource) -> None:
        self._source = source
        self.actions = self._make_actions()

    @property
    def status(self) -> PlaybackStatus:
        source = self._source
        if source.playing:
            phase = PlaybackPhase.FOLLOWING if source.growing and source.at_end else PlaybackPhase.PLAYING
        else:
            phase = PlaybackPhase.END if source.at_end else PlaybackPhase.PAUSED
        return PlaybackStatus(phase, source.speed, bool(source.recording.damage))

    @property
    def position(self) -> float | None:
        return self._source.position

    @property
    def extent(self) -> tuple[float, float] | None:
        return 0.0, self._source.end

    def end_state(self) -> State | None:
        return last_state(self._source.recording)

    @property
    def lost(self) -> tuple[str, ...]:
        return self._source.recording.lost

    def _make_actions(self) -> tuple[Action, ...]:
        source = self._source

        def step(move: Callable[[], None]) -> Callable[[str], Awaitable[None]]:
            return immediate(lambda _: move())

        def seek_by(seconds: float) -> Callable[[str], Awaitable[None]]:
            return step(lambda: source.seek(source.position + seconds))

        def seek_by_share(part: float) -> Callable[[str], Awaitable[None]]:
            return step(lambda: source.seek(source.position + part * source.end))

        def jump(answer: str) -> None:
            source.seek(parse_jump(answer, source.position, source.recording.started.wall, source.end))

        return (
            Action("toggle", "pause/resume", step(source.toggle)),
            Action("back", "step back 1 s", seek_by(-1), footer=False),
            Action("forward", "step 1 s", seek_by(1)),
            Action("back_10", "back 10 s", seek_by(-10), footer=False),
            Action("forward_10", "forward 10 s", seek_by(10), footer=False),
            Action("back_tenth", "back 10%", seek_by_share(-0.1), footer=False),
            Action("forward_tenth", "forward 10%", seek_by_share(0.1), footer=False),
            Action("home", "to the start", step(lambda: source.seek(0.0)), footer=False),
            Action("end", "to the end", step(lambda: source.seek(source.end)), footer=False),
            Action("previous", "previous marker", step(lambda: source.seek_landmark(-1)), footer=False),
            Action("next", "next marker", step(lambda: source.seek_landmark(1))),
            Action("faster", "faster", step(lambda: source.change_speed(1))),
            Action("slower", "slower", step(lambda: source.change_speed(-1)), footer=False),
            Action("jump", "jump", immediate(jump)),
            Action("mark", "note", immediate(source.annotate), prompt="Note for this instant", footer=False),
        )


def parse_jump(text: str, position: float, wall: float, end: float | None = None) -> float:
    """Parse a position and return session seconds.

    Forms: `-30s` and `+2m` (from the cursor), `90s`, `5m20s`, `00:01:30` (as on the screen's clock), and `14:05`
    (minutes and seconds of the session if that is at most `end`, else a time of day).

    `wall`: epoch time of session second 0. Raises UsageError.
    """
    text = text.strip()
    try:
        if ":" in text:
            seconds = _clock_seconds(text)
            fits = text.count(":") == 2 or (end is not None and seconds <= end)
            return seconds if fits else _time_of_day(text, wall)
        if text[:1] in ("+", "-"):
            seconds_away = parse_duration(text[1:])
            return position + (seconds_away if text[0] == "+" else -seconds_away)
        return parse_duration(text)
    except (ValueError, OverflowError):
        raise UsageError(
            f"invalid time {text[:40]!r}; write 5:20, 5m20s, -30s, +2m or a time of day, e.g. 14:05"
        ) from None


def _clock_seconds(text: str) -> float:
    """Return the seconds of `h:m:s` or `m:s`. Raises ValueError."""
    *hours, minutes, seconds = (int(part) for part in text.split(":"))
    if len(hours) > 1 or min(*hours, minutes, seconds, 0) < 0 or seconds > 59:
        raise ValueError(text)
    return 3600.0 * sum(hours) + 60 * minutes + seconds


def parse_instant(text: str, end: float, wall: float, begin: float = 0.0) -> float:
    """Parse a position in a whole recording, as `parse_jump`: `+2m` is relative to `begin` (s), `-30s` to its end."""
    return parse_jump(text, end if text.strip().startswith("-") else begin, wall)


def _time_of_day(text: str, wall: float) -> float:
    """Return session seconds of the first such time of day since the minute in which the session started."""
    began = dt.datetime.fromtimestamp(wall)
    when = dt.datetime.combine(began.date(), dt.time.fromisoformat(text.zfill(5)))
    if when < began.replace(second=0, microsecond=0):
        when += dt.timedelta(days=1)
    return when.timestamp() - wall
