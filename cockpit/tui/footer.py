"""The last line: keys, those of the session first. Help and quit are always there."""

from __future__ import annotations

from cockpit.session.controls import Action
from cockpit.tui.action_keys import action_key, action_key_name
from cockpit.tui.charts.cursor import ALONG
from cockpit.tui.draw_context import PROCESSES, DrawContext
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import Line, ends, length, packed

# Key, label, and how many hosts it takes to be of use.
_SCREEN: tuple[tuple[str, str, int], ...] = (
    ("t", "tune", 0),
    ("c", "compare", 0),
    ("r", "rounds", 0),
    ("v", "view", 0),
    ("e", "cursor", 0),
    ("tab", "host", 2),
    ("d", "detail", 1),
    ("Enter", "focus", 1),
    ("p", "full", 1),
    ("w", "averages", 1),
    ("b", "baseline", 0),
    ("i o", "zoom", 0),
    ("l", "markers", 0),
)
# While they move the cursor in the charts over time.
_OVER_TIME: tuple[tuple[str, str, int], ...] = (
    ("← →", "move", 0),
    ("Esc", "back", 0),
    ("[ ]", "to a marker", 0),
    ("Enter", "go there", 0),
    ("i o", "zoom", 0),
    ("l", "markers", 0),
    ("v", "view", 0),
)
# While the arrows act on the detail of a host.
_INSIDE: tuple[tuple[str, str, int], ...] = (
    ("↑↓ PgUp PgDn", "scroll", 1),
    ("Esc", "back", 1),
    ("d", "detail", 1),
    ("f", "freeze", 1),
    ("p", "full", 1),
    ("tab", "host", 2),
    ("w", "averages", 1),
)
_OF_PROCESSES: tuple[tuple[str, str, int], ...] = (("/", "filter", 1), ("s", "sort", 1), ("S", "reverse", 1))
# Keys with priority, besides the first one: before the first change, and then.
_FIRST, _WITH_A_CHANGE = ("c", "t", "d"), ("c", "t", "r", "d")
_ALWAYS: tuple[tuple[str, str], ...] = (("?", "help"), ("q", "quit"))


class Footer(Lines):
    """One line high."""

    DEFAULT_CSS = "Footer { height: 1; background: $panel; padding: 0 1; }"

    def draw(self, scene: DrawContext, width: int, height: int) -> list[Line]:
        always = packed([_key(*entry) for entry in _ALWAYS], width)
        taken = () if scene.view.cursor is None else ALONG
        offered = [_action(action) for action in scene.actions if action.footer and action_key(action) not in taken]
        room = width - length(always) - 2
        own = [_key(key, label) for key, label, hosts in _own(scene) if len(scene.hosts) >= hosts]
        # The keys of the focused pane first.
        keys = [*own, *offered] if _inside(scene) or scene.view.cursor is not None else [*offered, *own]
        first = _WITH_A_CHANGE if scene.state.own_changes else _FIRST
        return [ends(packed(_that_fit(keys, first, room), room), always, width)]


def _that_fit(keys: list[Line], first: tuple[str, ...], room: int) -> list[Line]:
    """Return the keys that fit, in order; if not all do, the first key and those in `first` have priority."""
    weighty = [key for at, key in enumerate(keys) if at == 0 or key[0][0] in first]
    kept: list[Line] = []
    for key in (*weighty, *(key for key in keys if key not in weighty)):
        if length(packed([*kept, key], room)) > length(packed(kept, room)):
            kept.append(key)
    return [key for key in keys if key in kept]


def _inside(scene: DrawContext) -> bool:
    return scene.host is not None and scene.view.inside


def _own(scene: DrawContext) -> tuple[tuple[str, str, int], ...]:
    """Return the screen's own keys that apply to the focus."""
    if scene.view.cursor is not None:
        return _OVER_TIME
    if scene.host is None or not scene.view.inside:
        return _SCREEN
    of_processes = _OF_PROCESSES if scene.detail(scene.host) == PROCESSES else ()
    return (*_INSIDE[:2], *of_processes, *_INSIDE[2:])


def _action(action: Action) -> Line:
    return _key(action_key_name(action), action.label)


def _key(key: str, label: str) -> Line:
    return ((key, "key"), (f" {label}", "dim"))
