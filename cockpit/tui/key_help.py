"""Descriptions of keys: per screen, from its bindings, and per focused pane."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from textual.app import App
from textual.binding import Binding
from textual.screen import Screen

from cockpit.model.text import sanitize
from cockpit.tui.dialogs.help import HelpScreen, help_entries
from cockpit.tui.draw_context import Detail, DrawContext
from cockpit.tui.key_table import (
    DETAILS,
    FAR,
    MARKERS,
    MOVE,
    SCROLL,
    SELECT,
    SORT,
    ZOOM,
    ChartKey,
    MainKey,
    Shortcut,
    ViewKey,
    key_name,
    key_names,
)

Keys = Mapping[Shortcut | str, str]


class Focus(NamedTuple):
    """The focused pane and the descriptions of its keys."""

    title: str
    keys: Keys


@runtime_checkable
class HasHelp(Protocol):
    """A screen that has its own help page."""

    def help_screen(self) -> Screen[None]: ...


_CHARTS: Keys = {
    MOVE: "move the cursor; the titles of both charts show the values there",
    MARKERS: "to the previous, next marker or start of a segment",
    ChartKey.JUMP: "the whole screen at that instant",
    ZOOM: "zoom in, out",
    ViewKey.MARKERS: "list all markers",
    ChartKey.LEAVE: "leave the charts: the arrows select segments of the runs table again",
}
_RUNS_TABLE: Keys = {
    SELECT: f"select a segment: the latency above is of that segment; {MainKey.BACK} follows the newest again",
    MainKey.COMPARE: "compare the segment with its baseline: verdict, every metric with its interval",
    MainKey.BASELINE: "make the segment the baseline",
    ViewKey.AVERAGES: "averages of every host over the segment",
    ViewKey.FOCUS: "focus the processes (or another list below the host)",
}
_NEXT_KEYS: Keys = {
    DETAILS: "next, previous list: processes, cores, disks, interfaces, status pages, tails",
    ViewKey.NEXT_HOST: "next host",
}
_PROCESSES: Keys = {
    SCROLL: f"select a process; {MainKey.BACK} deselects",
    FAR: "to the first line, to the last",
    SORT: "sort by the next column; reverse the order",
    ViewKey.FOLD: "show each of identical processes, or fold them into one line",
    ViewKey.FILTER: "show only processes with a text in PID or command",
    ViewKey.FREEZE: "freeze: sort and read the values of this instant while the load continues",
    **_NEXT_KEYS,
    ViewKey.ROOM: "one host on the whole screen, then all hosts, then back",
    MainKey.BACK: "leave: the arrows select segments of the runs table again",
}
_TAIL: Keys = {
    key_names(MainKey.UP, ViewKey.PAGE_UP, ViewKey.TOP): "scroll back; the tail pauses and counts new lines",
    key_names(MainKey.DOWN, ViewKey.PAGE_DOWN, ViewKey.BOTTOM): "towards the newest line",
    **_NEXT_KEYS,
    MainKey.BACK: "to the newest line, then leave",
}
_OTHER_LISTS: Keys = {
    SCROLL: "scroll",
    FAR: "to the first line, to the last",
    ViewKey.FREEZE: "freeze: read the values of this instant while the load continues",
    **_NEXT_KEYS,
    MainKey.BACK: "leave: the arrows select segments of the runs table again",
}
_NAMES = {"nets": "interfaces", "page": "status page", "sar": "all metrics"}


def focus_of(context: DrawContext) -> Focus:
    if context.view.cursor is not None:
        return Focus("the charts over time", _CHARTS)
    host = context.host
    if host is None or not context.view.list_focused:
        return Focus("the runs table", _RUNS_TABLE)
    detail = context.detail(host)
    keys = {"processes": _PROCESSES, "tail": _TAIL}.get(detail.kind, _OTHER_LISTS)
    return Focus(f"{name_of(detail)} of {sanitize(host.config.name)}", keys)


def name_of(detail: Detail) -> str:
    return _NAMES.get(detail.kind, detail.kind)


def bindings_of(screen: Screen[Any]) -> Iterator[Binding]:
    """Yield the screen's bindings that have a description, in source order."""
    for kind in type(screen).__mro__:
        for binding in kind.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.description and kind.__module__.startswith("cockpit."):
                yield binding


def keys_of(screen: Screen[Any]) -> tuple[tuple[str, str], ...]:
    return tuple((names_of(binding), binding.description) for binding in bindings_of(screen))


def names_of(binding: Binding) -> str:
    return " ".join(key_name(key.strip()) for key in binding.key.split(","))


def show_help(app: App[Any]) -> None:
    """Show the help page of the top screen, or a list of its keys; close the help if it is open."""
    screen = app.screen
    if isinstance(screen, HelpScreen):
        screen.dismiss()
    elif isinstance(screen, HasHelp):
        app.push_screen(screen.help_screen())
    elif keys := keys_of(screen):
        app.push_screen(HelpScreen(keys))


def main_help(context: DrawContext) -> HelpScreen:
    focus = focus_of(context)
    return HelpScreen(help_entries(context.actions, focus.keys.items(), focus.title), f"in focus: {focus.title}")
