"""The command palette (ctrl+p): all commands of the top screen, with their keys."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

from rich.cells import cell_len
from textual.app import App
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.screen import Screen

from cockpit.analysis.words.timeline import marker_sign
from cockpit.model.errors import UsageError
from cockpit.model.markers import Marker
from cockpit.model.text import clock, sanitize
from cockpit.tui.charts.markers import marker_label
from cockpit.tui.draw_context import LATENCY_VIEWS, Detail, DrawContext, View, details_of, name_of
from cockpit.tui.key_help import bindings_of, names_of
from cockpit.tui.key_names import action_key
from cockpit.tui.key_table import AppKey, CompareKey, MainKey, ViewKey, key_names
from cockpit.tui.terminal import theme
from cockpit.tui.terminal.styled_line import fit

# Width of the palette and of its first column in cells.
_WIDTH, _TITLE = 84, 30
# Keys that move a cursor are not listed as commands.
_MOVES = {MainKey.UP, MainKey.DOWN, MainKey.BACK, ViewKey.TOP, ViewKey.BOTTOM, ViewKey.PAGE_UP, ViewKey.PAGE_DOWN}
_MOVING = {key.key for key in (*_MOVES, CompareKey.LEFT, CompareKey.RIGHT)}

# The palette and tooltips in the style of the dialogs.
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
    """`title` is searched; `words` is one line about the command, with its key.

    In the command line `run` gets the argument, if there is one. `argument`: its name, "" if the command has none.
    `complete` returns possible arguments for a text; `check` raises UsageError for an invalid argument.
    """

    title: str
    words: str
    run: Callable[..., Any]
    argument: str = ""
    complete: Callable[[str], Iterable[str]] = lambda _: ()
    check: Callable[[str], object] = lambda _: None


@runtime_checkable
class HasCommands(Protocol):
    """A screen that has commands in addition to its bindings."""

    def commands(self) -> Iterable[Command]: ...


class CommandProvider(Provider):
    """Searches the commands of the screen below the palette."""

    async def discover(self) -> Hits:
        for command in commands_of(self.app, self.screen):
            yield DiscoveryHit(self._line(command, Content(command.title)), self._run(command), text=command.title)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in commands_of(self.app, self.screen):
            score = max(matcher.match(command.title), 0.5 * matcher.match(command.words))
            if score > 0:
                matches = matcher.match(command.title) > 0
                title = matcher.highlight(command.title) if matches else Content(command.title)
                yield Hit(score, self._line(command, title), self._run(command), text=command.title)

    def _run(self, command: Command) -> Callable[[], Any]:
        """Return what runs the command; the command line asks for an argument without which it is invalid."""
        try:
            command.check("")
        except UsageError:
            return partial(self.app.action_command_line, f"{command.title} ")  # type: ignore[attr-defined]
        return command.run

    def _line(self, command: Command, title: Content) -> Content:
        gap = max(2, _TITLE - cell_len(command.title))
        room = min(_WIDTH, self.app.size.width) - 8 - gap - cell_len(command.title)
        words = command.words if cell_len(command.words) <= room else fit(command.words, max(0, room))
        return Content.assemble(title, " " * gap, (words, "$cockpit-dim"))


def commands_of(app: App[Any], screen: Screen[Any]) -> Iterator[Command]:
    """Yield the screen's commands, its bindings, then the global commands; each title once."""
    extra = screen.commands() if isinstance(screen, HasCommands) else ()
    seen: set[str] = set()
    for command in (*extra, *_bound(app, screen), *_global(app)):
        if command.title not in seen:
            seen.add(command.title)
            yield command


def _bound(app: App[Any], screen: Screen[Any]) -> Iterator[Command]:
    for binding in bindings_of(screen):
        if binding.key in _MOVING:
            continue
        words = f"{names_of(binding)}   {_summary(app, screen, binding.action)}".rstrip()
        yield Command(binding.description, words, partial(app.run_action, binding.action, screen))


def _summary(app: App[Any], screen: Screen[Any], action: str) -> str:
    """Return the first line of the action's docstring; "" for actions of Textual."""
    owner, _, name = action.partition("(")[0].rpartition(".")
    method = getattr(app if owner == "app" else screen, f"action_{name}", None)
    if method is None or not type(screen).__module__.startswith("cockpit."):
        return ""
    docstring = inspect.getdoc(method) or ""
    return docstring.partition("\n")[0].rstrip(".") if method.__func__.__module__.startswith("cockpit.") else ""


def _global(app: App[Any]) -> Iterator[Command]:
    for name in theme.NAMES:
        words = f"{AppKey.THEME}   colours of the screen{', active' if name == app.theme else ''}; remembered"
        yield Command(f"theme {name}", words, partial(app.action_theme, name))  # type: ignore[attr-defined]
    sign = key_names(AppKey.HELP_SIGN, AppKey.HELP)
    yield Command("help", f"{sign}   keys of the focused pane, definitions of metrics", app.action_help)  # type: ignore[attr-defined]
    yield Command("quit", f"{AppKey.LEAVE}   the load stops, the recording is closed", app.action_leave)  # type: ignore[attr-defined]


def main_commands(
    context: DrawContext, begin: Callable[..., object], show: Callable[[View], None]
) -> Iterator[Command]:
    """Yield the commands of the main screen; `begin(action)` may open a prompt, `begin(action, answer)` does not."""
    for action in context.actions:
        asks = f"   asks: {action.prompt}" if action.prompt else ""
        argument = "TIME" if action.name == "jump" else "TEXT" if action.prompt else ""
        yield Command(action.label, f"{action_key(action)}{asks}", partial(begin, action), argument)
    for view in LATENCY_VIEWS:
        words = f"{MainKey.VIEW}: next view"
        yield Command(f"view latency as {view}", words, partial(show, replace(context.view, latency=view)))
    yield from _hosts(context, show)


def marker_commands(markers: Sequence[Marker], jump: Callable[[float], object]) -> Iterator[Command]:
    """Yield a command per marker; the time distinguishes equal notes."""
    for marker in markers:
        title = f"jump to {sanitize(marker_sign(marker))} {marker_label(marker)}".rstrip()
        yield Command(f"{title} at {clock(marker.t)}", marker.kind, partial(jump, marker.t))


def _hosts(context: DrawContext, show: Callable[[View], None]) -> Iterator[Command]:
    for place, host in enumerate(context.hosts):
        name = sanitize(host.config.name)
        view = replace(context.view, host=place)
        if len(context.hosts) > 1:
            yield Command(f"show {name}", f"{ViewKey.NEXT_HOST}: next host", partial(show, view))
        for detail in details_of(host):
            chosen = replace(view, details={**view.details, host.config.name: detail})
            title = f"{name}: {_title(host.config.tail, detail)}"
            yield Command(title, f"{ViewKey.NEXT_DETAIL}: next list below the host", partial(show, chosen))


def _title(tails: tuple[str, ...], detail: Detail) -> str:
    if detail.kind == "tail" and detail.place < len(tails):
        return f"tail {sanitize(tails[detail.place], 60)}"
    number = f" {detail.place + 1}" if detail.kind == "page" else ""
    return f"{name_of(detail)}{number}"
