"""A quick check of the running load, or of a new run: one line per threshold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from cockpit.analysis.baseline import Baseline
from cockpit.analysis.quick_check import QUICK, quick_check
from cockpit.analysis.thresholds import Status, ThresholdResult
from cockpit.analysis.words.thresholds import found_words
from cockpit.model.errors import CockpitError
from cockpit.model.state import Segment, State
from cockpit.model.text import sanitize
from cockpit.session.controls import LoadPhase, LoadStatus
from cockpit.session.loop import Session
from cockpit.tui.dialogs.prompt import Dialog
from cockpit.tui.draw_context import BaselineOf
from cockpit.tui.key_names import close_binding, key_hints
from cockpit.tui.key_table import DialogKey, MainKey

# Seconds between updates.
POLL = 0.2
_SIGNS = {
    Status.HOLDS: ("✓", "$cockpit-better"),
    Status.FAILED: ("✗", "$cockpit-worse"),
    Status.INCONCLUSIVE: ("?", "$cockpit-warn"),
}


class CheckScreen(Dialog[None]):
    """Shows the result of each threshold once the newest segment has QUICK seconds of load.

    `toggle` starts and stops the load, in a task; None: the session is replayed, and the segment is checked as
    recorded. A run that this screen started is stopped after the check, or when the screen is closed.
    """

    BINDINGS: ClassVar[list[BindingType]] = [close_binding(MainKey.CHECK)]
    DEFAULT_CSS = """
    CheckScreen > Vertical { width: 100; }
    """

    def __init__(
        self, session: Session, toggle: Callable[[], asyncio.Task[None] | None] | None, baseline_of: BaselineOf
    ) -> None:
        super().__init__()
        self.session, self.toggle, self.baseline_of = session, toggle, baseline_of
        self.results: tuple[ThresholdResult, ...] | None = None
        self._runs_before = session.state.runs
        self._started = False
        self._start: asyncio.Task[None] | None = None

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "check"
            yield Static(id="results")
            yield Static(key_hints((DialogKey.CLOSE, ": close")), classes="hint")

    def on_mount(self) -> None:
        if self.toggle is not None and not self._active:
            self._started = True
            self._start = self.toggle()
        self._poll = self.set_interval(POLL, self._update)
        self._update()

    def on_unmount(self) -> None:
        self._stop()

    def _stop(self) -> None:
        """Stop the load that this screen started."""
        if self._started and self.toggle is not None and self._active:
            self.toggle()
        self._started = False

    @property
    def _active(self) -> bool:
        """Whether load is running or starting."""
        status = self.session.controls.status
        busy = isinstance(status, LoadStatus) and status.phase is not LoadPhase.IDLE
        return busy or self.session.state.running is not None

    def _update(self) -> None:
        state = self.session.shown if self.toggle is None else self.session.state
        segment = self._segment(state)
        runs = segment is not None and self.toggle is not None and state.running == segment.run
        if segment is None and (failure := self._failure()):
            self._poll.stop()
            self._show(f"not started: {failure}")
            return
        if segment is None or (runs and (segment.warmup or segment.seconds < QUICK)):
            self._show(f"waiting for {max(0.0, QUICK - (segment.seconds if segment else 0.0)):.0f} s of load …")
            return
        self._poll.stop()
        self._stop()
        try:
            baseline = self.baseline_of(state.plans[segment.run])
            self.results = quick_check(state, segment, baseline)
        except CockpitError as error:
            self._show(str(error))
            return
        self._show(*_lines(segment, self.results, baseline))

    def _failure(self) -> str:
        """Return why the load that this screen started does not run, or ""."""
        status, over = self.session.controls.status, self._start is not None and self._start.done()
        return sanitize(status.failure) if over and isinstance(status, LoadStatus) else ""

    def _segment(self, state: State) -> Segment | None:
        segment = state.segment
        if segment is None or (self._started and segment.run <= self._runs_before):
            return None
        return segment

    def _show(self, *lines: str | Content) -> None:
        self.query_one("#results", Static).update(
            Content("\n").join(Content(line) if isinstance(line, str) else line for line in lines)
        )


def _lines(segment: Segment, results: tuple[ThresholdResult, ...], baseline: Baseline | None) -> Iterator[Content]:
    """Yield the verdict with the checked segment, then one line per threshold with its sign, limit and value."""
    failed = sum(result.status is Status.FAILED for result in results)
    undecided = sum(result.status is Status.INCONCLUSIVE for result in results)
    words, style = ("pass", "$cockpit-better")
    if failed or undecided:
        words, style = (
            (f"{failed} of {len(results)} failed", "$cockpit-worse") if failed else ("inconclusive", "$cockpit-warn")
        )
    against = f" · baseline {baseline.name}" if baseline else " · no baseline for this load"
    yield Content.assemble(
        (words, f"bold {style}"),
        (f" · segment {segment.number}, {segment.seconds:.0f} s of load{against}", "$cockpit-dim"),
    )
    width = max(len(result.threshold.text) for result in results)
    for result in results:
        sign, colour = _SIGNS[result.status]
        yield Content.assemble((sign, colour), f"  {result.threshold.text:<{width}}  ", (found_words(result), colour))
