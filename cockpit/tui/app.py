"""The app that runs a session, live or replayed, and shows it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from cockpit.model.text import sanitize
from cockpit.session.controls import LoadPhase, LoadStatus
from cockpit.session.loop import EndOfSession, Session
from cockpit.tui.draw_context import BaselineOf
from cockpit.tui.key_table import MainKey, SessionKey
from cockpit.tui.load_fields import LoadParser
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.terminal.appearance import Appearance
from cockpit.tui.terminal.base_app import CockpitBase
from cockpit.tui.tuning.pending import change_under_way

# Signals that end the screen like ctrl+c.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

# Seconds between two checks of the terminal.
CHECK_INTERVAL = 1.0


class CockpitApp(CockpitBase[object]):
    """App of one session; ends with the session's error, if any.

    `autostart`: name of the action to start with, `answer` that to its prompt. `interrupted`: ended by
    ctrl+c or a signal. `load_parser` parses the load form; None: no load form.
    """

    def __init__(
        self,
        session: Session,
        *,
        autostart: str = "",
        answer: str = "",
        appearance: Appearance | None = None,
        baseline_of: BaselineOf = lambda plan: None,
        load_parser: LoadParser | None = None,
    ) -> None:
        super().__init__(appearance)
        self.baseline_of = baseline_of
        self.load_parser = load_parser
        self.session = session
        self.autostart, self.answer = autostart, answer
        self.interrupted = False
        self._named = ""
        self.failure: BaseException | None = None
        self._session_task: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._works: set[asyncio.Task[None]] = set()

    def get_default_screen(self) -> MainScreen:
        return MainScreen(self.session, self.autostart, self.answer, self.baseline_of, self.load_parser)

    def on_mount(self) -> None:
        self._session_task = asyncio.create_task(self.session.run())
        self._session_task.add_done_callback(self._task_ended)
        self.set_interval(CHECK_INTERVAL, self.check_terminal)
        self.show_startup_notices()

    async def on_unmount(self) -> None:
        if not self._outlives:
            await self._end_session()

    async def run_async(self, **options: Any) -> object:
        with signal_handlers(self._signalled, self.lost_terminal):
            returned = await super().run_async(**{"mouse": self.appearance.mouse, **options})
            if self._outlives:
                await self._run_without_screen()
        if self.failure is not None:
            raise self.failure
        return returned

    def run_work(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work of the user that must outlive its screen, and the terminal; an error in it ends the app."""
        task = asyncio.create_task(work)
        self._works.add(task)
        task.add_done_callback(self._works.discard)
        task.add_done_callback(self._task_ended)
        return task

    def action_leave(self, interrupted: bool = False) -> None:
        """End the session, then the app; a second call does not wait for the session. Unless interrupted, the first
        call names a change or an undo that is under way, and no call abandons it."""
        self.interrupted |= interrupted
        changing = "" if interrupted else self._changing()
        if changing not in ("", self._named) and not self.leaving:
            self._named = changing
            self.show_notice(f"{changing}; {MainKey.QUIT} again: quit", severity="warning", matter="leave")
        elif self._leaving is None:
            self._leaving = asyncio.create_task(self._leave())
        elif not changing:
            self.exit()

    def _changing(self) -> str:
        """Return the change or undo that is under way or about to start, or ""."""
        if self.session.source.controls.tuning is None:
            return ""
        if (change := change_under_way(self.session.state)) is not None:
            undo = f", the undo of {sanitize(change.undoes)}," if change.undoes else ""
            end = "completed" if change.confirm_by is None else "undone"
            return f"change {sanitize(change.letter)}{undo} is under way and will be {end}"
        main = next(screen for screen in self.screen_stack if isinstance(screen, MainScreen))
        return main.prepared_change()

    @property
    def leaving(self) -> bool:
        """Whether the session is ending or has ended; actions no longer start."""
        return self._leaving is not None

    def busy_with(self) -> str:
        """Return why the process must not be suspended now, or ""."""
        status = self.session.source.controls.status
        if isinstance(status, LoadStatus) and status.phase is not LoadPhase.IDLE:
            return f"load is running ({SessionKey.TOGGLE} stops it)"
        if any(not change.outcome for change in self.session.state.changes):
            return "a change is in progress"
        return ""

    def end_without_terminal(self) -> None:
        """End the session, or continue without a terminal if `appearance.outlive` is set."""
        if self._outlives:
            self.exit()
        else:
            self.action_leave(True)

    @property
    def _outlives(self) -> bool:
        return self.hung_up and self.appearance.outlive and self._leaving is None

    async def _run_without_screen(self) -> None:
        """Continue without a screen until the run and its changes have ended, or a signal arrives."""
        if not self.interrupted:
            self.session.source.controls.decline_questions()
            self._leaving = asyncio.create_task(self._finish())
            await asyncio.wait([self._leaving])
        await self._end_session()

    async def _finish(self) -> None:
        """Wait for the end of the user's work and of the run."""
        if (tuning := self.session.source.controls.tuning) is not None:
            tuning.decline_confirmations()
        while self._works:
            await asyncio.wait(self._works)
        with contextlib.suppress(EndOfSession):
            await self.session.until(lambda state: state.running is None)

    def _signalled(self) -> None:
        if self.is_running:
            self.action_leave(True)
            return
        if self.interrupted:
            # The end of the session waits for a change that does not end.
            self._cancel_works()
        self.interrupted = True
        if self._leaving is not None:
            self._leaving.cancel()

    async def _leave(self) -> None:
        await self._end_session()
        self.exit()

    async def _end_session(self) -> None:
        """End the session, then work that is left, and wait for their ends; `_task_ended` stores errors."""
        if self._session_task is not None:
            self._session_task.cancel()
            await asyncio.wait([self._session_task])
        if works := self._cancel_works():
            await asyncio.wait(works)

    def _cancel_works(self) -> set[asyncio.Task[None]]:
        works = set(self._works)
        for work in works:
            work.cancel()
        return works

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            self.failure = failure
            self.exit()


@contextlib.contextmanager
def signal_handlers(signalled: Callable[[], None], hung_up: Callable[[], None]) -> Iterator[None]:
    """Handle SIGINT, SIGTERM and SIGHUP inside the block; no effect outside the main thread."""
    loop = asyncio.get_running_loop()
    handlers = {**dict.fromkeys(_SIGNALS, signalled), signal.SIGHUP: hung_up}
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
