"""The tuning panel: each knob with its active value, the diff of the pending change, and earlier changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import DescendantFocus
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static

from cockpit.analysis.rounds import progress
from cockpit.analysis.words.rounds import progress_words
from cockpit.model.errors import CockpitError
from cockpit.model.knobs import ServerAction
from cockpit.model.state import Change
from cockpit.model.text import sanitize
from cockpit.session.loop import Session
from cockpit.session.tuning import Preview
from cockpit.tui.dialogs.prompt import ChoiceScreen, Dialog, FilterScreen
from cockpit.tui.key_names import bindings
from cockpit.tui.key_table import TuningKey
from cockpit.tui.terminal.styled_line import Line, content
from cockpit.tui.tuning.baseline import offer, power_words
from cockpit.tui.tuning.changes import (
    action_line,
    change_lines,
    change_status_words,
    details,
    is_changed,
    panel_title,
    plan_words,
    preview_lines,
)
from cockpit.tui.tuning.pending import ask_to_undo
from cockpit.tui.tuning.rounds import ask
from cockpit.tui.tuning.widgets import KEYS, READ_ONLY, STYLE, ActionStatus, History, KnobRow, ValueInput

if TYPE_CHECKING:
    from cockpit.session.live_tuning import LiveTuning
    from cockpit.tui.app import CockpitApp

_REFRESH = 0.5
_READING = "reading the values …"
# Seconds after which a guarded change is rolled back unless it is kept.
CONFIRM_WITHIN = 60.0


class ChangeRequest(NamedTuple):
    """A confirmed change; `within`: seconds after which it is rolled back unless it is kept, None: it stays. `shown`:
    the old values in its diff."""

    values: Mapping[str, str]
    within: float | None
    shown: Mapping[str, str | None]


class TuningScreen(Dialog[ChangeRequest]):
    """Shows the knobs, and returns the typed values as one change.

    `drafts`: typed values by knob, kept while the panel is closed; `preview`: the knob that is selected, with the diff
    of the typed values, or "". `is_pending`: whether a confirmed change is under way.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(TuningKey, {TuningKey.KEEP, TuningKey.UNDO, TuningKey.ROUNDS})
    DEFAULT_CSS = STYLE

    def __init__(
        self, session: Session, drafts: dict[str, str], is_pending: Callable[[], bool], *, preview: str = ""
    ) -> None:
        super().__init__()
        self.session = session
        self._drafts, self._is_pending, self._first = drafts, is_pending, preview
        self._status = ActionStatus(id="status")
        self._guarded = False
        self._previewed: tuple[Mapping[str, str], tuple[Preview, ...]] | None = None
        self._asked = ""
        self._plan_lines: list[Line] = []
        self._seen: tuple[object, ...] = ()

    @property
    def _title(self) -> str:
        return panel_title(self.session.controls.position if self.session.past is not None else None)

    @property
    def _cockpit(self) -> CockpitApp:
        return cast("CockpitApp", self.app)

    @property
    def _tuning(self) -> LiveTuning | None:
        return self.session.controls.tuning

    def compose(self) -> ComposeResult:
        editable = self._tuning is not None
        knobs = self.session.shown.knobs.values()
        started = self.session.shown.started
        actions = [action_line(action) for action in started.actions] if started else []
        self.set_class(bool(actions), "-acting")
        with Vertical() as panel:
            panel.border_title = self._title
            with Horizontal(classes="quiet") as head:
                head.styles.height = 1
                yield Static("knob", classes="name")
                yield Static("active", classes="value")
                yield Static("cost", classes="cost")
                if editable:
                    yield Static("new value", classes="entry")
            with VerticalScroll(id="knobs", can_focus=False):
                for knob in knobs:
                    yield KnobRow(knob, editable, self._drafts.get(knob.knob.name, ""))
                if not knobs:
                    none = "No knobs in this profile. Add a [[knob]] block; cockpit new finds the knobs of a host."
                    yield Static(Content(none), classes="quiet")
            yield Static(id="details")
            with VerticalScroll(id="diff", can_focus=False):
                yield Static(id="plan")
            yield self._status
            undo = "; Enter: undo" if editable else ""
            yield Static(f"changes, newest first{undo}", classes="heading")
            yield History(id="history", compact=True)
            shown = "" if actions else " -none"
            yield Static(f"actions{'; Enter: run' if editable else ''}", classes=f"heading{shown}")
            yield OptionList(*(Content(line) for line in actions), id="actions", compact=True, classes=shown.strip())
            yield Static(KEYS if editable else READ_ONLY, id="keys")

    def on_mount(self) -> None:
        self.set_interval(_REFRESH, self._poll)
        self.action_reread()
        if self._first:
            self.call_after_refresh(self._preview_first)

    def _preview_first(self) -> None:
        self.set_focus(next(row.place for row in self.query(KnobRow) if row.knob.name == self._first))
        self.action_apply()

    def on_resize(self) -> None:
        self.set_class(self.size.height < 34, "-short")
        self._seen = ()
        self.call_after_refresh(self._poll)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        row = event.widget.parent
        if isinstance(row, KnobRow):
            self.query_one("#details", Static).update(Content(details(row.known)))
        self._show_plan()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._drafts.clear()
        self._drafts.update(self._typed())
        self._show_plan()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.action_apply()

    def on_value_input_picking(self, event: ValueInput.Picking) -> None:
        field, known = event.field, self.session.shown.knobs.get(event.field.knob.name)
        choices, active = field.knob.choices, known.value if known else None

        def picked(at: int) -> None:
            if field.is_attached:
                field.value = choices[at]

        lines = [f"{sanitize(value)}{'  active' if value == active else ''}" for value in choices]
        at = choices.index(active) if active in choices else None
        ChoiceScreen(field.knob.name, lines, at).ask(self.app, picked)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._show_plan()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Run an action at the second Enter; undo a change after confirmation."""
        tuning = self._tuning
        started = self.session.shown.started
        if tuning is None or self._status.waits() or started is None:
            return
        if event.option_list.id == "actions":
            self._act(tuning, started.actions[event.option_index])
        else:
            change = self.query_one(History).change(self.session.shown, event.option_index)
            if change is None:
                return
            self._ask_to_undo(tuning, change.letter)

    def _act(self, tuning: LiveTuning, action: ServerAction) -> None:
        name = sanitize(action.name)
        if self._asked != action.name:
            self._asked = action.name
            self._status.show_text(f"Enter again: run {name} on {sanitize(action.host)}")
        else:
            self._start(f"running {name} …", tuning.commands.act(action.name), f"{name} done")

    def action_move(self, step: int) -> None:
        """Select the next or previous knob."""
        places = [row.place for row in self.query(KnobRow) if row.display]
        if places:
            at = next((at for at, place in enumerate(places) if place is self.focused), -step)
            # focus() would be too late: the next typed key belongs to the next field.
            self.set_focus(places[(at + step) % len(places)])

    def action_filter(self) -> None:
        """Show only the settings with a text in their names; an empty text shows all."""

        def typed(text: str) -> None:
            for row in self.query(KnobRow):
                row.display = text.strip().casefold() in row.knob.name.casefold()

        def closed(_: str | None) -> None:
            self.set_focus(None)
            self.action_move(1)

        typed("")
        self.app.push_screen(FilterScreen("filter settings", "", typed), closed)

    def action_section(self, step: int) -> None:
        """Focus the next part: knobs, diff (if it scrolls), history, actions."""
        diff = self.query_one("#diff", VerticalScroll)
        diff.can_focus = diff.max_scroll_y > 0
        rows = [row for row in self.query(KnobRow) if row.display]
        parts: list[Widget] = [rows[0].place] if rows else []
        lists: list[Widget] = [self.query_one(name) for name in ("#diff", "#history", "#actions")]
        parts += [part for part in lists if part.can_focus and part.display]
        at = next((at for at, part in enumerate(parts) if part is self.focused), 0)
        self.set_focus(parts[(at + step) % len(parts)])
        self._show_plan()

    def action_apply(self) -> None:
        """Apply all typed values as one change; the first Enter shows the diff and its cost."""
        tuning, values = self._tuning, self._typed()
        if tuning is None or self._status.waits():
            return
        if self._is_pending():
            self._status.show_text("a change is under way (one action at a time)")
            return
        if not values:
            self._status.show_text("type new values first")
        elif self._previewed is None or self._previewed[0] != values:
            self._start("preparing the diff …", self._preview(tuning, values))
        else:
            # Nothing covers the charts from here to the verdict.
            shown = {setting.knob: setting.old for each in self._previewed[1] for setting in each.settings}
            self.dismiss(ChangeRequest(values, CONFIRM_WITHIN if self._guarded else None, shown))

    def action_close(self) -> None:
        """Close the panel; the typed values stay."""
        self.dismiss(None)

    async def _preview(self, tuning: LiveTuning, values: Mapping[str, str]) -> None:
        previews = await tuning.preview(values)
        self._previewed = (dict(values), previews)
        if self.is_attached:
            self._show_plan()
            guarded = f", rolled back after {CONFIRM_WITHIN:.0f} s unless kept" if self._guarded else ""
            self._status.show_text(
                f"{offer(self.session.state) or 'Enter again: apply'}{guarded}"
                if any(each.diff for each in previews)
                else "nothing to change: the host has these values already"
            )

    def action_guard(self) -> None:
        """Toggle the guard: guarded changes are rolled back unless they are kept."""
        self._guarded = not self._guarded
        guarded = f"are rolled back after {CONFIRM_WITHIN:.0f} s unless {TuningKey.KEEP} keeps them"
        effect = guarded if self._guarded else "stay active"
        self._status.show_text(f"new changes {effect}")

    def action_keep(self) -> None:
        """Keep the guarded change."""
        if self._tuning is not None:
            try:
                self._tuning.confirm()
            except CockpitError as error:
                self._status.show_text(str(error), bad=True)

    def action_undo(self) -> None:
        """Undo the last change, or the guarded one."""
        tuning = self._tuning
        if tuning is None:
            return
        if (awaited := self._awaited()) is not None:
            self._cockpit.run_work(self._undo_awaited(tuning, awaited.letter))
        elif not self._status.waits():
            self._ask_to_undo(tuning)

    def _ask_to_undo(self, tuning: LiveTuning, letter: str = "") -> None:
        def undo(letter: str) -> None:
            self._start(f"undoing {letter} …", tuning.undo(letter), f"{letter} undone: the previous values are set")

        self._start("preparing the diff of the undo …", ask_to_undo(self._cockpit, tuning, letter, undo))

    async def _undo_awaited(self, tuning: LiveTuning, letter: str) -> None:
        """Undo the guarded change while its action still waits for confirmation."""
        try:
            await tuning.undo(letter)
        except CockpitError as error:
            self._status.report(f"not done: {error}", bad=True)

    def action_rounds(self) -> None:
        """Measure the typed values, or the last change, in rounds; stop running rounds."""
        tuning = self._tuning
        if tuning is None or (self._status.waits() and not tuning.running_rounds):
            return
        ask(self._cockpit, self.session, tuning, self._typed(), self._status.report)

    def action_reread(self) -> None:
        """Read all values again; other actions need not wait for them."""
        if self._tuning is not None and not self._status.busy:
            self._status.show_text(_READING)
            self.app.run_worker(self._reread(self._tuning))

    async def _reread(self, tuning: LiveTuning) -> None:
        await tuning.refresh()
        if self.is_attached and self._status.shown == _READING:
            self._status.show_text("")

    def _start(self, words: str, work: Awaitable[None], done: str = "") -> None:
        self._asked = ""

        def failed() -> None:
            self._previewed = None

        self._status.start(words, work, done, failed)

    def _poll(self) -> None:
        if not self.is_attached:
            return
        awaited = self._awaited()
        if awaited is not None:
            keys = f"{TuningKey.KEEP}: keep, {TuningKey.UNDO}: undo"
            self._status.show_text(f"{awaited.letter} is {change_status_words(awaited, self.session.shown)}. {keys}")
        elif (rounds := progress(self.session.state, self.session.state.t)) is not None:
            self._status.show_text(f"{progress_words(rounds)}. {TuningKey.ROUNDS}: stop")
        seen = (self.session.shown_revision, self.size)
        if seen == self._seen:
            return
        self._seen = seen
        self.query_one("TuningScreen > Vertical").border_title = self._title
        for row in self.query(KnobRow):
            if row.update(self.session.shown.knobs.get(row.knob.name, row.known)) and row.place is self.focused:
                self.query_one("#details", Static).update(Content(details(row.known)))
        self._show_plan()
        self.query_one(History).show_changes(self.session.shown)

    def _typed(self) -> dict[str, str]:
        return {row.knob.name: row.typed() for row in self.query(KnobRow) if row.typed()}

    def _awaited(self) -> Change | None:
        """Return the guarded change that waits for confirmation."""
        if self._tuning is None:
            return None
        return next((change for change in self.session.shown.changes if change.confirm_by is not None), None)

    def _show_plan(self) -> None:
        lines = self._plan()
        if lines != self._plan_lines:
            self._plan_lines = lines
            self.query_one("#plan", Static).update(content(lines))
            self.call_after_refresh(self._show_changed_lines)

    def _show_changed_lines(self) -> None:
        """Scroll the diff to its changed lines if it has more lines than room."""
        changed = [at for at, line in enumerate(self._plan_lines) if is_changed("".join(text for text, _ in line))]
        for diff in self.query("#diff").results(VerticalScroll):
            hidden = changed and changed[-1] >= diff.size.height
            diff.scroll_to(y=max(0, changed[0] - 1) if hidden else 0, animate=False)

    def _plan(self) -> list[Line]:
        """Return lines about the selected change of the history, else the typed values, else a change under way."""
        state, values = self.session.shown, self._typed()
        history = self.query_one(History)
        chosen = history.change(state, history.highlighted) if history.has_focus else None
        if chosen is not None:
            return change_lines(chosen, state)
        if values:
            invalid = next(filter(None, (row.format_error() for row in self.query(KnobRow))), "")
            head: Line = ((invalid or f"will change  {plan_words(state, values)}", "warn" if invalid else "strong"),)
            is_current = self._previewed is not None and self._previewed[0] == values
            power = power_words(self.session.state) if self.session.past is None else ""
            power_lines: list[Line] = [((power, "dim"),)] if power else []
            return [head, *power_lines, *(preview_lines(self._previewed[1]) if is_current and self._previewed else [])]
        last = state.own_changes[-1] if state.own_changes else None
        return change_lines(last, state) if last is not None and not last.outcome else []
