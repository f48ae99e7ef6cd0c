"""The command palette (ctrl+p): everything that the screen on top can do, by name, with its key."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

from rich.cells import cell_len
from textual.app import App
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.screen import Screen

from cockpit.tui.charts.cursor import ALONG
from cockpit.tui.keys import bindings_of, names_of
from cockpit.tui.terminal import theme
from cockpit.tui.terminal.styled_line import fit

# Cells: of the palette, and of its first column.
_WIDTH, _TITLE = 84, 30
# What moves a cursor is no command; opening what the arrows stand on is one.
_MOVES = frozenset({"up", "down", "g", "G", "escape", *ALONG})

# The palette and tooltips as the dialogs look.
STYLE = """
CommandPalette { background: transparent; }
CommandPalette > Vertical { width: 84; max-width: 100%; margin-top: 2; }
CommandPalette #--input { border: solid $cockpit-chart; border-bottom: none; background: $surface; }
CommandPalette SearchIcon { display: none; }
CommandPalette #--results { max-height: 70%; }
CommandPalette CommandList {
    border: solid $cockpit-chart; border-top: none; background: $surface; max-height: 100%; scrollbar-size: 1 1;
}
Tooltip { background: $panel; color: $cockpit-text; padding: 0 1; max-width: 60; }
"""


class Command(NamedTuple):
    """A command: `title` is searched, `words` is one line about it with its key."""

    title: str
    words: str
    run: Callable[[], Any]


@runtime_checkable
class Commanding(Protocol):
    """A screen that offers more than its bindings."""

    def commands(self) -> Iterable[Command]: ...


class Everything(Provider):
    """Searches the commands of the screen that was on top when the palette was opened."""

    async def discover(self) -> Hits:
        for command in commands_of(self.app, self.screen):
            yield DiscoveryHit(self._line(command, Content(command.title)), command.run, text=command.title)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in commands_of(self.app, self.screen):
            score = max(matcher.match(command.title), 0.5 * matcher.match(command.words))
            if score > 0:
                found = matcher.match(command.title) > 0
                title = matcher.highlight(command.title) if found else Content(command.title)
                yield Hit(score, self._line(command, title), command.run, text=command.title)

    def _line(self, command: Command, title: Content) -> Content:
        """Title and words side by side, cut to the palette's width."""
        gap = max(2, _TITLE - cell_len(command.title))
        room = min(_WIDTH, self.app.size.width) - 8 - gap - cell_len(command.title)
        words = command.words if cell_len(command.words) <= room else fit(command.words, max(0, room))
        return Content.assemble(title, " " * gap, (words, "$cockpit-dim"))


def commands_of(app: App[Any], screen: Screen[Any]) -> Iterator[Command]:
    """Yield the screen's own commands, its bindings, then the global ones; each title once."""
    own = screen.commands() if isinstance(screen, Commanding) else ()
    seen: set[str] = set()
    for command in (*own, *_bound(app, screen), *_everywhere(app)):
        if command.title not in seen:
            seen.add(command.title)
            yield command


def _bound(app: App[Any], screen: Screen[Any]) -> Iterator[Command]:
    for binding in bindings_of(screen):
        if binding.key in _MOVES:
            continue
        words = f"{names_of(binding)}   {_told(app, screen, binding.action)}".rstrip()
        yield Command(binding.description, words, partial(app.run_action, binding.action, screen))


def _told(app: App[Any], screen: Screen[Any], action: str) -> str:
    """Return the first line of an action's docstring."""
    of, _, name = action.partition("(")[0].rpartition(".")
    method = getattr(app if of == "app" else screen, f"action_{name}", None)
    if method is None or not type(screen).__module__.startswith("cockpit."):
        return ""
    written = inspect.getdoc(method) or ""
    return written.partition("\n")[0].rstrip(".") if method.__func__.__module__.startswith("cockpit.") else ""


def _everywhere(app: App[Any]) -> Iterator[Command]:
    for name in theme.NAMES:
        words = f"T   colours of the screen{', active' if name == app.theme else ''}; remembered"
        yield Command(f"theme: {name}", words, partial(app.action_theme, name))  # type: ignore[attr-defined]
    yield Command("help", "?  F1   keys of the focused pane, definitions of metrics", app.action_help)  # type: ignore[attr-defined]
    yield Command("quit", "^Q   the load stops, the recording is closed", app.action_leave)  # type: ignore[attr-defined]
