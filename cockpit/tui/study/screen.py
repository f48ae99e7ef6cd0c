"""The main screen with a study above it: its progress, its comparisons and its newest runs."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from textual.app import ComposeResult
from textual.widgets import Static

from cockpit.model.text import neutral, si
from cockpit.session.loop import Session
from cockpit.study.runner import Runner
from cockpit.study.words import progress_words, state_words
from cockpit.tui.main_screen import FRAME, MainScreen
from cockpit.tui.task_app import TaskApp
from cockpit.tui.terminal.appearance import Appearance

# Number of runs shown: on a screen of at least _HIGH lines, and on a lower one.
_ROWS, _HIGH, _FEW = 4, 34, 1
# Shown if there is room.
_LEAVE = "   q: stop and restore the settings; --resume continues"


class StudyLine(Static):
    DEFAULT_CSS = "StudyLine { height: auto; max-height: 6; background: $panel; padding: 0 1; }"

    def __init__(self, session: Session, runner: Runner) -> None:
        super().__init__("", markup=False)
        self._session = session
        self._runner = runner

    def on_mount(self) -> None:
        self.refresh_words()
        self.set_interval(FRAME, self.refresh_words)

    def refresh_words(self) -> None:
        words = f"study  {progress_words(self._runner.progress)}"
        if cell_len(words) + len(_LEAVE) < self.app.size.width - 2:
            words += _LEAVE
        result = self._runner.progress.result
        state = f"  {state_words(result)}" if result else ""
        lines = [words, set_cell_size(state, self.app.size.width - 2).rstrip(), *self._newest()]
        self.update("\n".join(filter(None, lines)))

    def _newest(self) -> list[str]:
        state = self._session.state
        if state.study is None:
            return []
        segments = {segment.run: segment for segment in state.segments if not segment.warmup}
        counted = {run for ended in state.study.done for run in ended.counted}
        ended = {one.step for one in state.study.done}
        lines = []
        shown = _ROWS if self.app.size.height >= _HIGH else _FEW
        for place in state.study.runs[-shown:]:
            segment = segments.get(place.run)
            if segment is None:
                continue
            mark = "✓" if place.run in counted else "·" if place.step in ended else "…"
            level = "" if place.level is None else f" {place.level:g}"
            part = f" {place.part}" if place.part else ""
            lines.append(
                f"  {mark} round {place.round} {neutral(place.variant, 40)}{level}{part}  {si(segment.rate, 4)} req/s"
            )
        return lines


class StudyScreen(MainScreen):
    def __init__(self, session: Session, runner: Runner) -> None:
        super().__init__(session)
        self._runner = runner

    def compose(self) -> ComposeResult:
        yield StudyLine(self.session, self._runner)
        yield from super().compose()


class StudyApp(TaskApp):
    """Runs a study and shows it; leaving interrupts it. Settings are restored before it closes."""

    work = "study"

    def __init__(self, session: Session, runner: Runner, appearance: Appearance | None = None) -> None:
        super().__init__(session, appearance=appearance)
        self._runner = runner

    def get_default_screen(self) -> MainScreen:
        return StudyScreen(self.session, self._runner)

    async def run_task(self) -> None:
        await self._runner.run()
