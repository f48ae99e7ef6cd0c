"""A recording as a source: the same events in the same order, at whatever pace and from whatever instant is asked."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import AsyncIterator

from cockpit.model.state import State
from cockpit.recording.reader import BEGINNING, Anchor, Known, Recording
from cockpit.session.loop import EventBatch
from cockpit.session.playback import Playback

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
FRAME = 0.05
# Seconds between two looks for what another process has written since.
LOOK_EVERY = 0.25
# Where the recording keeps no state, one is kept here every so many events, and so many at the most.
CHECKPOINT_EVERY = 500
CHECKPOINTS = 128
LANDMARKS = ("run_started", "change_ended", "action_begun", "note", "load_adjusted", "worker_lost")


class ReplaySource:
    """Plays `recording` from `start` (s) on; pauses at the end and stays. One that is still written is followed."""

    def __init__(self, recording: Recording, start: float = 0.0, playing: bool = True) -> None:
        self.recording = recording
        self._position = max(0.0, min(start, recording.end))
        self._reached = BEGINNING
        self._kept: list[Anchor] = []
        self._woken = asyncio.Event()
        self._closed = False
        self._looked = time.monotonic()
        self.growing = not recording.ended
        self.playing = playing
        self.speed = 1.0
        self.controls = Playback(self)

    @property
    def position(self) -> float:
        """The instant under the cursor, session seconds."""
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
                await self._pause_for(LOOK_EVERY if self.growing else None)
                then = time.monotonic()
            now = time.monotonic()
            self._look(now)
            if self.playing:
                self._position = min(self.end, self._position + (now - then) * self.speed)
                self.playing = self.growing or not self.at_end
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
        landmarks = self.recording.times_of(LANDMARKS)
        if direction > 0:
            at = bisect_right(landmarks, self._position + 1e-6)
            self.seek(landmarks[at] if at < len(landmarks) else self.end)
        else:
            at = bisect_left(landmarks, self._position - 1e-6) - 1
            self.seek(landmarks[at] if at >= 0 else 0.0)

    def toggle(self) -> None:
        """Pause or resume; from the end it begins anew."""
        if not self.playing and self.at_end and not self.growing:
            self._position = 0.0
        self.playing = not self.playing
        self._woken.set()

    def change_speed(self, direction: int) -> None:
        at = SPEEDS.index(self.speed) + direction
        self.speed = SPEEDS[max(0, min(at, len(SPEEDS) - 1))]
        self._woken.set()

    def annotate(self, text: str) -> None:
        """Adds a note to the recording at the cursor. Raises RecordingError where it cannot be written."""
        self.recording.annotate(self._position, text.strip() or "mark")
        # The state at the cursor is made anew, with the note in it.
        self._kept = [anchor for anchor in self._kept if anchor.instant < self._position]
        self._reached = BEGINNING
        self._woken.set()

    async def _pause_for(self, seconds: float | None) -> None:
        try:
            await asyncio.wait_for(self._woken.wait(), seconds)
        except TimeoutError:
            return
        self._woken.clear()

    def _look(self, now: float) -> None:
        """Takes in what another process has written meanwhile."""
        if self.growing and now - self._looked >= LOOK_EVERY:
            self._looked = now
            self.recording.refresh()
            self.growing = not self.recording.ended

    def _advance(self) -> EventBatch:
        """The events between where the reader stands and the cursor, from a kept state where that is nearer."""
        here = self._position
        anchor = self._nearest(here)
        jumped = self._reached.number == 0 or here < self._reached.instant or anchor.number > self._reached.number
        start = anchor if jumped else self._reached
        found = self.recording.following(start.number, start.instant, here)
        number = found[-1].number if found else start.number
        self._reached = Anchor(BEGINNING.state, number, here)
        events = [known.event for known in found]
        return EventBatch(
            events, start.state if jumped else None, lambda count, state: self._keep(found[count - 1], state)
        )

    def _nearest(self, t: float) -> Anchor:
        """The latest state that is kept for an instant not after `t`."""
        forwards = self._reached.number > 0 and self._reached.instant <= t
        # What lies a little ahead is come by sooner by going there.
        if forwards and t - self._reached.instant < 10:
            return BEGINNING
        kept = self.recording.anchor(t)
        place = bisect_right(self._kept, t, key=lambda anchor: anchor.instant) - 1
        own = self._kept[place] if place >= 0 else BEGINNING
        return own if own.number > kept.number else kept

    def _keep(self, known: Known, state: State) -> None:
        """Keeps a state where there is none near."""
        place = bisect_right(self._kept, known.number, key=lambda anchor: anchor.number)
        before = self._kept[place - 1].number if place else 0
        if known.number - before < CHECKPOINT_EVERY or self.recording.kept_near(known.number, CHECKPOINT_EVERY):
            return
        insort(self._kept, Anchor(state, known.number, known.instant), key=lambda anchor: anchor.number)
        if len(self._kept) > CHECKPOINTS:
            self._kept = self._kept[::2]
