"""The CPU profile of a segment on the whole screen: an icicle and the hottest functions, with their differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from cockpit.analysis.comparison import kernel_counters
from cockpit.analysis.stacks.merging import segment_slices
from cockpit.analysis.stacks.profiles import StackProfile, stack_profile
from cockpit.analysis.words.comparison import rows_of
from cockpit.analysis.words.stacks import native_words
from cockpit.analysis.words.timeline import segment_label
from cockpit.metrics.catalogue import host_entry
from cockpit.model.host.state import HostState
from cockpit.model.stacks import SLICE_SECONDS
from cockpit.model.state import Segment, State
from cockpit.model.text import sanitize
from cockpit.tui.dialogs.prompt import FilterScreen
from cockpit.tui.draw_context import DrawContext, by_number
from cockpit.tui.key_names import bindings, footer_entries, spots_of
from cockpit.tui.key_table import FOOTER_STACKS, SessionKey, StacksKey
from cockpit.tui.runs.compare import comparison_table
from cockpit.tui.runs.function_table import function_table, selection_line
from cockpit.tui.runs.icicle import CellBox, StacksView, icicle, moved, zoomed_out
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import EMPTY, DrawnList, Line, Piece, centred, fit, join_fitting, length, rule

# Seconds between updates of a growing segment.
_REFRESH = 1.0
# The table has one of this many parts of the lines.
_PARTS = 3


class StacksPane(Lines):
    """Title, the selected frame, icicle, hottest functions and keys.

    `profile`, `rows` (boxes by depth) and `table` are those drawn last.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.view = StacksView(number)
        self.profile: StackProfile | None = None
        self.rows: list[list[CellBox]] = []
        self.table = DrawnList([])
        self._read_of: tuple[object, ...] = ()

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        segment = by_number(context.state.segments, self.view.number)
        hosts = [host for host in context.state.hosts.values() if host.slices] or list(context.state.hosts.values())
        host = hosts[self.view.host % len(hosts)] if hosts else None
        before = context.before(segment) if segment is not None and self.view.difference else None
        keys = join_fitting(footer_entries(FOOTER_STACKS, len(hosts)), width)
        self.spots = [spot.moved(0, height - 1) for spot in spots_of(keys)]
        self._read(context.state, host, segment, before)
        lines: list[Line] = [_title(host, segment, before, self.profile, width)]
        if self.profile is None or self.view.counters:
            reason = _reason(host, recorded=context.extent is not None)
            lines += [] if self.profile else centred([(reason, "dim")], width, 3)
            lines += counter_lines(host, before, segment, width)[: height - 1 - len(lines)] if host and segment else []
        else:
            hint = native_words(host.profiler if host else None)
            below = [((fit(hint, width), "warn"),)] if hint else []
            lines += [*self._drawn(self.profile, width, height - 2 - len(below)), *below]
        return [*lines, *[EMPTY] * (height - 1 - len(lines)), keys]

    def _read(self, state: State, host: HostState | None, segment: Segment | None, before: Segment | None) -> None:
        """Merge the stacks of both segments, if there are new slices."""
        if host is None or segment is None:
            self.profile = None
            return
        sides = [segment_slices(state, host.config.name, side) if side else () for side in (segment, before)]
        if (read_of := (host.config.name, *sides)) != self._read_of:
            self._read_of = read_of
            self.profile = stack_profile(state, host.config.name, segment, before)

    def _drawn(self, profile: StackProfile, width: int, height: int) -> list[Line]:
        below = height // _PARTS
        drawn = icicle(profile.tree, self.view, width, height - 1 - below)
        self.rows, self.table = drawn.rows, function_table(profile, self.view, width, below)
        self.spots = [
            *self.spots,
            *(spot.moved(0, 2) for spot in drawn.spots),
            *(spot.moved(0, 1 + height - below) for spot in self.table.spots),
        ]
        gap = [EMPTY] * (height - 1 - below - len(drawn.lines))
        return [selection_line(profile, self.view, width), *drawn.lines, *gap, *self.table.lines]


def _title(
    host: HostState | None, segment: Segment | None, before: Segment | None, profile: StackProfile | None, width: int
) -> Line:
    title: list[Piece] = [(f"CPU profile of {sanitize(host.config.name)}" if host else "CPU profile", "strong")]
    if segment is not None:
        differs = before is not None and profile is not None and profile.before is not None
        beside = f" vs {before.number}" if before is not None and differs else ""
        title.append((f"  segment {segment.number}{beside}: {sanitize(segment_label(segment), 60)}", ""))
    return rule(tuple(title), ((f"{profile.samples:,} samples", "dim"),) if profile else (), width)


def counter_lines(host: HostState, before: Segment | None, segment: Segment, width: int) -> list[Line]:
    """Return the counters of the kernel in a segment beside those of its baseline, with their definitions."""
    pairs = kernel_counters(host.config.name, before, segment)
    lines = comparison_table("kernel counters", rows_of(pairs))
    room = width - max(map(length, lines)) - 2
    texts = ["", *(host_entry(pair.name).help for pair in pairs)]
    return [
        (*line, (f"{' ' * (width - room - length(line))}{fit(text, room)}", "dim")) if room > 0 else line
        for line, text in zip(lines, texts, strict=True)
    ]


def _reason(host: HostState | None, *, recorded: bool) -> str:
    """Return why there is no profile, and how to get one."""
    if host is None:
        return "No host is watched; name one in a [[host]] of the profile: cockpit help profile"
    if host.profiler is not None and host.profiler.condition == "failed":
        return f"Profiling failed: {sanitize(host.profiler.detail)}"
    if host.profiler is not None and host.profiler.condition == "running":
        return f"No complete slice of {SLICE_SECONDS:g} s in this segment yet."
    live = "" if recorded else f" {SessionKey.PROFILE} switches profiling on, as --profile does"
    return f"No CPU profile of this segment.{live}"


class StacksScreen(Screen[None]):
    """Shows a segment, initially the selected one, while the session continues."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(StacksKey)
    DEFAULT_CSS = """
    StacksScreen { background: $background; }
    StacksPane { height: 1fr; padding: 0 1; }
    """

    def __init__(self, context: Callable[[], DrawContext]) -> None:
        super().__init__()
        self.context = context
        segment = context().segment
        self._pane = StacksPane(segment.number if segment else 0)

    def compose(self) -> ComposeResult:
        yield self._pane

    def on_mount(self) -> None:
        self.set_interval(_REFRESH, self.frame)
        self.frame()

    def frame(self) -> None:
        self._pane.show(self.context())

    def _set_view(self, view: StacksView) -> None:
        self._pane.view = view
        self.frame()

    def action_move(self, x: int, y: int) -> None:
        """Select the box beside the selected one, its caller or its callee."""
        pane = self._pane
        if pane.profile is not None and pane.rows and not pane.view.counters:
            self._set_view(moved(pane.profile.tree, pane.view, pane.rows, x, y))

    def action_frame(self, depth: int, at: int) -> None:
        """Select a box; if it is selected, zoom in to it, at the top out."""
        view, path = self._pane.view, self._pane.rows[depth][at].node.path
        if path != view.selected:
            self._set_view(view._replace(selected=path))
        elif depth:
            self.action_zoom_in()
        else:
            self.action_zoom_out()

    def action_zoom_in(self) -> None:
        """Show the selected box and its callees in the whole width."""
        self._set_view(self._pane.view._replace(top=self._pane.view.selected))

    def action_zoom_out(self) -> None:
        """Show the next wider caller in the whole width."""
        if self._pane.profile is not None:
            self._set_view(zoomed_out(self._pane.profile.tree, self._pane.view))

    def action_function(self, at: int) -> None:
        """Highlight a function of the table wherever it is called."""
        profile = self._pane.profile
        if profile is not None and at < len(profile.functions):
            self._set_view(self._pane.view._replace(search=profile.functions[at].frame))

    def action_search(self) -> None:
        """Highlight functions with a text."""

        def typed(text: str) -> None:
            self._set_view(self._pane.view._replace(search=text.strip()))

        self.app.push_screen(FilterScreen("search functions:", self._pane.view.search, typed))

    def action_counters(self) -> None:
        """Show the kernel counters, or the functions."""
        self._set_view(self._pane.view._replace(counters=not self._pane.view.counters))

    def action_difference(self) -> None:
        """Show the difference to the baseline, or the segment alone."""
        self._set_view(self._pane.view._replace(difference=not self._pane.view.difference, above=0))

    def action_segment(self, step: int) -> None:
        """Show the next or previous segment."""
        last = len(self.context().state.segments)
        self._set_view(self._pane.view._replace(number=max(1, min(self._pane.view.number + step, last))))

    def action_host(self) -> None:
        """Show the profile of the next host."""
        self._set_view(self._pane.view._replace(host=self._pane.view.host + 1))

    def action_page(self, step: int) -> None:
        """Scroll the table by a page."""
        table, view = self._pane.table, self._pane.view
        self._set_view(view._replace(above=max(0, min(view.above + step * table.page, table.most))))

    def action_back(self) -> None:
        """Remove the highlight, zoom out to the whole profile, or close."""
        view = self._pane.view
        if view.search:
            self._set_view(view._replace(search=""))
        elif view.top:
            self._set_view(view._replace(top=()))
        else:
            self.dismiss()
