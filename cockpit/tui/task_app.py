"""The app of a session that runs a task, a study or a search; quitting ends the task first."""

from __future__ import annotations

import asyncio

from textual.app import ComposeResult
from textual.widgets import Static

from cockpit.session.loop import EndOfSession, Session
from cockpit.tui.app import CockpitApp
from cockpit.tui.main_screen import FRAME, MainScreen

# Results shown on a screen of at least _TALL lines, and on a smaller one.
_ROWS, _TALL, _FEW = 4, 34, 1


class TaskLine(Static):
    """The progress of the task above the main screen, and its newest results."""

    DEFAULT_CSS = "TaskLine { height: auto; max-height: 7; background: $panel; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def on_mount(self) -> None:
        self.refresh_words()
        self.set_interval(FRAME, self.refresh_words)

    def lines(self, width: int, rows: int) -> list[str]:
        """Return the lines, with at most `rows` results."""
        raise NotImplementedError

    def refresh_words(self) -> None:
        width, height = self.app.size
        self.update("\n".join(filter(None, self.lines(width - 2, _ROWS if height >= _TALL else _FEW))))


class TaskScreen(MainScreen):
    """The main screen below the line of a task."""

    def __init__(self, session: Session, line: TaskLine) -> None:
        super().__init__(session)
        self._line = line

    def compose(self) -> ComposeResult:
        yield self._line
        yield from super().compose()


class TaskApp(CockpitApp):
    """Runs the task and shows the session.

    Quitting cancels the task, which restores its settings while the hosts are still connected. `work` is the task's
    name in texts.
    """

    work = ""
    _running_task: asyncio.Task[None] | None = None

    async def run_task(self) -> None:
        raise NotImplementedError

    def on_mount(self) -> None:
        self._running_task = asyncio.create_task(self.run_task())
        self._running_task.add_done_callback(self._task_over)

    def busy_with(self) -> str:
        return f"a {self.work} is running"

    def _task_over(self, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        if failure is not None and not isinstance(failure, EndOfSession):
            self.failure = failure
        if self._leaving is None:
            self.action_leave(task.cancelled())

    async def _finish(self) -> None:
        if self._running_task is not None:
            await asyncio.wait([self._running_task])

    async def _end_session(self) -> None:
        if self._running_task is not None and not self._running_task.done():
            self.interrupted = True
            self._running_task.cancel()
            await asyncio.wait([self._running_task])
        await super()._end_session()
