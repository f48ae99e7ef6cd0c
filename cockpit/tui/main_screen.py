"""The main screen: polls the session, draws frames, and passes keys to the session's controls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Key, Resize

from cockpit.model.errors import CockpitError, UsageError
from cockpit.model.load.plan import LoadPlan
from cockpit.session.controls import Action, PlaybackStatus, immediate
from cockpit.session.loop import Session
from cockpit.tui import navigation
from cockpit.tui.charts.latency import Latency
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.dialogs.help import HelpScreen, help_entries
from cockpit.tui.dialogs.host_prompt import ask_user
from cockpit.tui.dialogs.load_form import LoadForm
from cockpit.tui.dialogs.prompt import PromptScreen
from cockpit.tui.draw_context import LATENCY_VIEWS, BaselineOf
from cockpit.tui.footer import Footer
from cockpit.tui.generators import MOST, Generators, GeneratorScreen
from cockpit.tui.hosts.panes import MOST_LINES, HostLines, HostPanes
from cockpit.tui.key_help import main_help
from cockpit.tui.key_names import action_key, bindings, no_load_words
from cockpit.tui.key_table import MainKey, ViewKey
from cockpit.tui.layouts import LAYOUTS, layout_for, verdict_height
from cockpit.tui.load_fields import LoadParser
from cockpit.tui.palette import Command, main_commands, marker_commands
from cockpit.tui.runs.check import CheckScreen
from cockpit.tui.runs.compare import CompareScreen
from cockpit.tui.runs.strip_lines import VerdictStrip
from cockpit.tui.runs.table import Runs
from cockpit.tui.status_lines import DamageLines, Position, TopLine, loss_lines
from cockpit.tui.terminal.cuts import CutPane
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.tiny_screen import TinyScreen
from cockpit.tui.tuning.pending import ConfirmedChange, ask_to_undo
from cockpit.tui.tuning.rounds import ask
from cockpit.tui.tuning.screen import ChangeRequest, TuningScreen
from cockpit.tui.typed_commands import changeable_load, help_command, load_commands, setting_command
from cockpit.tui.view_keys import ViewKeys

if TYPE_CHECKING:
    from cockpit.session.live_tuning import LiveTuning

# Seconds between two frames. A slower terminal misses frames, never events.
FRAME = 0.9
# In lite mode, frames per drawn frame; keys still draw at once.
_LITE = 2

# Minimum width (cells) for two hosts side by side in their column.
_BROAD = 180

# Minimum height (lines) for the latency chart; the runs table has its metrics too.
_ROOM_FOR_LATENCY = 19
# Lines of the verdict that need no extra room beside the latency chart.
_SPARE = 2

# Keys that scroll the focused list; they override the session's actions on the same keys.
_SCROLLS = {key.key for key in (MainKey.UP, MainKey.DOWN, ViewKey.PAGE_UP, ViewKey.PAGE_DOWN)}


class MainScreen(ViewKeys):
    BINDINGS: ClassVar[list[BindingType]] = bindings(MainKey)
    DEFAULT_CSS = """
    MainScreen { layout: vertical; background: $background; }
    MainScreen #body { height: 1fr; }
    MainScreen #left { width: 56fr; }
    MainScreen #right { width: 44fr; }
    MainScreen #throughput { height: 12fr; }
    MainScreen #latency { height: 10fr; }
    MainScreen #latency > .cut { margin: 1 0 0 0; }
    MainScreen Runs { height: 7fr; }
    MainScreen HostPanes { height: 1fr; }
    MainScreen HostLines { padding: 0 1; display: none; }
    MainScreen TinyScreen { height: 1fr; display: none; }
    MainScreen Position { display: none; }
    MainScreen.-extent Position { display: block; }

    MainScreen.-broad #left { width: 45fr; }
    MainScreen.-broad #right { width: 55fr; }
    MainScreen.-no-hosts #right { display: none; }
    MainScreen.-narrow #right { display: none; }
    MainScreen.-narrow HostLines { display: block; }
    MainScreen.-narrow #throughput { min-height: 6; }
    MainScreen.-narrow Runs { height: 8fr; min-height: 4; }
    MainScreen.-narrow.-crowded #latency { display: none; }
    MainScreen.-tiny #body { display: none; }
    MainScreen.-tiny TopLine { display: none; }
    MainScreen.-tiny TinyScreen { display: block; }

    MainScreen.-host-alone #body { display: block; }
    MainScreen.-host-alone #left { display: none; }
    MainScreen.-host-alone #right { display: block; width: 1fr; }
    MainScreen.-host-alone HostLines { display: none; }
    MainScreen.-host-alone TinyScreen { display: none; }
    """

    def __init__(
        self,
        session: Session,
        autostart: str = "",
        answer: str = "",
        baseline_of: BaselineOf = lambda plan: None,
        load_parser: LoadParser | None = None,
    ) -> None:
        super().__init__(session, baseline_of)
        self.autostart, self.answer, self.load_parser = autostart, answer, load_parser
        self._drawn: tuple[object, ...] = ()
        self._ticks = 0
        self._drafts: dict[str, str] = {}
        # Matters of the running work.
        self._works: list[str] = []

    def compose(self) -> ComposeResult:
        yield TopLine()
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield VerdictStrip()
                with CutPane(id="throughput"):
                    yield Throughput()
                with CutPane(id="latency"):
                    yield Latency()
                yield Runs()
            with Vertical(id="right"):
                yield HostPanes()
        yield HostLines()
        yield Generators()
        yield TinyScreen()
        yield DamageLines()
        yield Position()
        yield Footer()

    def on_mount(self) -> None:
        self.set_interval(FRAME, self._tick)
        self.frame()
        if self.autostart:
            self.call_after_refresh(self._start)

    def on_screen_resume(self) -> None:
        self.frame()

    def on_resize(self, event: Resize) -> None:
        self.frame()
        # The hosts share the time axis of the charts, whose width the layout sets.
        self.call_after_refresh(self.frame)

    def on_throughput_resized(self, event: Throughput.Resized) -> None:
        self.frame()

    def _tick(self) -> None:
        """Draw a frame, unless the terminal has not accepted the last one."""
        ask_user(self.app, self, lambda: self.session.controls.question)
        self._ticks += 1
        if self._cockpit.keeps_up() and not (self._cockpit.lite and self._ticks % _LITE):
            self.frame()

    def frame(self, force: bool = False) -> None:
        ask_user(self.app, self, lambda: self.session.controls.question)
        context = self.context()
        recorded = (context.recording_error, context.gaps, context.damaged)
        session = (context.mode, context.status, context.position, context.extent, context.ending, context.waiting)
        shape = (self.size, context.chart_width, context.lite)
        drawn = (self.session.shown_revision, self.view, session, recorded, shape)
        if drawn == self._drawn and not force:
            return
        self._drawn = drawn
        self.time_ranges.reset_budget()
        self._arrange()
        for lines in self.query(Lines):
            lines.show(context)
        if self.time_ranges.behind:
            # Pending keys are handled first.
            self.call_later(self.frame, True)

    def _arrange(self) -> None:
        """Place the panes: by the size, the hosts and the view, never by what happens."""
        layout = layout_for(*self.size)
        hosts = self.session.shown.hosts
        for name in LAYOUTS:
            self.set_class(name == layout, f"-{name}")
        self.set_class(not hosts, "-no-hosts")
        losses = len(loss_lines(self.session.controls.lost))
        generators = min(MOST, len(self.session.shown.generators))
        verdict = verdict_height(layout, self.size.height)
        host_lines = min(MOST_LINES, len(hosts))
        room = self.size.height - host_lines - generators - losses - max(0, verdict - _SPARE)
        self.set_class(room < _ROOM_FOR_LATENCY, "-crowded")
        _set_height(self.query_one(VerdictStrip), verdict)
        self.set_class(self.size.width >= _BROAD and len(hosts) > 1, "-broad")
        self.set_class(self.view.room != "column" and bool(hosts), "-host-alone")
        self.set_class(self.session.controls.extent is not None, "-extent")
        _set_height(self.query_one(HostLines), host_lines)
        _set_height(self.query_one(Generators), 0 if layout == "tiny" else generators)
        _set_height(self.query_one(DamageLines), losses)

    def action_view(self) -> None:
        """Show the next view of latency."""
        at = LATENCY_VIEWS.index(self.view.latency)
        self.set_view(replace(self.view, latency=LATENCY_VIEWS[(at + 1) % len(LATENCY_VIEWS)]))

    def action_baseline(self) -> None:
        """Make the selected segment the baseline."""
        segment = self.context().segment
        if segment is None:
            self.show_reason(no_load_words(self.context()))
            return
        self.set_view(replace(self.view, baseline=segment.number))

    def action_compare(self) -> None:
        """Compare the selected segment with its baseline: verdict and all metrics."""
        if self.context().segment is None:
            self.show_reason(no_load_words(self.context()))
            return
        self.app.push_screen(CompareScreen(self.context, self.set_view))

    def action_machines(self) -> None:
        """Show rate, CPU, lag and clock of each load generator."""
        if not self.session.shown.generators:
            self.show_reason("load is generated only on this machine; to add machines: cockpit help generators")
            return
        self.app.push_screen(GeneratorScreen(self.session))

    def action_check(self) -> None:
        """Check 15 s of load against the thresholds and the last baseline; start a run if none is active."""
        controls = self.session.controls
        replayed = isinstance(controls.status, PlaybackStatus)
        toggle = None if replayed else next((each for each in controls.actions if each.name == "toggle"), None)
        if toggle is None and self.session.shown.segment is None:
            self.show_reason(no_load_words(self.context()) if replayed else "No segment to check yet")
            return
        press = None if toggle is None else partial(self._begin, toggle)
        self.app.push_screen(CheckScreen(self.session, press, self.baseline_of))

    def _live_tuning(self, purpose: str) -> LiveTuning | None:
        if self.session.controls.tuning is None:
            self.show_reason(f"{purpose}: only in a live session; this session is read-only")
        return self.session.controls.tuning

    def action_rounds(self) -> None:
        """Measure the last change in rounds; while rounds run, stop them."""
        if (tuning := self._live_tuning("rounds")) is None:
            return

        def report(words: str, bad: bool) -> None:
            self._cockpit.show_notice(words, severity="error" if bad else "information", matter="rounds")

        ask(self._cockpit, self.session, tuning, {}, report)

    def _set_plan(self, plan: LoadPlan) -> None:
        try:
            load, _ = changeable_load(self.session, self.load_parser)
        except UsageError as error:
            self.show_reason(str(error))
            return
        self._work("load", immediate(lambda _: load.set_plan(plan))(""))

    def action_load(self) -> None:
        """Change the load: connections or rate (at once), duration, request."""
        try:
            form = LoadForm(*changeable_load(self.session, self.load_parser))
        except UsageError as error:
            self.show_reason(str(error))
        else:
            form.ask(self.app, self._set_plan)

    def action_undo(self) -> None:
        """Undo the last change, or a guarded change; its diff is shown first."""
        if (tuning := self._live_tuning("undo")) is None:
            return

        def undo(letter: str) -> None:
            self._work("undo", tuning.undo(letter))

        self._work("undo", ask_to_undo(self._cockpit, tuning, "", undo))

    def action_back(self) -> None:
        """Go one step back, finally to the newest segment and the initial view."""
        if (waiting := self._shown_wait()) is not None:
            waiting.cancel()
            self.frame(force=True)
            return
        self.set_view(navigation.back(self.view))

    async def action_close(self) -> None:
        """Leave a host on the whole screen, otherwise cockpit."""
        if self.view.room == "column":
            await self.app.run_action("app.leave")
        else:
            self.set_view(navigation.leave_list(self.view))

    def hosts_beside(self) -> bool:
        return layout_for(*self.size) == "wide"

    def action_help(self) -> None:
        """Show the keys of the focused pane, all other keys, and definitions of metrics."""
        self.app.push_screen(self.help_screen())

    def help_screen(self) -> HelpScreen:
        return main_help(self.context())

    def commands(self) -> Iterator[Command]:
        context = self.context()
        yield setting_command(self.session, self._tune)
        yield from load_commands(self.session, self.load_parser, self._set_plan)
        yield help_command(help_entries(context.actions), lambda entries: self.app.push_screen(HelpScreen(entries)))
        yield from main_commands(context, self._begin, self.set_view)
        if any(action.name == "jump" for action in context.actions):
            yield from marker_commands(self.markers(), self.show_marker)

    def action_tune(self) -> None:
        """Open the tuning panel."""
        self._tune()

    def _tune(self, values: Mapping[str, str] | None = None) -> None:
        """Open the tuning panel; with `values`, at the first of them, with their diff."""
        self._drafts.update(values or {})

        def confirmed(request: ChangeRequest) -> None:
            if (tuning := self.session.controls.tuning) is not None:
                change = ConfirmedChange(self._cockpit, self.session, tuning, *request, self._drafts)
                self.pending = change
                self.frame(force=True)

        def is_pending() -> bool:
            return self.pending is not None and not self.pending.is_over

        panel = TuningScreen(self.session, self._drafts, is_pending, preview=next(iter(values or ()), ""))
        panel.ask(self.app, confirmed)

    def action_enter(self) -> None:
        """Apply a change that waits for its baseline now; otherwise focus the list of the selected host."""
        if (waiting := self._shown_wait()) is not None:
            waiting.apply()
            self.frame(force=True)
        else:
            super().action_enter()

    def on_key(self, event: Key) -> None:
        before = self._cockpit.notices()
        pressed = event.key, event.character
        action = next((each for each in self.session.controls.actions if action_key(each).key in pressed), None)
        if event.key in _SCROLLS and self.inside():
            return
        if self.over_time(event.key):
            self._cockpit.forget_notices(before)
        elif action is not None:
            self._begin(action)
        else:
            return
        event.stop()
        event.prevent_default()

    def _start(self) -> None:
        for action in self.session.controls.actions:
            if action.name == self.autostart:
                self._begin(action, self.answer)

    def _begin(self, action: Action, answer: str = "") -> asyncio.Task[None] | None:
        """Run an action, with a prompt if it has one and `answer` is empty; return the task of one without a prompt."""
        if self._cockpit.leaving:
            return None
        if answer or not action.prompt:
            return self._work(action.name, action.run(answer))
        prompt = PromptScreen(action.prompt, value=action.prefill)
        prompt.ask(self.app, lambda text: self._work(action.name, action.run(text)))
        return None

    def _work(self, matter: str, work: Awaitable[None]) -> asyncio.Task[None]:
        """Run it as work of the app; an error is shown as a notice about `matter`."""
        return self._cockpit.run_work(self._carry_out(matter, work))

    def prepared_change(self) -> str:
        """Return the confirmed change that is not over, or the undo that is being prepared, or ""."""
        if self.pending is not None and not self.pending.is_over:
            return f"the change {self.pending.plan} is about to be applied"
        return "an undo is being prepared" if "undo" in self._works else ""

    async def _carry_out(self, matter: str, work: Awaitable[None]) -> None:
        before = self._cockpit.notices()
        self._works.append(matter)
        try:
            await work
        except CockpitError as error:
            self._cockpit.show_notice(str(error), severity="error", matter=matter)
        else:
            self._cockpit.forget_notices(before)
        finally:
            self._works.remove(matter)
        if self.is_attached:
            self.frame()


def _set_height(lines: Lines, height: int) -> None:
    if lines.styles.height is None or lines.styles.height.value != height:
        lines.styles.height = height
