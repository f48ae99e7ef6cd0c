"""The effect of keys on the view: from the shown context to the next view. Pure."""

from __future__ import annotations

from dataclasses import replace

from cockpit.tui.draw_context import PROCESSES, DrawContext, HostRoom, View, details_of
from cockpit.tui.hosts.processes import entries, identity, place_of


def next_host(context: DrawContext, step: int) -> View:
    return host_at(context, context.view.host + step) if context.hosts else context.view


def host_at(context: DrawContext, number: int) -> View:
    """Select a host; the view stays if it is selected."""
    host = number % len(context.hosts)
    return context.view if host == context.view.host else replace(_at_rest(context.view), host=host)


def next_detail(context: DrawContext, step: int) -> View:
    """Return the next list of the selected host; from averages or all metrics back to the one before them."""
    host, view = context.host, context.view
    if host is None:
        return view
    if view.averages or view.metrics:
        return replace(_at_rest(view), averages=False, metrics=False)
    offered = details_of(host)
    following = offered[(offered.index(context.detail(host)) + step) % len(offered)]
    return replace(_at_rest(view), details={**view.details, host.config.name: following})


def averages(context: DrawContext) -> View:
    return replace(_at_rest(context.view), averages=not context.view.averages, metrics=False)


def all_metrics(context: DrawContext) -> View:
    """Show all metrics of the selected host on the whole screen, or leave them."""
    view = context.view
    return left(view) if view.metrics else replace(_at_rest(view), cursor=None, room="alone", metrics=True)


def alone(context: DrawContext, averages: bool = False) -> View:
    """Show the selected host, which was not visible, on the whole screen with its list or its averages."""
    return replace(_at_rest(context.view), cursor=None, room="alone", averages=averages, metrics=False)


def entered(context: DrawContext, alone: bool) -> View:
    """Focus the list, or leave it; `alone`: it needs the whole screen."""
    view = context.view
    if view.inside:
        return left(view)
    return replace(view, cursor=None, room="alone") if alone else replace(view, cursor=None, entered=True)


def left(view: View) -> View:
    return replace(_at_rest(view), entered=False, room="column", metrics=False)


def next_room(context: DrawContext) -> View:
    rooms: tuple[HostRoom, ...] = ("column", "alone", "all") if len(context.hosts) > 1 else ("column", "alone")
    at = rooms.index(context.view.room) if context.view.room in rooms else 0
    return replace(context.view, cursor=None, room=rooms[(at + 1) % len(rooms)], metrics=False)


def back(view: View) -> View:
    """Go one step back: out of the charts, to the newest line of a tail, out of the list, to the initial view."""
    if view.cursor is not None:
        return replace(view, cursor=None)
    if view.held is not None:
        return _at_rest(view)
    if view.inside:
        return left(view)
    return replace(_at_rest(view), segment=None, frozen=None, averages=False, filter="", span=None)


def scrolled(context: DrawContext, lines: int, most: int) -> View:
    """Scroll the list of the selected host by `lines`, up to `most`. A tail pauses until its newest line is shown."""
    host, view = context.host, context.view
    if host is None:
        return view
    detail = context.detail(host)
    if detail == PROCESSES:
        rows = entries(host, view)
        if not rows:
            return view
        place = max(0, min(place_of(rows, view) + lines, len(rows) - 1))
        return replace(view, scroll=place, chosen=identity(rows[place][0]))
    if detail.kind == "tail":
        above = max(0, min(min(view.scroll, most) - lines, most))
        return replace(view, scroll=above, held=(view.held or host.tails[detail.place]) if above else None)
    return replace(view, scroll=max(0, min(min(view.scroll, most) + lines, most)))


def _at_rest(view: View) -> View:
    return replace(view, scroll=0, chosen=None, held=None)
