"""The effect of keys on the view: from the shown context to the next view. Pure."""

from __future__ import annotations

from dataclasses import replace

from cockpit.tui.draw_context import PROCESS_ORDERS, PROCESSES, DrawContext, HostRoom, View, details_of
from cockpit.tui.hosts.details import Reach
from cockpit.tui.hosts.processes import chosen_rows, identity, place_of


def next_host(scene: DrawContext, step: int) -> View:
    """Looks at the next host, at the beginning of its detail."""
    if not scene.hosts:
        return scene.view
    return replace(_at_rest(scene.view), host=(scene.view.host + step) % len(scene.hosts))


def next_detail(scene: DrawContext, step: int) -> View:
    """Return the next list of the selected host; from the averages back to the one before them."""
    host, view = scene.host, scene.view
    if host is None:
        return view
    if view.averages:
        return replace(_at_rest(view), averages=False)
    offered = details_of(host)
    following = offered[(offered.index(scene.detail(host)) + step) % len(offered)]
    return replace(_at_rest(view), details={**view.details, host.config.name: following})


def averages(scene: DrawContext) -> View:
    """Return the averages of the selected segment for every host, or the earlier list."""
    return replace(_at_rest(scene.view), averages=not scene.view.averages)


def first_detail(scene: DrawContext) -> View:
    """Show the selected host on the whole screen, with its list: it was not visible."""
    return replace(_at_rest(scene.view), cursor=None, room="alone", averages=False)


def averages_alone(scene: DrawContext) -> View:
    """Show the selected host on the whole screen, with its averages: they were not visible."""
    return replace(_at_rest(scene.view), cursor=None, room="alone", averages=True)


def entered(scene: DrawContext, alone: bool) -> View:
    """The arrows go into the detail, or out of it again. `alone`: it is not in sight unless it has the screen."""
    view = scene.view
    if view.inside:
        return left(view)
    return replace(view, cursor=None, room="alone") if alone else replace(view, cursor=None, entered=True)


def left(view: View) -> View:
    """The arrows choose rows of the runs table again."""
    return replace(_at_rest(view), entered=False, room="column")


def next_room(scene: DrawContext) -> View:
    """Show the selected host alone, then all of them side by side, then their column again."""
    rooms: tuple[HostRoom, ...] = ("column", "alone", "all") if len(scene.hosts) > 1 else ("column", "alone")
    at = rooms.index(scene.view.room) if scene.view.room in rooms else 0
    return replace(scene.view, cursor=None, room=rooms[(at + 1) % len(rooms)])


def back(view: View) -> View:
    """One step back: out of the charts, to the newest line of a tail, out of the detail, then to how the screen is at
    first."""
    if view.cursor is not None:
        return replace(view, cursor=None)
    if view.held is not None:
        return _at_rest(view)
    if view.inside:
        return left(view)
    return replace(_at_rest(view), row=None, frozen=None, averages=False, filter="", span=None)


def frozen(scene: DrawContext) -> View:
    """Freeze the hosts, or continue."""
    return replace(scene.view, frozen=scene.state if scene.view.frozen is None else None)


def next_order(view: View) -> View:
    """Sorts by the next column, the way round that is usual for it."""
    at = PROCESS_ORDERS.index(view.order)
    return replace(view, order=PROCESS_ORDERS[(at + 1) % len(PROCESS_ORDERS)], turned=False)


def turned(view: View) -> View:
    """Sorts the other way round."""
    return replace(view, turned=not view.turned)


def filtered(view: View, text: str) -> View:
    """Only the processes with that text in their PID or command; empty: all of them."""
    return replace(view, filter=text.strip())


def scrolled(scene: DrawContext, lines: int, reach: Reach) -> View:
    """Scroll the list of the selected host; `lines` below 0 is up. In a tail, up is into the past: its lines
    then stand still until the newest is reached again."""
    host, view = scene.host, scene.view
    if host is None:
        return view
    detail = scene.detail(host)
    if detail == PROCESSES:
        rows = chosen_rows(host, view)
        if not rows:
            return view
        place = max(0, min(place_of(rows, view) + lines, len(rows) - 1))
        return replace(view, scroll=place, chosen=identity(rows[place]))
    if detail.kind == "tail":
        above = max(0, min(min(view.scroll, reach.most) - lines, reach.most))
        return replace(view, scroll=above, held=(view.held or host.tails[detail.place]) if above else None)
    return replace(view, scroll=max(0, min(min(view.scroll, reach.most) + lines, reach.most)))


def _at_rest(view: View) -> View:
    """At the beginning of a detail, with nothing chosen in it."""
    return replace(view, scroll=0, chosen=None, held=None)
