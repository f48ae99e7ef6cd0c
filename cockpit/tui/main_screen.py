"""The main screen: polls the session, draws changes, and passes keys to the session's controls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Key, Resize

from cockpit.analysis.row_verdicts import RowVerdicts
from cockpit.analysis.time_ranges import TimeRanges
from cockpit.model.errors import CockpitError
from cockpit.session.controls import Action
from cockpit.session.loop import Session
from cockpit.tui import navigation
from cockpit.tui.action_keys import action_key
from cockpit.tui.charts.latency import Latency
from cockpit.tui.charts.position import Position
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.commands import main_commands
from cockpit.tui.dialogs.asking import attend
from cockpit.tui.dialogs.help import HelpScreen
from cockpit.tui.dialogs.prompt import OneLine, PromptScreen
from cockpit.tui.draw_context import LATENCY_VIEWS, DrawContext, View
from cockpit.tui.footer import Footer
from cockpit.tui.hint import HintLine
from cockpit.tui.hints import Hints
from cockpit.tui.hosts.keys import OverHosts
from cockpit.tui.hosts.panes import HostLines, HostPanes
from cockpit.tui.keys import main_help
from cockpit.tui.losses import Losses, loss_lines
from cockpit.tui.palette import Command
from cockpit.tui.runs.compare import CompareScreen
from cockpit.tui.runs.strip import Strip, strip
from cockpit.tui.runs.strip_lines import compact_height, full_height
from cockpit.tui.runs.strip_widget import VerdictStrip
from cockpit.tui.runs.table import Runs
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.tiny_screen import TinyScreen
from cockpit.tui.topline import TopLine
from cockpit.tui.tuning.rounds import ask
from cockpit.tui.tuning.screen import TuningScreen

if TYPE_CHECKING:
    from cockpit.tui.app import CockpitApp
    from cockpit.tui.terminal.base_app import CockpitBase

# Seconds between two frames. A terminal that is slower than this misses frames, never events.
FRAME = 0.5
# A lite screen draws only every n-th frame by itself; the effect of a key is drawn at once.
_LITE = 4

# Seconds of load that are added up for one frame: of a session of hours the charts are read in several.
_AT_ONCE = 300

LAYOUTS = ("wide", "narrow", "tiny")

# From this width on two hosts are side by side in their column.
_BROAD = 180

# Below this height beside the hosts the chart takes the room of the histogram; its metrics are in the table.
_ROOM_FOR_LATENCY = 19
# From this height on the verdict strip is shown in full; below, with this many effects at most: wide, and narrow.
_ROOM_FOR_STRIP = 34
_EFFECTS = {"wide": 5, "narrow": 3}
# Lines of the strip that the runs table does not miss.
_SPARE = 2

# Keys that scroll the list of a host while the arrows act on it, whatever the session does with them.
_SCROLLS = ("up", "down", "pageup", "pagedown")


def layout_for(width: int, height: int) -> str:
    """Return the layout: two columns, the left column with one line per host, or only numbers."""
    if width >= 104 and height >= 28:
        return "wide"
    return "narrow" if width >= 72 and height >= 20 else "tiny"


class MainScreen(OverHosts):
    """Everything at a glance."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "tune", "tune"),
        Binding("v", "view", "view"),
        Binding("b", "baseline", "baseline"),
        Binding("c", "compare", "compare"),
        Binding("r", "rounds", "rounds"),
        Binding("up", "up_or_down(-1)", "up"),
        Binding("down", "up_or_down(1)", "down"),
        Binding("escape", "back", "back"),
        Binding("T", "app.next_theme", "theme"),
        Binding("question_mark", "help", "help"),
        Binding("q", "app.leave", "quit"),
    ]
    DEFAULT_CSS = """
    MainScreen { layout: vertical; background: $background; }
    MainScreen #body { height: 1fr; }
    MainScreen #left { width: 57fr; padding: 0 1; }
    MainScreen #right { width: 43fr; padding: 0 1; border-left: solid $cockpit-rule; }
    MainScreen Throughput { height: 4fr; }
    MainScreen Latency { height: 3fr; }
    MainScreen Runs { height: 3fr; }
    MainScreen HostPanes { height: 1fr; }
    MainScreen HostLines { height: auto; max-height: 8; padding: 0 1; display: none; }
    MainScreen TinyScreen { height: 1fr; display: none; }
    MainScreen Position { display: none; }
    MainScreen.-extent Position { display: block; }

    MainScreen.-broad #left { width: 45fr; }
    MainScreen.-broad #right { width: 55fr; }
    MainScreen.-no-hosts #right { display: none; }
    MainScreen.-narrow #right { display: none; }
    MainScreen.-narrow HostLines { display: block; }
    MainScreen.-narrow Throughput { height: 5fr; }
    MainScreen.-narrow Latency { height: 4fr; }
    MainScreen.-narrow Runs { height: 4fr; }
    MainScreen.-narrow.-crowded Latency { display: none; }
    MainScreen.-tiny #body { display: none; }
    MainScreen.-tiny TopLine { display: none; }
    MainScreen.-tiny TinyScreen { display: block; }

    MainScreen.-host-alone #body { display: block; }
    MainScreen.-host-alone #left { display: none; }
    MainScreen.-host-alone #right { display: block; width: 1fr; border-left: none; }
    MainScreen.-host-alone HostLines { display: none; }
    MainScreen.-host-alone TinyScreen { display: none; }
    """

    def __init__(self, session: Session, autostart: str = "", hints: Hints | None = None) -> None:
        super().__init__()
        self.session = session
        self.autostart = autostart
        self.hints = hints
        self.view = View()
        self.verdicts, self.stretches = RowVerdicts(), TimeRanges(_AT_ONCE)
        self._drawn: tuple[object, ...] = ()
        self._ticks = 0

    @property
    def _cockpit(self) -> CockpitApp:
        return cast("CockpitApp", self.app)

    def compose(self) -> ComposeResult:
        yield TopLine()
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield Throughput()
                yield Latency()
                yield Runs()
                yield VerdictStrip()
            with Vertical(id="right"):
                yield HostPanes()
        yield HostLines()
        yield TinyScreen()
        yield Losses()
        yield Position()
        yield HintLine(self.hints)
        yield Footer()

    def on_mount(self) -> None:
        self.set_interval(FRAME, self._tick)
        self.frame()
        if self.autostart:
            self.call_after_refresh(self._start)

    def on_screen_suspend(self) -> None:
        self.frame(anew=True)

    def on_screen_resume(self) -> None:
        self.frame(anew=True)

    def on_resize(self, event: Resize) -> None:
        self.frame()

    def scene(self) -> DrawContext:
        """Return the context of the next frame."""
        controls, recorder = self.session.controls, self.session.recorder
        return DrawContext(
            state=self.session.shown,
            view=self.view,
            mode=controls.mode,
            status=controls.status,
            position=controls.position,
            extent=controls.extent,
            actions=controls.actions,
            recording=recorder.path if recorder else "",
            trouble=recorder.trouble if recorder else "",
            gaps=recorder.gaps if recorder else (),
            lost=controls.lost,
            verdicts=self.verdicts,
            stretches=self.stretches,
            lite=self._cockpit.lite,
        )

    def _tick(self) -> None:
        """Draws a frame, unless the terminal has not taken the one before."""
        attend(self.app, self, self.session)
        self._ticks += 1
        if self._cockpit.keeps_up() and not (self._cockpit.lite and self._ticks % _LITE):
            self.frame()

    def frame(self, anew: bool = False) -> None:
        """Draws the present state, if it is another than the one drawn last, or in any case."""
        attend(self.app, self, self.session)
        scene = self.scene()
        recorded = (scene.trouble, scene.gaps, scene.lost)
        words = (scene.mode, scene.status, scene.position, scene.extent, recorded, scene.lite)
        now = (self.session.shown_revision, self.view, words, self.size)
        if now == self._drawn and not anew:
            return
        self._drawn = now
        self.stretches.again()
        self._arrange(strip(scene))
        for lines in self.query(Lines):
            lines.show(scene)
        if self.stretches.behind:
            # Keys that wait come first.
            self.call_later(self.frame, True)

    def _arrange(self, verdict: Strip | None) -> None:
        layout = layout_for(*self.size)
        hosts = self.session.shown.hosts
        for name in LAYOUTS:
            self.set_class(name == layout, f"-{name}")
        self.set_class(not hosts, "-no-hosts")
        below = self._strip_height(layout, verdict)
        losses = len(loss_lines(self.session.controls.lost))
        room = self.size.height - len(hosts) - losses - max(0, below - _SPARE)
        self.set_class(room < _ROOM_FOR_LATENCY, "-crowded")
        _set_height(self.query_one(VerdictStrip), below)
        self.set_class(self.size.width >= _BROAD and len(hosts) > 1, "-broad")
        self.set_class(self.view.room != "column" and bool(hosts), "-host-alone")
        self.set_class(self.session.controls.extent is not None, "-extent")
        _set_height(self.query_one(HostLines), len(hosts))
        _set_height(self.query_one(Losses), losses)

    def _strip_height(self, layout: str, verdict: Strip | None) -> int:
        if verdict is None or layout == "tiny":
            return 0
        if self.size.height >= _ROOM_FOR_STRIP and layout == "wide":
            return full_height(verdict)
        return compact_height(verdict, _EFFECTS[layout])

    def say(self, words: str) -> None:
        self._cockpit.tell(words, matter="missing")

    def _look(self, view: View) -> None:
        self.view = view
        self.frame()

    def action_view(self) -> None:
        """The next way to show latency."""
        at = LATENCY_VIEWS.index(self.view.latency)
        self._look(replace(self.view, latency=LATENCY_VIEWS[(at + 1) % len(LATENCY_VIEWS)]))

    def action_baseline(self) -> None:
        """Make the selected segment the baseline."""
        row = self.scene().row
        if row is None:
            self.say("No segment to compare with yet. space: start a run")
            return
        self._look(replace(self.view, baseline=row.number))

    def action_compare(self) -> None:
        """Compare the selected segment: verdict, and all metrics beside those of its baseline."""
        self.found_out("compare")
        if self.scene().row is None:
            self.say("No segment to compare yet. space: start a run; a change under load (t) starts the next segment")
            return
        self.app.push_screen(CompareScreen(self.scene, self._look))

    def action_rounds(self) -> None:
        """Measure the last change in rounds; while rounds run, stop them."""
        tuning = self.session.controls.tuning
        if tuning is None:
            self.say("rounds need a live session; this one is read-only")
            return

        def say(words: str, bad: bool) -> None:
            self._cockpit.tell(words, severity="error" if bad else "information", matter="rounds")

        ask(cast("CockpitBase[object]", self.app), self.session, tuning, {}, say)

    def action_up_or_down(self, step: int) -> None:
        """Moves in the detail that the arrows act on, or to the row of the runs table above or below."""
        if self._inside():
            self._scroll(step)
        else:
            self.action_row(step)

    def action_row(self, step: int) -> None:
        """Looks at the row above or below; below the last one is: whichever is the newest."""
        row = self.scene().row
        if row is not None:
            number = max(1, row.number + step)
            last = len(self.session.shown.segments)
            self._look(replace(self.view, row=None if number > last else number))

    def action_back(self) -> None:
        """One step back, in the end to the newest row and how the screen is at first."""
        before = self.view
        self._look(navigation.back(self.view))
        if self.hints and before == self.view and self.query_one(HintLine).display:
            self.hints.hide()
            self.frame(anew=True)

    def hosts_beside(self) -> bool:
        return layout_for(*self.size) == "wide"

    def found_out(self, name: str) -> None:
        """No hint is needed for that any more."""
        if self.hints:
            self.hints.done(name)
            self.frame(anew=True)

    def action_help(self) -> None:
        """Keys of the focused pane, all other keys, and definitions of metrics."""
        self.found_out("help")
        self.app.push_screen(self.help_screen())

    def help_screen(self) -> HelpScreen:
        """Return the help page."""
        return main_help(self.scene())

    def commands(self) -> Iterator[Command]:
        """Yield the palette's commands beside the bindings."""

        def answer(action: Action, text: str) -> None:
            self.app.run_worker(self._carry_out(action, text))

        return main_commands(self.scene(), self._begin, answer, self._look)

    def action_tune(self) -> None:
        """The tuning panel."""
        self.found_out("tune")
        self.app.push_screen(TuningScreen(self.session))

    def on_key(self, event: Key) -> None:
        if isinstance(self.app.screen, OneLine):
            # Typed right behind the key that opened it.
            self.app.screen.type(event)
            event.stop()
            event.prevent_default()
            return
        if event.key in _SCROLLS and self._inside():
            return
        before = self._cockpit.notices()
        if self.over_time(event.key):
            self._cockpit.forget_notices(before)
            event.stop()
            event.prevent_default()
            return
        action = next((action for action in self.session.controls.actions if _pressed(event, action)), None)
        if action is not None:
            event.stop()
            event.prevent_default()
            self._begin(action)

    def _start(self) -> None:
        for action in self.session.controls.actions:
            if action.name == self.autostart:
                self._begin(action)

    def _begin(self, action: Action) -> None:
        if self._cockpit.leaving:
            return
        if action.name == "toggle":
            self.found_out("load")
        if not action.prompt:
            self.app.run_worker(self._carry_out(action, ""))
            return

        def answered(answer: str | None) -> None:
            if answer is not None:
                self.app.run_worker(self._carry_out(action, answer))

        self.app.push_screen(PromptScreen(action.prompt), answered)

    async def _carry_out(self, action: Action, answer: str) -> None:
        before = self._cockpit.notices()
        try:
            await action.run(answer)
        except CockpitError as error:
            self._cockpit.tell(str(error), severity="error", matter=action.name)
        else:
            self._cockpit.forget_notices(before)
        if self.is_attached:
            self.frame()


def _set_height(lines: Lines, height: int) -> None:
    if lines.styles.height is None or lines.styles.height.value != height:
        lines.styles.height = height


def _pressed(event: Key, action: Action) -> bool:
    return action_key(action) in (event.key, event.character)
