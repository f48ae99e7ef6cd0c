"""The last line: keys, those of the session first. Help and quit are always there."""

from __future__ import annotations

from cockpit.session.controls import Action
from cockpit.tui.cells import Line, ends, length, packed
from cockpit.tui.lines import Lines
from cockpit.tui.scene import Scene
from cockpit.tui.words import key_name

# Key, label, and how many hosts it takes to be of use.
_SCREEN: tuple[tuple[str, str, int], ...] = (
    ("t", "tune", 0),
    ("v", "view", 0),
    ("b", "baseline", 0),
    ("tab", "host", 2),
    ("p", "processes", 1),
    ("s", "sort", 1),
)
_ALWAYS: tuple[tuple[str, str], ...] = (("?", "help"), ("q", "quit"))


class Footer(Lines):
    """One line high."""

    DEFAULT_CSS = "Footer { height: 1; background: $panel; padding: 0 1; }"

    def draw(self, scene: Scene, width: int, height: int) -> list[Line]:
        always = packed([_key(*entry) for entry in _ALWAYS], width)
        offered = [_action(action) for action in scene.actions if action.footer]
        room = width - length(always) - 2
        own = [_key(key, label) for key, label, hosts in _SCREEN if len(scene.hosts) >= hosts]
        return [ends(packed([*offered, *own], room), always, width)]


def _action(action: Action) -> Line:
    return _key(key_name(action.keys[0]), action.label)


def _key(key: str, label: str) -> Line:
    return ((key, "key"), (f" {label}", "dim"))
