"""Effects of keys on the view: each function returns the next view. Pure."""

from __future__ import annotations

from dataclasses import replace

from cockpit.tui.draw_context import PROCESSES, DrawContext, HostRoom, View, details_of
from cockpit.tui.hosts.processes import entries, identity, place_of


def host_at(context: DrawContext, number: int) -> View:
    """Select a host; no effect if it is selected already."""
    if not context.hosts:
        return context.view
    host = number % len(context.hosts)
    return context.view if host == context.view.host else replace(_unscrolled(context.view), host=host)


def next_detail(context: DrawContext, step: int) -> View:
    """Show the next list of the selected host; after all metrics, the previously shown list."""
    host, view = context.host, context.view
    if host is None:
        return view
    if view.metrics:
        return replace(_unscrolled(view), metrics=False)
    offered = details_of(host)
    following = offered[(offered.index(context.detail(host)) + step) % len(offered)]
    return replace(_unscrolled(view), details={**view.details, host.config.name: following})


def all_metrics(context: DrawContext) -> View:
    """Show all metrics of the selected host on the whole screen, or hide them."""
    view = context.view
    return leave_list(view) if view.metrics else replace(_unscrolled(view), cursor=None, room="alone", metrics=True)


def on_whole_screen(context: DrawContext) -> View:
    """Show the selected host on the whole screen with its list."""
    return replace(_unscrolled(context.view), cursor=None, room="alone", metrics=False)


def toggle_list_focus(context: DrawContext, alone: bool) -> View:
    """Focus the list, or remove its focus; `alone`: the list needs the whole screen."""
    view = context.view
    if view.list_focused:
        return leave_list(view)
    return replace(view, cursor=None, room="alone") if alone else replace(view, cursor=None, list_entered=True)


def leave_list(view: View) -> View:
    return replace(_unscrolled(view), list_entered=False, room="column", metrics=False)


def next_room(context: DrawContext) -> View:
    rooms: tuple[HostRoom, ...] = ("column", "alone", "all") if len(context.hosts) > 1 else ("column", "alone")
    at = rooms.index(context.view.room) if context.view.room in rooms else 0
    return replace(context.view, cursor=None, room=rooms[(at + 1) % len(rooms)], metrics=False)


def back(view: View) -> View:
    """Go one step back: leave the charts, show the newest line of a tail, leave the list, or reset the view."""
    if view.cursor is not None:
        return replace(view, cursor=None)
    if view.paused_tail is not None:
        return _unscrolled(view)
    if view.list_focused:
        return leave_list(view)
    return replace(_unscrolled(view), segment=None, frozen=None, filter="", span=None)


def scrolled(context: DrawContext, lines: int, most: int) -> View:
    """Scroll the list of the selected host by `lines`, to at most `most`; a tail pauses until its end is shown."""
    host, view = context.host, context.view
    if host is None:
        return view
    detail = context.detail(host)
    if detail == PROCESSES:
        rows = entries(host, view)
        if not rows:
            return view
        place = max(0, min(place_of(rows, view) + lines, len(rows) - 1))
        return replace(view, scroll=place, process=identity(rows[place][0]))
    if detail.kind == "tail":
        above = max(0, min(min(view.scroll, most) - lines, most))
        return replace(
            view, scroll=above, paused_tail=(view.paused_tail or host.tails[detail.place]) if above else None
        )
    return replace(view, scroll=max(0, min(min(view.scroll, most) + lines, most)))


def _unscrolled(view: View) -> View:
    return replace(view, scroll=0, process=None, paused_tail=None)
