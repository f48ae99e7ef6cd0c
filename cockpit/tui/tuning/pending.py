"""A confirmed change: the wait for its baseline, its application, and its stages in place of the verdict; the
confirmation of an undo."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from cockpit.analysis.verdicts.wait import BASELINE, baseline_wait
from cockpit.model.errors import CockpitError
from cockpit.model.knobs import not_yet_active
from cockpit.model.state import Change, State
from cockpit.model.text import sanitize
from cockpit.session.loop import EndOfSession, Session
from cockpit.tui.dialogs.prompt import ConfirmScreen
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_table import MainKey, SessionKey, TuningKey, ViewKey
from cockpit.tui.terminal.styled_line import EMPTY, Line, clip, content, join_fitting, rule
from cockpit.tui.tuning.baseline import MARGIN, offer
from cockpit.tui.tuning.changes import inactive_knobs, plan_words, preview_lines

if TYPE_CHECKING:
    from cockpit.session.live_tuning import LiveTuning
    from cockpit.tui.app import CockpitApp

_BAR = 24


class ConfirmedChange:
    """A change of `values` from its confirmation to its outcome; `within`: seconds after which it is rolled back
    unless it is kept. `shown` are the old values in its diff, `drafts` the typed values of the tuning panel, which an
    applied change removes."""

    def __init__(
        self,
        app: CockpitApp,
        session: Session,
        tuning: LiveTuning,
        values: Mapping[str, str],
        within: float | None,
        shown: Mapping[str, str | None],
        drafts: dict[str, str],
    ) -> None:
        self.plan = plan_words(session.shown, values)
        self.waiting = bool(offer(session.state))
        self.is_over = False
        self._app, self._session, self._tuning = app, session, tuning
        self._values, self._within, self._shown, self._drafts = dict(values), within, shown, drafts
        self._run = session.state.running
        if self.waiting:
            tuning.await_baseline(baseline_wait(session.state) + MARGIN)
            app.run_work(self._wait())
        else:
            self.apply()

    async def _wait(self) -> None:
        """Apply the change when the baseline is complete; give up if the load ended."""

        def is_over(state: State) -> bool:
            return not self.waiting or state.running != self._run or not baseline_wait(state)

        with suppress(EndOfSession):
            state = await self._session.until(is_over)
            if self.waiting and state.running == self._run:
                self.apply()
            elif self.waiting:
                ended = "the load ended before the baseline was complete"
                self._give_up(f"not applied: {ended}; {MainKey.TUNE}: tune", True)

    def apply(self) -> None:
        """Apply the change now. From here on it extends the run."""
        self.waiting = False
        self._app.run_work(self._apply())

    def cancel(self) -> None:
        """Do not apply the change. Only while it waits."""
        self._give_up("not applied", False)

    def _give_up(self, words: str, bad: bool) -> None:
        self.waiting, self.is_over = False, True
        self._tuning.release()
        self._report(words, bad)

    async def _apply(self) -> None:
        known = len(self._session.state.changes)
        try:
            await self._tuning.apply(self._values, self._within, expected=self._shown)
        except CockpitError as error:
            self._report(f"not done: {error}; {MainKey.TUNE}: the typed values", True)
            return
        finally:
            self.is_over = True
        for name, value in self._values.items():
            if self._drafts.get(name) == value:
                del self._drafts[name]
        # Wait until the change has reached the session's state.
        with suppress(EndOfSession):
            await self._session.until(lambda state: len(state.changes) > known and bool(state.changes[-1].outcome))
        self._report(self._outcome(self._session.state, known), False)

    def _outcome(self, state: State, known: int) -> str:
        changes = state.changes[known:]
        # The server may have corrected values.
        notes = [change.detail for change in changes if change.detail]
        pending = not_yet_active(knob for change in changes for knob in inactive_knobs(change, state))
        next_step = (
            [] if state.running is not None or pending else [f"{SessionKey.TOGGLE}: start a run to see its effect"]
        )
        return "; ".join([f"{pending or 'active'}: {self.plan}", *notes, *next_step])

    def _report(self, words: str, bad: bool) -> None:
        self._app.show_notice(words, severity="error" if bad else "information", matter="tuning")


async def ask_to_undo(app: CockpitApp, tuning: LiveTuning, letter: str, undo: Callable[[str], None]) -> None:
    """Show the diff of an undo on the current screen, and call `undo(letter)` once confirmed. Raises ChangeRefused,
    HostError."""
    screen = app.screen
    preview = await tuning.preview_undo(letter)
    if preview is None:
        undo(letter)
        return
    if not screen.is_active:
        app.show_notice(f"undo not confirmed: its screen was closed or covered; {MainKey.UNDO}: undo", matter="undo")
        return
    title = f"undo {preview.letter} on {sanitize(preview.host)}?"
    confirm = ConfirmScreen(content(preview_lines([preview])), "undo", "leave it active", title)
    confirm.open_by_itself()
    confirm.ask(app, lambda _: undo(preview.letter))


def change_under_way(state: State) -> Change | None:
    """Return the newest change if its outcome is not known yet."""
    return state.own_changes[-1] if state.own_changes and not state.own_changes[-1].outcome else None


def pending_lines(context: DrawContext, width: int) -> list[Line]:
    """Return the lines of a confirmed change or of a change under way; [] if there is none."""
    change = change_under_way(context.state)
    if context.waiting and change is None:
        return waiting_lines(context.waiting, context.state, width)
    if change is not None and context.view.segment is None and context.state.running_rounds is None:
        return stage_lines(change, context.state, width)
    return []


def waiting_lines(plan: str, state: State, width: int) -> list[Line]:
    """Return the lines of a confirmed change before its first stage: it waits for its baseline, or for the host."""
    left = baseline_wait(state)
    title = rule((("change ", "title"), (plan, "text")), (), width)
    if not left:
        return [title, (("… ", "chart"), ("applying", ""))]
    done = round(_BAR * max(0.0, 1 - left / BASELINE))
    bar: Line = (("━" * done, "chart"), ("·" * (_BAR - done), "rule"))
    keys = f"{ViewKey.FOCUS}: apply now, without a verdict   {MainKey.BACK}: cancel"
    return [
        title,
        clip((("baseline ", "strong"), *bar, (f" applied in {math.ceil(left)} s", "")), width),
        clip(((keys, "dim"),), width),
    ]


def stage_lines(change: Change, state: State, width: int) -> list[Line]:
    """Return the lines of a change that is being applied: its stages so far, and what follows."""
    settings = ", ".join(f"{each.knob} {each.old or 'unset'} → {each.new}" for each in change.settings)
    stages: list[Line] = [((f"✓ {sanitize(stage)}", "better_value"),) for stage in change.stages]
    passed = f"{max(0.0, state.t - change.begun):.0f} s"
    if change.confirm_by is None:
        last: Line = (("… ", "chart"), (f"under way for {passed}", ""))
        rest = "" if "active" in change.stages else "the segment of the change starts when it is active"
    else:
        last = ((f"rolled back in {max(0.0, change.confirm_by - state.t):.0f} s unless kept", "warn"),)
        rest = f"{MainKey.TUNE}, then {TuningKey.KEEP}: keep   {MainKey.UNDO}: undo"
    return [
        rule((("change ", "title"), (sanitize(f"{change.letter} {settings}"), "text")), (), width),
        join_fitting([*stages, last], width) or clip(last, width),
        clip(((rest, "dim"),), width) if rest else EMPTY,
    ]
