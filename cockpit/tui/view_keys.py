"""Keys that change the view: the charts over time (cursor, zoom, markers), the hosts and the list below each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType
from textual.screen import Screen

from cockpit.analysis.time_ranges import TimeRanges
from cockpit.analysis.timeline import all_markers
from cockpit.analysis.verdicts.segments import SegmentVerdicts
from cockpit.analysis.words.timeline import marker_sign
from cockpit.model.markers import Marker
from cockpit.model.text import clock
from cockpit.session.loop import Session
from cockpit.tui import navigation
from cockpit.tui.charts import cursor
from cockpit.tui.charts.markers import marker_label
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.dialogs.prompt import ChoiceScreen, FilterScreen
from cockpit.tui.draw_context import PROCESS_ORDERS, BaselineOf, DrawContext, ProcessOrder, StoredBaselines, View
from cockpit.tui.hosts.panes import HostPanes
from cockpit.tui.key_names import bindings, key_hints, no_load_words
from cockpit.tui.key_table import ChartKey, DialogKey, MainKey, ViewKey
from cockpit.tui.runs.stacks_screen import StacksScreen
from cockpit.tui.status_lines import Position
from cockpit.tui.tuning.changes import ending_words
from cockpit.tui.tuning.pending import ConfirmedChange

if TYPE_CHECKING:
    from cockpit.tui.app import CockpitApp

# Seconds of load summed per frame: charts of long sessions are computed over several frames.
_AT_ONCE = 300
# Cursor movements: in cells, in tenths of the chart's width, in markers.
_CELLS = {ChartKey.LEFT.key: -1, ChartKey.RIGHT.key: 1}
_PAGES = {ChartKey.PAGE_LEFT.key: -1, ChartKey.PAGE_RIGHT.key: 1}
_MARKERS = {ChartKey.PREVIOUS.key: -1, ChartKey.NEXT.key: 1}
# Maximum delay (s) of the ticks of a second.
_TICKS = 0.5


class ViewKeys(Screen[None]):
    """A screen with charts and hosts; its keys change `view`."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ViewKey)

    def __init__(self, session: Session, baseline_of: BaselineOf = lambda plan: None) -> None:
        super().__init__()
        self.session = session
        self.view = View()
        self.pending: ConfirmedChange | None = None
        self.verdicts, self.time_ranges = SegmentVerdicts(), TimeRanges(_AT_ONCE)
        self.baseline_of = baseline_of
        self.baselines = StoredBaselines(lambda plan: self.baseline_of(plan))

    @property
    def _cockpit(self) -> CockpitApp:
        return cast("CockpitApp", self.app)

    def context(self) -> DrawContext:
        controls, recorder = self.session.controls, self.session.recorder
        charts = self.query(Throughput) if self.view.room == "column" else ()
        return DrawContext(
            state=self.session.shown,
            view=self.view,
            mode=controls.mode,
            status=controls.status,
            position=controls.position,
            extent=controls.extent,
            actions=controls.actions,
            recording=recorder.path if recorder else "",
            recording_error=recorder.trouble if recorder else "",
            gaps=recorder.gaps if recorder else (),
            damaged=controls.lost,
            verdicts=self.verdicts,
            time_ranges=self.time_ranges,
            baselines=self.baselines,
            lite=self._cockpit.lite,
            ending=ending_words(self.session.state) if self._cockpit.leaving else "",
            waiting=self.pending.plan if self.pending is not None and not self.pending.is_over else "",
            chart_width=sum(chart.inner_width for chart in charts) or self.size.width,
        )

    def frame(self, force: bool = False) -> None:
        """Draw the current state if it changed; `force`: always."""
        raise NotImplementedError

    def hosts_beside(self) -> bool:
        """Return whether there is room for hosts beside the charts."""
        raise NotImplementedError

    def _work(self, matter: str, work: Awaitable[None]) -> asyncio.Task[None]:
        raise NotImplementedError

    def _shown_wait(self) -> ConfirmedChange | None:
        """Return the change that waits for its baseline, while the screen shows it with its keys."""
        waits = self.pending is not None and self.pending.waiting
        return self.pending if waits and not self.has_class("-host-alone") else None

    def set_view(self, view: View) -> None:
        self.view = view
        self.frame()

    def show_reason(self, words: str) -> None:
        """Show why a key has no effect; the next key with an effect removes the notice."""
        self._cockpit.show_notice(words, matter="missing")

    def over_time(self, key: str) -> bool:
        """Handle a key of the chart cursor; False if the key is not one of them.

        Bindings are handled later, after session keys that were typed after them.
        """
        if key == ViewKey.CURSOR.key:
            self.action_cursor()
        elif self.view.cursor is None:
            return False
        elif key == ChartKey.LEAVE.key:
            self.set_view(replace(self.view, cursor=None))
        elif key == ChartKey.JUMP.key:
            self._go_there()
        elif key in _MARKERS:
            self._over_time(cursor.to_marker, _MARKERS[key])
        elif key in _PAGES:
            self._over_time(cursor.moved, _PAGES[key] * max(1, self.query_one(Throughput).size.width // 10))
        elif key in _CELLS:
            self._over_time(cursor.moved, _CELLS[key])
        else:
            return False
        return True

    def action_cursor(self) -> None:
        """Focus the charts over time, or leave them."""
        self._over_time(cursor.toggle_cursor)

    def action_zoom(self, step: int) -> None:
        """Show less time, or more."""
        view = self.view
        self._over_time(cursor.zoomed, step)
        if view is self.view and self.query_one(Throughput).size.area:
            self.show_reason("the charts show the whole session" if step > 0 else "this is the finest scale")

    def action_markers(self) -> None:
        """List all markers; Enter moves the cursor to one."""
        context = self.context()
        markers = self.markers()
        here = context.now if self.view.cursor is None else self.view.cursor
        # A marker in the cursor's cell can be later than the start of the cell.
        nearest = min(range(len(markers)), key=lambda at: abs(markers[at].t - here), default=None)
        lines = [f"{clock(marker.t)}  {marker_sign(marker)[:1] or '▸'}  {marker_label(marker)}" for marker in markers]
        none = ("", "No markers yet: changes, notes, restarts and lost hosts add markers")
        hint = key_hints(("Enter", ": move the cursor there") if lines else none, (DialogKey.CLOSE, ": close"))
        listed = ChoiceScreen("markers", lines, nearest, hint, wide=True)
        listed.ask(self.app, lambda at: self._to_marker(markers[at].t))

    def action_board(self) -> None:
        """Show the evaluations of the search of this session."""
        if self.session.shown.autopilot is None:
            self.show_reason("no search in this session; to start a search: cockpit autopilot PROFILE")
            return
        # Imported on demand: the model of a search is needed by few sessions.
        from cockpit.tui.autopilot.evaluations import EvaluationsScreen

        self.app.push_screen(EvaluationsScreen(self.session))

    def action_stacks(self) -> None:
        """Show the CPU profile of the selected segment."""
        if self.context().segment is None:
            self.show_reason(no_load_words(self.context()))
            return
        self.app.push_screen(StacksScreen(self.context))

    def markers(self) -> list[Marker]:
        """Return all markers of the session or recording, oldest first."""
        state = self.session.controls.end_state() or self.session.shown
        return sorted(all_markers(state), key=lambda marker: marker.t)

    def _to_marker(self, t: float) -> None:
        """Move the cursor to an instant; a replay seeks there if it is later than the shown instant."""
        if t > self.context().now:
            self.show_marker(t)
        else:
            self._over_time(cursor.placed_at, t)

    def show_marker(self, t: float) -> None:
        """Show the whole screen at a marker's instant, with all ticks of its second, if the session can seek."""
        self._jump(t + _TICKS)

    def on_chart_time_selected(self, event: cursor.Chart.TimeSelected) -> None:
        self._over_time(cursor.placed_at, event.t)

    def _over_time(self, change: Callable[..., View], *more: float) -> None:
        """Set the view to `change(context, window, …)` if the charts are visible."""
        chart = self.query_one(Throughput)
        if chart.window is None or not chart.size.area:
            self.show_reason(
                f"no room for the charts over time; {MainKey.BACK}: show them again, or enlarge the terminal"
            )
            return
        self.set_view(change(self.context(), chart.window, *more))

    def _go_there(self) -> None:
        """Show the whole screen at the end of the cursor's cell, if the session can seek."""
        context, window = self.context(), self.query_one(Throughput).window
        at = None if window is None else context.cursor(window)
        if window is not None and at is not None:
            end = min(at // 1 + max(1.0, window.span) + _TICKS, context.now)
            # Keep the zoom: the automatic scale depends on the shown instant.
            self.set_view(replace(self.view, span=window.span))
            self._jump(end)

    def _jump(self, t: float) -> None:
        """Show the whole screen at an instant, if the session can seek."""
        jump = next((action for action in self.session.controls.actions if action.name == "jump"), None)
        if jump is not None:
            self._work(jump.name, jump.run(f"{t:.1f}s"))

    def action_order(self) -> None:
        """Sort the processes by the next column."""
        at = PROCESS_ORDERS.index(self.view.order) + 1
        self.set_view(replace(self.view, order=PROCESS_ORDERS[at % len(PROCESS_ORDERS)], reverse_order=False))

    def action_turn(self) -> None:
        """Reverse the order of the processes."""
        self.set_view(replace(self.view, reverse_order=not self.view.reverse_order))

    def action_fold(self) -> None:
        """Show identical processes one by one, or folded into one line."""
        self.set_view(replace(self.view, folded=not self.view.folded))

    def action_filter(self) -> None:
        """Show only processes with a text in PID or command."""
        if not self._has_hosts():
            return

        def typed(text: str) -> None:
            self.set_view(replace(self.view, filter=text.strip()))

        self.app.push_screen(FilterScreen("filter processes:", self.view.filter, typed))

    def action_host(self, step: int) -> None:
        """Select the next host."""
        self.set_view(navigation.host_at(self.context(), self.view.host + step))

    def action_open_host(self, number: int) -> None:
        """Select a host; if it is selected already, give it more room."""
        context = self.context()
        selected = navigation.host_at(context, number)
        if not self._shows_panes():
            self.set_view(navigation.on_whole_screen(replace(context, view=selected)))
        else:
            self.set_view(navigation.next_room(context) if selected.host == self.view.host else selected)

    def action_process(self, number: int, pid: int, start: int) -> None:
        """Select a process of a host."""
        view = navigation.host_at(self.context(), number)
        self.set_view(replace(view, cursor=None, list_entered=True, process=(pid, start)))

    def action_sort_by(self, number: int, order: ProcessOrder) -> None:
        """Sort the processes by a column, or reverse the order of the current column."""
        view = navigation.host_at(self.context(), number)
        self.set_view(replace(view, order=order, reverse_order=view.order == order and not view.reverse_order))

    def action_segment(self, number: int) -> None:
        """Select a segment; compare it if it is selected."""
        shown = self.context().segment
        if shown is not None and shown.number == number:
            self.app.simulate_key(MainKey.COMPARE.key)
        else:
            self.set_view(replace(self.view, segment=number))

    def action_up_or_down(self, step: int) -> None:
        """Scroll the focused list, or select the next or previous segment."""
        if self.inside():
            self.scroll_detail(step)
        else:
            segment = self.context().segment
            if segment is not None:
                number = max(1, segment.number + step)
                last = len(self.session.shown.segments)
                self.set_view(replace(self.view, segment=None if number > last else number))

    def on_position_clicked(self, event: Position.Clicked) -> None:
        self._jump(event.t)

    def action_room(self) -> None:
        """Show the selected host on the whole screen, then all hosts, then back."""
        if self._has_hosts():
            self.set_view(navigation.next_room(self.context()))

    def action_detail(self, step: int) -> None:
        """Show the next list below the selected host."""
        if self._has_hosts():
            context = self.context()
            change = (
                navigation.next_detail(context, step) if self._shows_panes() else navigation.on_whole_screen(context)
            )
            self.set_view(change)

    def action_enter(self) -> None:
        """Focus the list of the selected host, or leave it."""
        if self._has_hosts():
            self.set_view(navigation.toggle_list_focus(self.context(), alone=not self.hosts_beside()))

    def action_metrics(self) -> None:
        """Show all metrics of the selected host, as sar and free print them, on the whole screen."""
        if self._has_hosts():
            self.set_view(navigation.all_metrics(self.context()))

    def action_freeze(self) -> None:
        """Freeze the hosts, or continue."""
        if self._has_hosts():
            self.set_view(replace(self.view, frozen=None if self.view.frozen else self.session.shown))

    def _shows_panes(self) -> bool:
        """Return whether hosts are shown as panes, not as single lines."""
        return self.view.room != "column" or self.hosts_beside()

    def _has_hosts(self) -> bool:
        if not self.session.shown.hosts:
            self.show_reason("no host is watched; add a [[host]] to the profile, or write a profile with cockpit new")
        return bool(self.session.shown.hosts)

    def action_page(self, step: int) -> None:
        """Scroll the list by a page."""
        self.scroll_detail(step * max(1, self.query_one(HostPanes).drawn.page - 1))

    def action_far(self, step: int) -> None:
        """Go to the first or last line of the list."""
        self.scroll_detail(step * (self.query_one(HostPanes).drawn.most + 1))

    def inside(self) -> bool:
        """Return whether the list of a host has the focus."""
        return self.view.list_focused and bool(self.session.shown.hosts)

    def scroll_detail(self, lines: int) -> None:
        if self.inside():
            self.set_view(navigation.scrolled(self.context(), lines, self.query_one(HostPanes).drawn.most))
