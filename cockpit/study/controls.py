"""Actions that are allowed while a study or a search controls load and settings: add markers, answer hosts."""

from __future__ import annotations

from cockpit.hosts.ssh.prompts import Question
from cockpit.session.controls import Action, Controls, Mode, SessionStatus

_ALLOWED = frozenset({"mark", "answer"})


class StudyControls(Controls):
    """The Controls of a live session, without the actions that would disturb a study or a search (`mode`)."""

    mode = Mode.STUDY

    def __init__(self, live: Controls, mode: Mode = Mode.STUDY) -> None:
        self.mode = mode
        self._live = live

    @property
    def actions(self) -> tuple[Action, ...]:
        return tuple(action for action in self._live.actions if action.name in _ALLOWED)

    @property
    def question(self) -> Question | None:
        return self._live.question

    @property
    def status(self) -> SessionStatus:
        return self._live.status

    @property
    def position(self) -> float | None:
        return self._live.position
