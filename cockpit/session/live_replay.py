"""The past of a live session: a replay of its own recording, while load, recording and state go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cockpit.hosts.prompts import Question
from cockpit.model.errors import UsageError
from cockpit.model.events import Note
from cockpit.model.fold import fold_all
from cockpit.model.state import State
from cockpit.recording.reader import Recording
from cockpit.session.controls import Action, Controls, LoadControl, Mode, SessionStatus, Tuning
from cockpit.session.loop import Session
from cockpit.session.replay import JUMP, ReplaySource

# Actions of a replay that switch to the past.
_BEGIN = (
    ("back", "look back 1 s"),
    ("back_10", "look back 10 s"),
    ("back_tenth", "look back 10 %"),
    ("previous", "look back to a marker"),
    ("home", "look at the beginning"),
    ("jump", "look back to", JUMP),
)


def can_look_back(session: Session) -> Session:
    """Return the session, whose past can be shown while it is recorded."""
    session.looking = LiveReplay(session)
    return session


class LiveReplay:
    """Controls of a live session, and of a replay of it while its past is shown."""

    def __init__(self, session: Session) -> None:
        self._recorder = session.recorder
        self._live = session.source.controls
        self._past: _Past | None = None
        self._notes: tuple[Note, ...] = ()
        self._present = State(), State()
        self._beginnings = tuple(self._beginning(*action) for action in _BEGIN)

    @property
    def past(self) -> State | None:
        """The past state that is shown; None: the present one is."""
        return self._past.session.state if self._past else None

    def present(self, state: State) -> State:
        """Add the notes that were made in the past: they are in the file, not among the events."""
        if not self._notes:
            return state
        if self._present[0] is not state:
            self._present = state, fold_all(self._notes, state)
        return self._present[1]

    @property
    def revision(self) -> int:
        return self._past.session.revision if self._past else 0

    @property
    def mode(self) -> Mode:
        return Mode.LOOKING_BACK if self._past else self._live.mode

    @property
    def status(self) -> SessionStatus:
        return self._past.controls.status if self._past else self._live.status

    @property
    def position(self) -> float | None:
        return self._past.controls.position if self._past else self._live.position

    @property
    def extent(self) -> tuple[float, float] | None:
        return self._past.controls.extent if self._past else self._live.extent

    def end_state(self) -> State | None:
        return self._past.controls.end_state() if self._past else None

    @property
    def lost(self) -> tuple[str, ...]:
        return self._past.controls.lost if self._past else ()

    @property
    def tuning(self) -> Tuning | None:
        return None if self._past else self._live.tuning

    @property
    def load(self) -> LoadControl | None:
        return None if self._past else self._live.load

    @property
    def question(self) -> Question | None:
        return self._live.question

    @property
    def actions(self) -> tuple[Action, ...]:
        if self._past is None:
            return (*self._live.actions, *self._beginnings)
        others = (action for action in self._past.controls.actions if action.name != "end")
        return (Action("end", "back to live", self._leave), *others)

    async def close(self) -> None:
        past, self._past = self._past, None
        if past is not None:
            self._notes, self._present = past.notes, (State(), State())
            await past.close()

    def _beginning(self, name: str, label: str, prompt: str = "") -> Action:
        async def run(answer: str) -> None:
            await self._begin(name, answer)

        return Action(name, label, run, prompt, footer=False)

    async def _begin(self, name: str, answer: str) -> None:
        if self._recorder is None or not self._recorder.path:
            raise UsageError("nothing is recorded, so there is no past to show: start without --no-record")
        past = _Past(Recording(Path(self._recorder.path)))
        try:
            await past.do(name, answer)
        except BaseException:
            await past.close()
            raise
        if self._past is not None:
            # Two keys in a row: the first one showed the past already.
            await past.close()
            return
        self._past = past

    async def _leave(self, _: str) -> None:
        await self.close()


class _Past:
    """A paused replay of a recording that is still written."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._source = ReplaySource(recording, recording.end, playing=False)
        self.controls: Controls = self._source.controls
        self.session = Session(self._source)
        self._running = asyncio.create_task(self.session.run())

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes that are in the file, not among the events."""
        return tuple(self._recording.notes)

    async def do(self, name: str, answer: str) -> None:
        await self.session.until(lambda state: state.started is not None)
        before = self.session.revision
        await next(action for action in self.controls.actions if action.name == name).run(answer)
        await self.session.until(lambda _: self.session.revision > before)

    async def close(self) -> None:
        await self._source.close()
        await self._running
        self._recording.close()
