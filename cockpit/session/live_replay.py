"""The past of a live session: a replay of its recording, while load and recording continue."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from cockpit.hosts.ssh.prompts import Question
from cockpit.model.errors import UsageError
from cockpit.model.events import Note
from cockpit.model.fold.fold import fold_all
from cockpit.model.state import State
from cockpit.recording.reader import Recording
from cockpit.session.controls import Action, Controls, Mode
from cockpit.session.live import LiveControls
from cockpit.session.loop import Session
from cockpit.session.replay import Playback, ReplaySource

# Actions of a replay with which looking back starts.
_LOOK_BACK = (
    ("back", "look back 1 s"),
    ("back_10", "look back 10 s"),
    ("back_tenth", "look back 10%"),
    ("previous", "look back to a marker"),
    ("home", "look back to the start"),
    ("jump", "jump"),
)


def can_look_back(session: Session) -> Session:
    """Enable looking back in a live session, while it is recorded, and return it."""
    session.look_back = LiveReplay(session)
    return session


class LiveReplay:
    """Looks back in a live session by a replay of its recording."""

    def __init__(self, session: Session) -> None:
        live = session.source.controls
        assert isinstance(live, LiveControls)
        live.look_back = tuple(self._make_action(*action) for action in _LOOK_BACK)
        self._live = live
        self._recorder = session.recorder
        self._past: _Past | None = None
        # One action at a time: a key may be pressed again before the past is shown.
        self._lock = asyncio.Lock()
        self._notes: tuple[Note, ...] = ()
        self._present = State(), State()

    @property
    def past(self) -> Session | None:
        return self._past.session if self._past else None

    def present(self, state: State) -> State:
        """Add the notes that were made while looking back: they are in the file, not among the live events."""
        if not self._notes:
            return state
        if self._present[0] is not state:
            self._present = state, fold_all(self._notes, state)
        return self._present[1]

    async def close(self) -> None:
        async with self._lock:
            past, self._past = self._past, None
            if past is not None:
                self._notes, self._present = past.notes, (State(), State())
                await past.close()

    def _make_action(self, name: str, label: str) -> Action:
        async def run(answer: str) -> None:
            await self._look_back(name, answer)

        return Action(name, label, run, footer=False)

    async def _look_back(self, name: str, answer: str) -> None:
        if self._recorder is None or not self._recorder.path:
            raise UsageError("looking back needs a recording; start without --no-record")
        async with self._lock:
            if self._past is not None:
                await self._past.run_action(name, answer)
                return
            past = _Past(Recording(Path(self._recorder.path)), self._live, self.close)
            try:
                await past.run_action(name, answer)
            except BaseException:
                await past.close()
                raise
            self._past = past


class _PastControls(Playback):
    """The controls of a replay from which the user returns to the live session."""

    mode = Mode.LOOKING_BACK

    def __init__(self, source: ReplaySource, live: Controls, leave: Callable[[], Awaitable[None]]) -> None:
        super().__init__(source)
        self._live = live

        async def end(_: str) -> None:
            await leave()

        others = (action for action in self.actions if action.name != "end")
        self.actions = (Action("end", "back to live", end), *others)

    @property
    def question(self) -> Question | None:
        return self._live.question


class _Past:
    """A paused replay of a recording that is still being written."""

    def __init__(self, recording: Recording, live: Controls, leave: Callable[[], Awaitable[None]]) -> None:
        self._recording = recording
        self._source = ReplaySource(recording, recording.end, playing=False)
        self._source.controls = _PastControls(self._source, live, leave)
        self.session = Session(self._source)
        self._running = asyncio.create_task(self.session.run())

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes that are in the file, not among the live events."""
        return tuple(self._recording.notes)

    async def run_action(self, name: str, answer: str) -> None:
        await self.session.until(lambda state: state.started is not None)
        before = self.session.revision
        await next(action for action in self.session.controls.actions if action.name == name).run(answer)
        await self.session.until(lambda _: self.session.revision > before)

    async def close(self) -> None:
        await self._source.close()
        try:
            await self._running
        finally:
            self._recording.close()
