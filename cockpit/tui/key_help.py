"""Descriptions of keys: per screen, from its bindings, and per focused pane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

from textual.app import App
from textual.binding import Binding
from textual.screen import Screen

from cockpit.model.text import sanitize
from cockpit.tui.dialogs.help import HelpScreen, help_entries
from cockpit.tui.draw_context import PROCESSES, DrawContext, name_of
from cockpit.tui.key_table import DETAILS, SELECT, SORT, ZOOM, MainKey, Shortcut, ViewKey, key_name


class Focus(NamedTuple):
    """The focused pane and its keys in HELP."""

    title: str
    keys: tuple[Shortcut | str, ...]


@runtime_checkable
class HasHelp(Protocol):
    """A screen that has its own help page."""

    def help_screen(self) -> Screen[None]: ...


# Keys by focused pane, as HELP describes them.
_CHARTS: tuple[Shortcut | str, ...] = (ViewKey.CURSOR, ZOOM, ViewKey.MARKERS)
_RUNS_TABLE: tuple[Shortcut | str, ...] = (
    *(SELECT, MainKey.COMPARE, MainKey.BASELINE, ViewKey.METRICS, ViewKey.FOCUS),
)
_LIST: tuple[Shortcut | str, ...] = (ViewKey.FOCUS, DETAILS, ViewKey.NEXT_HOST, ViewKey.ROOM, ViewKey.FREEZE)
_PROCESSES: tuple[Shortcut | str, ...] = (*_LIST, SORT, ViewKey.FOLD, ViewKey.FILTER)


def focus_of(context: DrawContext) -> Focus:
    if context.view.cursor is not None:
        return Focus("the charts over time", _CHARTS)
    host = context.host
    if host is None or not context.view.list_focused:
        return Focus("the runs table", _RUNS_TABLE)
    detail = context.detail(host)
    keys = _PROCESSES if detail == PROCESSES else _LIST
    return Focus(f"{name_of(detail)} of {sanitize(host.config.name)}", keys)


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
    return HelpScreen(help_entries(context.actions, focus.keys, focus.title), f"in focus: {focus.title}")
