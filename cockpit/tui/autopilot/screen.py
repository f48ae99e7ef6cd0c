"""The main screen during a search, with the search's progress and newest evaluations at the top."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeVar

from msgspec.structs import replace
from rich.cells import set_cell_size
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from cockpit.autopilot.decisions import RunSearch
from cockpit.autopilot.diagnosis import Bottleneck, suggested_knobs
from cockpit.autopilot.runner import Autopilot, SearchResult
from cockpit.autopilot.words import diagnosis_lines, result_line, trial_line, values_words
from cockpit.model.errors import UsageError
from cockpit.model.text import count_text, elapsed, sanitize
from cockpit.session.loop import Session
from cockpit.tui.app import CHECK_INTERVAL
from cockpit.tui.dialogs.checklist import Checklist, ChecklistItem
from cockpit.tui.dialogs.prompt import ConfirmScreen, Dialog
from cockpit.tui.key_names import bindings, close_binding, key_hints
from cockpit.tui.key_table import DialogKey, SearchKey, ViewKey
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.task_app import TaskApp, TaskLine, TaskScreen
from cockpit.tui.terminal.appearance import Appearance

Answer = TypeVar("Answer")


class SearchLine(TaskLine):
    def __init__(self, session: Session, pilot: Callable[[], Autopilot | None]) -> None:
        super().__init__()
        self._session, self._pilot = session, pilot

    def lines(self, width: int, rows: int) -> list[str]:
        pilot, state = self._pilot(), self._session.state.autopilot
        if pilot is None or state is None:
            diagnosing = self._session.state.runs > 0
            return ["search  diagnosing the server's limit" if diagnosing else "search  connecting"]
        paused = "PAUSED · " if pilot.paused else ""
        left = f"at most {elapsed(max(0.0, pilot.remaining_seconds))} left"
        first = f"search  {paused}{count_text(len(state.trials), 'evaluation')} · {left}"
        *others, board = (f"{key}: {key.label}" for key in (*SearchKey, ViewKey.BOARD))
        keys = f"   {' · '.join([*others, board])}"
        lines = [first + (keys if len(first) + len(keys) <= width else f"   {board}")]
        lines += [f"  {trial_line(trial, state)}" for trial in state.trials[-rows:]]
        return [set_cell_size(line, width).rstrip() for line in lines]


class KnobsScreen(Dialog[tuple[str, ...]]):
    """The server's limits, and a checklist of the knobs to search. The knobs that affect a limit are preselected.

    Ends with the selected knobs; with none if the user quits.
    """

    BINDINGS: ClassVar[list[BindingType]] = [close_binding(action="answer(())", description="quit")]
    DEFAULT_CSS = """
    KnobsScreen > Vertical { width: 100; overflow-y: auto; }
    KnobsScreen Checklist { height: auto; max-height: 16; margin: 1 0; background: $surface; }
    """

    def __init__(self, bottlenecks: Sequence[Bottleneck], knobs: Sequence[str], excluded: Sequence[str] = ()) -> None:
        super().__init__()
        self._bottlenecks, self._excluded = bottlenecks, excluded
        chosen = [name for name in suggested_knobs(bottlenecks) if name in knobs] or knobs
        self._items = [ChecklistItem(sanitize(name), name, name in chosen) for name in knobs]

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "limits of the server, and knobs to search"
            yield Static(Content("\n".join(diagnosis_lines(self._bottlenecks))))
            yield Checklist(self._items)
            hints = (DialogKey.SELECT, ": select"), ("Enter", ": start")
            yield Static(key_hints(*hints, (DialogKey.QUIT, ": quit")), classes="hint")
            # Last: on a small terminal, the keys are more important.
            yield Static(Content("\n".join(self._excluded)), classes="hint")

    def action_go(self) -> None:
        """Start the search with the selected knobs."""
        if chosen := self.query_one(Checklist).selected:
            self.action_answer(tuple(chosen))
        else:
            self.app.bell()


class AutopilotScreen(TaskScreen):
    BINDINGS: ClassVar[list[BindingType]] = bindings(SearchKey)

    def __init__(self, session: Session, pilot: Callable[[], Autopilot | None]) -> None:
        super().__init__(session, SearchLine(session, pilot))
        self._pilot = pilot

    def action_pause(self) -> None:
        """Pause before the next evaluation, or continue."""
        self._command(Autopilot.pause)

    def action_skip(self) -> None:
        """Skip the current evaluation; it has no result."""
        self._command(Autopilot.skip)

    def action_finish(self) -> None:
        """End the search after the current evaluation, then compare the best values with the original ones."""
        self._command(Autopilot.finish)

    def _command(self, command: Callable[[Autopilot], None]) -> None:
        pilot = self._pilot()
        if pilot is None:
            self.show_reason("the search has not started yet")
            return
        try:
            command(pilot)
        except UsageError as error:
            self.show_reason(str(error))


class AutopilotApp(TaskApp):
    """Runs a search, shows it, and asks at its end whether the proved values stay active.

    `apply`: they stay without a question. Leaving interrupts the search; the original values are active before the app
    closes.
    """

    work = "search"

    def __init__(
        self, session: Session, search: RunSearch, appearance: Appearance | None = None, *, apply: bool = False
    ) -> None:
        super().__init__(session, appearance=appearance)
        self._apply = apply
        self.found: SearchResult | None = None
        self._search = search
        self._pilot: Autopilot | None = None

    def get_default_screen(self) -> MainScreen:
        return AutopilotScreen(self.session, lambda: self._pilot)

    async def run_task(self) -> None:
        self.found = await self._search(self)

    async def choose(
        self, bottlenecks: Sequence[Bottleneck], knobs: Sequence[str], excluded: Sequence[str]
    ) -> Sequence[str]:
        chosen = await self._answer(KnobsScreen(bottlenecks, knobs, excluded))
        if not chosen:
            raise asyncio.CancelledError
        return chosen

    def search_started(self, pilot: Autopilot) -> None:
        self._pilot = pilot

    async def approve(self, values: Mapping[str, str]) -> bool:
        question = Content(f"Try {values_words(values)}?")
        answer = await self._answer(ConfirmScreen(question, "try it", "exclude it"))
        if answer is None and self._pilot is not None:
            # Without a terminal, nobody approves further values.
            self._pilot.finish()
        return answer is True

    async def keep(self, result: SearchResult) -> bool:
        state = self.session.state.autopilot
        if self._apply or state is None:
            return self._apply
        words = Content(result_line(replace(state, ended=result.ended), result.verdict))
        confirm = "apply and close" if result.ended.outcome == "better" else "close"
        return await self._answer(ConfirmScreen(words, confirm, "close, with the original values")) is True

    async def _answer(self, question: Dialog[Answer]) -> Answer | None:
        """Ask once no other screen is above the main screen; None: the terminal closed."""
        while self.is_running and not isinstance(self.screen, MainScreen):
            self.show_notice(f"the search has a question; {DialogKey.CLOSE}: close this screen", matter="question")
            await asyncio.sleep(CHECK_INTERVAL)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def answered(given: Answer | None) -> None:
            if not answer.done():
                assert given is not None
                answer.set_result(given)

        if self.is_running:
            question.open_by_itself()
            self.push_screen(question, answered)
        while self.is_running and not answer.done():
            await asyncio.wait([answer], timeout=CHECK_INTERVAL)
        return answer.result() if answer.done() else None
