"""The footer: keys of the session, keys of the screen, then help and quit."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.session.controls import LoadStatus, Mode
from cockpit.tui import key_table
from cockpit.tui.draw_context import PROCESSES, DrawContext
from cockpit.tui.key_names import action_key, footer_entries, key_entry, spots_of
from cockpit.tui.key_table import ChartKey, FooterEntry, MainKey
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import GAP, Line, join_fitting, left_and_right, length


class Footer(Lines):
    DEFAULT_CSS = "Footer { height: 1; background: $panel; padding: 0 1; }"

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        if context.ending:
            self.spots = ()
            return [((context.ending, "strong"),)]
        leave = MainKey.QUIT.label if context.view.room == "column" else "close"
        always = join_fitting([key_entry(MainKey.HELP, MainKey.HELP.label), key_entry(MainKey.QUIT, leave)], width)
        taken = set() if context.view.cursor is None else {key.key for key in ChartKey}
        actions = [action for action in context.actions if action.footer and action_key(action).key not in taken]
        offered = [key_entry(action_key(action), action.label) for action in actions]
        room = width - length(always) - 2
        of_screen = footer_entries(_screen_keys(context), len(context.hosts))
        # The keys of the focused pane first.
        focused = context.view.cursor is not None or (context.host is not None and context.view.list_focused)
        keys = [*of_screen, *offered] if focused else [*offered, *of_screen]
        first = key_table.FOOTER_FIRST_CHANGED if context.state.own_changes else key_table.FOOTER_FIRST
        line = left_and_right(join_fitting(_fitting(keys, list(map(str, first)), room), room), always, width)
        self.spots = list(spots_of(line))
        return [line]


def _fitting(keys: list[Line], first: Sequence[str], room: int) -> list[Line]:
    """Return the keys that fit, in order; the first key has priority, then the keys in `first`."""
    prioritized = [*keys[:1], *(key for name in first for key in keys[1:] if key[0][0] == name)]
    kept: list[Line] = []
    for key in (*prioritized, *(key for key in keys if key not in prioritized)):
        needed = length(key) + len(GAP) * bool(kept)
        if needed <= room:
            kept.append(key)
            room -= needed
    return [key for key in keys if key in kept]


def _screen_keys(context: DrawContext) -> tuple[FooterEntry, ...]:
    if context.view.cursor is not None:
        return key_table.FOOTER_CHARTS
    if context.host is None or not context.view.list_focused:
        live = isinstance(context.status, LoadStatus) and context.mode is Mode.LIVE
        return (*(key_table.FOOTER_LOAD if live else ()), *key_table.FOOTER_SCREEN)
    of_list = key_table.FOOTER_PROCESSES if context.detail(context.host) == PROCESSES else ()
    return (*key_table.FOOTER_SCROLL, *of_list, *key_table.FOOTER_LIST)
