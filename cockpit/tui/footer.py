"""The last line: keys of the session, of the screen, then help and quit."""

from __future__ import annotations

import re
from typing import NamedTuple

from cockpit.session.controls import LoadStatus, Mode
from cockpit.tui.charts.cursor import ALONG
from cockpit.tui.draw_context import PROCESSES, DrawContext
from cockpit.tui.key_names import action_key, action_key_name, key_entry, spots_of
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import Line, ends, length, packed


class FooterKey(NamedTuple):
    """A key that is of use with at least `hosts` hosts."""

    key: str
    label: str
    hosts: int = 0


def _keys(text: str) -> tuple[FooterKey, ...]:
    """Parse `KEY LABEL, KEY LABEL HOSTS, …`."""
    entries = (re.fullmatch(r"(.+) ([a-z]+) ?(\d?)", entry) for entry in text.split(", "))
    return tuple(FooterKey(found[1], found[2], int(found[3] or 0)) for found in entries if found)


_SCREEN = _keys(
    "t tune, c compare, r rounds, x check, v view, e cursor, tab host 2, d detail 1, Enter focus 1, p full 1, "
    "a metrics 1, "
    "w averages 1, b baseline, i o zoom, l markers"
)
_LOAD = _keys("= load")
_CHARTS = _keys("← → move, Esc back, [ ] marker, Enter jump, i o zoom, l markers, v view")
_LIST = _keys(
    "↑↓ PgUp PgDn scroll 1, Esc back 1, d detail 1, f freeze 1, p full 1, tab host 2, a metrics 1, w averages 1"
)
_PROCESSES = _keys("/ filter 1, s sort 1, S reverse 1, z each 1")
# Keys with priority beside the first: before the first change, and after it.
_FIRST, _WITH_A_CHANGE = ("c", "t", "=", "d"), ("c", "t", "r", "=", "d")
_ALWAYS = _keys("? help, q quit")


class Footer(Lines):
    DEFAULT_CSS = "Footer { height: 1; background: $panel; padding: 0 1; }"

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        always = packed([key_entry(key, label) for key, label, _ in _ALWAYS], width)
        taken = () if context.view.cursor is None else ALONG
        actions = [action for action in context.actions if action.footer and action_key(action) not in taken]
        offered = [key_entry(action_key_name(action), action.label) for action in actions]
        room = width - length(always) - 2
        own = [key_entry(key, label) for key, label, hosts in _own(context) if len(context.hosts) >= hosts]
        # The keys of the focused pane first.
        focused = context.view.cursor is not None or (context.host is not None and context.view.inside)
        keys = [*own, *offered] if focused else [*offered, *own]
        first = _WITH_A_CHANGE if context.state.own_changes else _FIRST
        line = ends(packed(_that_fit(keys, first, room), room), always, width)
        self.spots = list(spots_of(line))
        return [line]


def _that_fit(keys: list[Line], first: tuple[str, ...], room: int) -> list[Line]:
    """Return the keys that fit, in order; the first key has priority, then those in `first`."""
    weighty = [*keys[:1], *(key for name in first for key in keys[1:] if key[0][0] == name)]
    kept: list[Line] = []
    for key in (*weighty, *(key for key in keys if key not in weighty)):
        if length(packed([*kept, key], room)) > length(packed(kept, room)):
            kept.append(key)
    return [key for key in keys if key in kept]


def _own(context: DrawContext) -> tuple[FooterKey, ...]:
    if context.view.cursor is not None:
        return _CHARTS
    if context.host is None or not context.view.inside:
        return (*_LOAD, *_SCREEN) if isinstance(context.status, LoadStatus) and context.mode is Mode.LIVE else _SCREEN
    return (*_LIST[:2], *(_PROCESSES if context.detail(context.host) == PROCESSES else ()), *_LIST[2:])
