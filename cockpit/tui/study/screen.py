"""The main screen during a study, with the study's progress, comparisons and newest runs at the top."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from cockpit.analysis.capacity.result import result_of
from cockpit.analysis.words.capacity import capacity_words
from cockpit.model.text import sanitize, si
from cockpit.session.loop import Session
from cockpit.study.runner import StudyRunner
from cockpit.study.words import progress_words, state_words
from cockpit.tui.key_table import MainKey
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.task_app import TaskApp, TaskLine, TaskScreen
from cockpit.tui.terminal.appearance import Appearance

# Shown if there is room.
_LEAVE = f"   {MainKey.QUIT}: stop and restore the settings; --resume continues"


class StudyLine(TaskLine):
    def __init__(self, session: Session, runner: StudyRunner) -> None:
        super().__init__()
        self._session = session
        self._runner = runner

    def lines(self, width: int, rows: int) -> list[str]:
        words = f"study  {progress_words(self._runner.progress)}"
        if cell_len(words) + len(_LEAVE) < width:
            words += _LEAVE
        result = self._runner.progress.result
        state = f"  {state_words(result)}" if result else ""
        return [words, set_cell_size(state, width).rstrip(), *self._newest(rows)]

    def _newest(self, rows: int) -> list[str]:
        state = self._session.state
        if state.study is None:
            return []
        segments = {segment.run: segment for segment in state.segments if not segment.warmup}
        counted = {run for ended in state.study.done for run in ended.counted}
        done_steps = {step.step for step in state.study.done}
        lines = []
        for place in state.study.runs[-rows:]:
            segment = segments.get(place.run)
            if segment is None:
                continue
            mark = "✓" if place.run in counted else "·" if place.step in done_steps else "…"
            level = "" if place.level is None else f" {place.level:g}"
            part = f" {place.pass_name}" if place.pass_name else ""
            search = result_of(state, place.run)
            result = capacity_words(search) if search else f"{si(segment.rate, 4)} req/s"
            lines.append(f"  {mark} round {place.round} {sanitize(place.variant, 40)}{level}{part}  {result}")
        return lines


class StudyApp(TaskApp):
    """Runs a study and shows it. Leaving interrupts the study; settings are restored before the app closes."""

    work = "study"

    def __init__(self, session: Session, runner: StudyRunner, appearance: Appearance | None = None) -> None:
        super().__init__(session, appearance=appearance)
        self._runner = runner

    def get_default_screen(self) -> MainScreen:
        return TaskScreen(self.session, StudyLine(self.session, self._runner))

    async def run_task(self) -> None:
        await self._runner.run()
