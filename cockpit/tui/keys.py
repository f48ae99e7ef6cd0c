"""The keys of any screen in words, from its bindings, and the help that tells them. What is in focus comes first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

from textual.app import App
from textual.binding import Binding
from textual.screen import Screen

from cockpit.model.text import neutral
from cockpit.tui.dialogs.help import HelpScreen, help_entries
from cockpit.tui.draw_context import Detail, DrawContext
from cockpit.tui.terminal.words import key_name


class Focus(NamedTuple):
    """What the keys act on now, and which of them: (keys, words)."""

    title: str
    keys: tuple[tuple[str, str], ...]


@runtime_checkable
class Helping(Protocol):
    """A screen that knows more of its keys than their names."""

    def help_screen(self) -> Screen[None]: ...


_OVER_TIME = (
    ("← → PgUp PgDn", "move the cursor; what is under it is named beside the titles of both charts"),
    ("Home  End", "to the first cell, to the newest"),
    ("[  ]", "to the marker or the beginning of a row before, after; its words stand beside its letter"),
    ("Enter", "all of the screen as it was then"),
    ("i  o", "zoom in, out"),
    ("l", "all markers with their words"),
    ("Esc", "out of the charts: the arrows choose rows of the runs table again"),
)
_SCROLL = ("↑ ↓ PgUp PgDn", "scroll")
_FAR = ("g  G", "to the first line, to the last")
_OUT = ("Esc", "out of it: the arrows choose rows of the runs table again")
_NEXT = (
    "d  D",
    "what stands here instead: processes, cores, disks, interfaces, status pages, tails",
)
_HOST = ("tab", "the next host")
_ROWS = (
    ("↑ ↓", "choose a row: the latency above is that row's; Esc follows the newest again"),
    ("c", "the verdict on the row, with every figure and how sure it is; beside it the row it is held against"),
    ("b", "make it the baseline that rows are compared with"),
    ("w", "every host's averages over the row"),
    ("Enter", "into the processes (or whatever stands below the host's figures)"),
)
_PROCESSES = (
    ("↑ ↓ PgUp PgDn", "choose a process; Esc lets go"),
    _FAR,
    ("s  S", "sort by the next column; the other way round"),
    ("/", "only those with a text in their PID or command"),
    ("f", "freeze: sort and read what was so at this instant, while the load goes on"),
    _NEXT,
    _HOST,
    ("p", "the host alone on the whole screen, then all hosts, then as before"),
    _OUT,
)
_TAIL = (
    ("↑ PgUp g", "look back; the tail stands still meanwhile, and says how many lines came since"),
    ("↓ PgDn G", "towards the newest line"),
    _NEXT,
    _HOST,
    ("Esc", "to the newest line, then out of it"),
)
_OTHER = (_SCROLL, _FAR, ("f", "freeze: read what was so at this instant, while the load goes on"), _NEXT, _HOST, _OUT)
_NAMES = {"nets": "interfaces", "page": "status page"}


def focus_of(scene: DrawContext) -> Focus:
    """What the arrows act on: the charts over time, the detail of the host looked at, or the runs table."""
    if scene.view.cursor is not None:
        return Focus("the charts over time", _OVER_TIME)
    host = scene.host
    if host is None or not scene.view.inside:
        return Focus("the runs table", _ROWS)
    detail = scene.detail(host)
    keys = {"processes": _PROCESSES, "tail": _TAIL}.get(detail.kind, _OTHER)
    return Focus(f"{name_of(detail)} of {neutral(host.config.name)}", keys)


def name_of(detail: Detail) -> str:
    """What a detail is called."""
    return _NAMES.get(detail.kind, detail.kind)


def bindings_of(screen: Screen[Any]) -> Iterator[Binding]:
    """The screen's own bindings that say what they do, in the order in which they were written."""
    for kind in type(screen).__mro__:
        for binding in kind.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.description and kind.__module__.startswith("cockpit."):
                yield binding


def keys_of(screen: Screen[Any]) -> tuple[tuple[str, str], ...]:
    """Each of them as (keys, words)."""
    return tuple((names_of(binding), binding.description) for binding in bindings_of(screen))


def names_of(binding: Binding) -> str:
    """A binding's keys as they stand on a keyboard."""
    return "  ".join(key_name(key.strip()) for key in binding.key.split(","))


def show_help(app: App[Any]) -> None:
    """The help of the screen on top: its own where it has one, else its keys; away with it where it is there."""
    screen = app.screen
    if isinstance(screen, HelpScreen):
        screen.dismiss()
    elif isinstance(screen, Helping):
        app.push_screen(screen.help_screen())
    elif keys := keys_of(screen):
        app.push_screen(HelpScreen(keys))


def main_help(scene: DrawContext) -> HelpScreen:
    """The help of the main screen: what the arrows act on comes first."""
    focus = focus_of(scene)
    return HelpScreen(help_entries(scene.actions, focus.keys, focus.title), f"in focus: {focus.title}")
