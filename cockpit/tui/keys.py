"""Descriptions of keys: per screen, from its bindings, and per focused pane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

from textual.app import App
from textual.binding import Binding
from textual.screen import Screen

from cockpit.model.text import neutral
from cockpit.tui.dialogs.help import HelpScreen, help_entries
from cockpit.tui.draw_context import Detail, DrawContext
from cockpit.tui.key_names import key_name


class Focus(NamedTuple):
    """The focused pane and its keys: (keys, description)."""

    title: str
    keys: tuple[tuple[str, str], ...]


@runtime_checkable
class Helping(Protocol):
    """A screen with a help page of its own."""

    def help_screen(self) -> Screen[None]: ...


_OVER_TIME = (
    ("← → PgUp PgDn", "move the cursor; the titles of both charts show the values there"),
    ("Home  End", "to the first cell, to the newest"),
    ("[  ]", "to the previous, next marker or start of a segment"),
    ("Enter", "the whole screen at that instant"),
    ("i  o", "zoom in, out"),
    ("l", "list all markers"),
    ("Esc", "leave the charts: the arrows select segments of the runs table again"),
)
_SCROLL = ("↑ ↓ PgUp PgDn", "scroll")
_FAR = ("g  G", "to the first line, to the last")
_OUT = ("Esc", "leave: the arrows select segments of the runs table again")
_NEXT = ("d  D", "next, previous list: processes, cores, disks, interfaces, status pages, tails")
_HOST = ("tab", "next host")
_ROWS = (
    ("↑ ↓", "select a segment: the latency above is of that segment; Esc follows the newest again"),
    ("c", "compare it: verdict, every metric with its interval, beside its baseline"),
    ("b", "make it the baseline"),
    ("w", "averages of every host over the segment"),
    ("Enter", "focus the processes (or another list below the host)"),
)
_PROCESSES = (
    ("↑ ↓ PgUp PgDn", "select a process; Esc deselects"),
    _FAR,
    ("s  S", "sort by the next column; reverse the order"),
    ("z", "show each of identical processes, or fold them into one line"),
    ("/", "show only processes with a text in PID or command"),
    ("f", "freeze: sort and read this instant while the load continues"),
    _NEXT,
    _HOST,
    ("p", "one host on the whole screen, then all hosts, then back"),
    _OUT,
)
_TAIL = (
    ("↑ PgUp g", "scroll back; the tail pauses and counts new lines"),
    ("↓ PgDn G", "towards the newest line"),
    _NEXT,
    _HOST,
    ("Esc", "to the newest line, then leave"),
)
_OTHER = (_SCROLL, _FAR, ("f", "freeze: read this instant while the load continues"), _NEXT, _HOST, _OUT)
_NAMES = {"nets": "interfaces", "page": "status page", "sar": "all metrics"}


def focus_of(context: DrawContext) -> Focus:
    if context.view.cursor is not None:
        return Focus("the charts over time", _OVER_TIME)
    host = context.host
    if host is None or not context.view.inside:
        return Focus("the runs table", _ROWS)
    detail = context.detail(host)
    keys = {"processes": _PROCESSES, "tail": _TAIL}.get(detail.kind, _OTHER)
    return Focus(f"{name_of(detail)} of {neutral(host.config.name)}", keys)


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
    return "  ".join(key_name(key.strip()) for key in binding.key.split(","))


def show_help(app: App[Any]) -> None:
    """Show the help of the top screen: its own page, or its keys; close it if it is open."""
    screen = app.screen
    if isinstance(screen, HelpScreen):
        screen.dismiss()
    elif isinstance(screen, Helping):
        app.push_screen(screen.help_screen())
    elif keys := keys_of(screen):
        app.push_screen(HelpScreen(keys))


def main_help(context: DrawContext) -> HelpScreen:
    focus = focus_of(context)
    return HelpScreen(help_entries(context.actions, focus.keys, focus.title), f"in focus: {focus.title}")
