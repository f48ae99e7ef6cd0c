"""The main screen with a search above it: its progress, the best settings so far, and the newest evaluations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeVar

from msgspec.structs import replace
from rich.cells import set_cell_size
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static

from cockpit.autopilot.diagnosis import FoundLimit, proposed
from cockpit.autopilot.person import Search
from cockpit.autopilot.runner import Autopilot, SearchResult
from cockpit.autopilot.words import claim, diagnosis_lines, trial_line, values_words
from cockpit.model.text import elapsed, neutral
from cockpit.session.loop import Session
from cockpit.tui.dialogs.prompt import Dialog
from cockpit.tui.key_names import key_hints
from cockpit.tui.main_screen import FRAME, MainScreen
from cockpit.tui.task_app import TaskApp
from cockpit.tui.terminal.appearance import Appearance

# Number of evaluations shown: on a screen of at least _HIGH lines, and on a lower one.
_ROWS, _HIGH, _FEW = 4, 34, 1
Answer = TypeVar("Answer")


class SearchLine(Static):
    DEFAULT_CSS = "SearchLine { height: auto; max-height: 7; background: $panel; padding: 0 1; }"

    def __init__(self, session: Session, pilot: Callable[[], Autopilot | None]) -> None:
        super().__init__("", markup=False)
        self._session, self._pilot = session, pilot

    def on_mount(self) -> None:
        self.refresh_words()
        self.set_interval(FRAME, self.refresh_words)

    def refresh_words(self) -> None:
        pilot, state = self._pilot(), self._session.state.autopilot
        width = self.app.size.width - 2
        if pilot is None or state is None:
            diagnosing = self._session.state.runs > 0
            self.update("search  measuring what limits the server" if diagnosing else "search  connecting")
            return
        rows = _ROWS if self.app.size.height >= _HIGH else _FEW
        paused = "PAUSED · " if pilot.paused else ""
        count = len(state.trials)
        left = f"at most {elapsed(max(0.0, pilot.left))} left"
        first = f"search  {paused}{count} evaluation{'' if count == 1 else 's'} · {left}"
        keys = "   P: pause · K: skip · F: finish and prove · A: all evaluations"
        lines = [first + (keys if len(first) + len(keys) <= width else "   A: all evaluations")]
        lines += [f"  {trial_line(trial, state)}" for trial in state.trials[-rows:]]
        self.update("\n".join(set_cell_size(line, width).rstrip() for line in lines))


class KnobsScreen(Dialog[tuple[str, ...]]):
    """What limits the server, and which knobs are searched: those that bear on it, until somebody chooses others. Ends
    with none if it is left."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "choose", "select or deselect", priority=True),
        Binding("enter", "search", "search these knobs", priority=True),
        Binding("escape,q", "dismiss(())", "quit"),
    ]
    DEFAULT_CSS = """
    KnobsScreen > Vertical { width: 100; overflow-y: auto; }
    KnobsScreen OptionList { height: auto; max-height: 16; margin: 1 0; border: none; background: $surface; }
    """

    def __init__(self, found: Sequence[FoundLimit], knobs: Sequence[str], left_out: Sequence[str] = ()) -> None:
        super().__init__()
        self._found, self._knobs, self._left_out = found, knobs, left_out
        named = [name for name in proposed(found) if name in knobs]
        self._chosen = set(named or knobs)

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "what limits the server, and what to search"
            yield Static(Content("\n".join(diagnosis_lines(self._found))))
            yield OptionList(*map(self._row, self._knobs), compact=True)
            yield Static(Content("\n".join(self._left_out)), classes="hint")
            keys = [("Space", ": search it or not"), ("Enter", ": begin"), ("q", ": quit")]
            yield Static(key_hints(*keys), classes="hint")

    def _row(self, name: str) -> Content:
        return Content(f"[{'x' if name in self._chosen else ' '}] {neutral(name)}")

    def action_choose(self) -> None:
        """Search the highlighted knob, or leave it out."""
        rows = self.query_one(OptionList)
        if rows.highlighted is not None:
            name = self._knobs[rows.highlighted]
            self._chosen ^= {name}
            rows.replace_option_prompt_at_index(rows.highlighted, self._row(name))

    def action_search(self) -> None:
        """Begin with the chosen knobs."""
        if self._chosen:
            self.dismiss(tuple(name for name in self._knobs if name in self._chosen))
        else:
            self.app.bell()


class ApproveScreen(Dialog[bool]):
    """Whether these values may be tried."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "dismiss(True)", "try it"),
        Binding("escape", "dismiss(False)", "never try it"),
        Binding("q", "app.leave", "quit"),
    ]
    DEFAULT_CSS = """
    ApproveScreen > Vertical { width: 72; }
    """

    def __init__(self, question: str) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(self.question))
            yield Static(key_hints(("Enter", ": try it"), ("Esc", ": never try it"), ("q", ": quit")), classes="hint")


class EndScreen(Dialog[bool]):
    """The claim of a search, and whether its values are to stay active; `question`: there are some."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "dismiss(True)", "apply the proved values"),
        Binding("escape,q", "dismiss(False)", "close"),
    ]
    DEFAULT_CSS = """
    EndScreen > Vertical { width: 72; }
    """

    def __init__(self, words: str, *, question: bool) -> None:
        super().__init__()
        self._words, self._question = words, question

    def compose(self) -> ComposeResult:
        keys = [("Enter", ": apply and close"), ("q", ": close, with the original values")]
        with Vertical():
            yield Static(Content(self._words))
            yield Static(key_hints(*keys if self._question else keys[1:]), classes="hint")


class AutopilotScreen(MainScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("P", "pause", "pause the search, or go on"),
        Binding("K", "skip", "skip the evaluation under way"),
        Binding("F", "finish", "end the search and prove the best"),
    ]

    def __init__(self, session: Session, pilot: Callable[[], Autopilot | None]) -> None:
        super().__init__(session)
        self._pilot = pilot

    def compose(self) -> ComposeResult:
        yield SearchLine(self.session, self._pilot)
        yield from super().compose()

    def action_pause(self) -> None:
        """Pause before the next evaluation, or go on."""
        self._tell(Autopilot.pause)

    def action_skip(self) -> None:
        """End the evaluation under way, without a result."""
        self._tell(Autopilot.skip)

    def action_finish(self) -> None:
        """End the search after this evaluation, and prove the best."""
        self._tell(Autopilot.finish)

    def _tell(self, what: Callable[[Autopilot], None]) -> None:
        pilot = self._pilot()
        if pilot is None:
            self.show_reason("the search has not begun yet")
        else:
            what(pilot)


class AutopilotApp(TaskApp):
    """Runs a search, shows it, and asks at its end whether the proved values are to stay; `apply`: they are, without a
    question. Leaving interrupts it; the original values are active before it closes."""

    work = "search"

    def __init__(
        self, session: Session, search: Search, appearance: Appearance | None = None, *, apply: bool = False
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

    async def choose(self, found: Sequence[FoundLimit], knobs: Sequence[str], left_out: Sequence[str]) -> Sequence[str]:
        chosen = await self._answer(KnobsScreen(found, knobs, left_out))
        if not chosen:
            raise asyncio.CancelledError
        return chosen

    def began(self, pilot: Autopilot) -> None:
        self._pilot = pilot

    async def approve(self, values: Mapping[str, str]) -> bool:
        return await self._answer(ApproveScreen(f"Try {values_words(values)}?"))

    async def keep(self, found: SearchResult) -> bool:
        state = self.session.state.autopilot
        if self._apply or state is None:
            return self._apply
        better = found.ended.outcome == "better"
        return await self._answer(EndScreen(claim(replace(state, ended=found.ended), found.verdict), question=better))

    async def _answer(self, question: Dialog[Answer]) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def answered(given: Answer | None) -> None:
            if not answer.done():
                assert given is not None
                answer.set_result(given)

        self.push_screen(question, answered)
        return await answer
