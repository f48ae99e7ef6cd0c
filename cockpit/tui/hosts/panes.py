"""The hosts: each as a pane with metrics of sar, free and ps, or as a single line if there is no room."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from cockpit.model.host.state import HostState
from cockpit.model.text import sanitize, si, size
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.hosts.host_pane import FIGURES, WHOLE, churn, condition_words, host_pane, traffic_lines
from cockpit.tui.key_table import ViewKey
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import (
    EMPTY,
    DrawnList,
    Line,
    Spot,
    clip,
    first_visible,
    fit,
    framed,
    join_fitting,
    length,
    pairs,
    right,
)

# Minimum lines of a pane: title, cpu, processes, memory; with less room a host is a single line.
_SHORT = 4

# Minimum cells per host for hosts side by side.
_LEAST = 52

# Maximum cells of a name and of a process pattern in a line; cells of spawned and exited processes/s.
_NAME, _PATTERN, _CHURN = 16, 10, 10


class HostPanes(Lines):
    """All hosts side by side or stacked; the selected host has the most room. `drawn` is its pane."""

    drawn = DrawnList([])
    spots: list[Spot]

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        hosts = context.hosts
        self.drawn, self.spots = DrawnList([]), []
        if not hosts:
            return []
        at = context.view.host % len(hosts)
        if context.view.room == "alone" or len(hosts) == 1:
            return self._stack([hosts[at]], context, width, height)
        columns = max(1, min(len(hosts), width // _LEAST))
        each = width // columns
        stacks = [self._stack(hosts[at::columns], context, each, height, at * each) for at in range(columns)]
        return [tuple(piece for line in lines for piece in line) for lines in zip(*stacks, strict=True)]

    def _stack(
        self, hosts: Sequence[HostState], context: DrawContext, width: int, height: int, x: int = 0
    ) -> list[Line]:
        """Return the panes one below the other in a frame; their clickable spots are moved `x` cells to the right."""
        # On the whole screen a line more is worth more than the lower edge.
        bottom = context.view.room == "column"
        whole, (width, height, x) = (width, height), (max(0, width - 2), height - bottom, x + 1)
        selected = next((place for place, host in enumerate(hosts) if host is context.host), 0)
        first, last = visible_range(len(hosts), selected, height)
        hidden = len(hosts) - (last - first)
        shown = hosts[first:last]
        lines: list[Line] = []
        for host, room in zip(shown, pane_heights(height - bool(hidden), len(shown), selected - first), strict=True):
            number = next(at for at, each in enumerate(context.hosts) if each is host)
            if room == 1:
                self.spots.append(Spot(len(lines), x, x + width, "open_host", (number,)))
                lines.append(host_line(host, context, width))
                continue
            pane = host_pane(host, context, width, room)
            shifted = (spot.moved(x, len(lines)) for spot in pane.spots if spot.y < room)
            self.spots += [spot._replace(arguments=(number, *spot.arguments)) for spot in shifted]
            if host is context.host:
                self.drawn = pane
            lines += [*pane.lines, *[EMPTY] * (room - len(pane.lines))]
        lines += [((f"… and {hidden} more hosts: {ViewKey.NEXT_HOST}", "dim"),)] if hidden else []
        role = "chart" if context.view.list_entered and context.host in hosts else "frame"
        return framed(lines, *whole, role, top=True, bottom=bottom)


# Maximum number of lines of hosts on the main screen.
MOST_LINES = 8


class HostLines(Lines):
    """One line per host; if not all fit, the hosts around the selected one."""

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        hosts = context.hosts
        first, room = 0, height
        if len(hosts) > height:
            room = max(1, height - 1)
            first = first_visible(context.view.host % len(hosts), room, len(hosts))
        lines = [host_line(host, context, width) for host in hosts[first : first + room]]
        self.spots = [Spot(y, 0, width, "open_host", (first + y,)) for y in range(len(lines))]
        hidden = len(hosts) - len(lines)
        return [*lines, ((f"  … and {hidden} more hosts: {ViewKey.NEXT_HOST}", "dim"),)] if hidden else lines


def visible_range(hosts: int, selected: int, height: int) -> tuple[int, int]:
    """Return (first, end) of the shown hosts: all hosts if each has a line, otherwise those around the selected
    one, whose pane needs at least _SHORT lines."""
    most = max(1, height - _SHORT)
    if hosts <= most + 1:
        return 0, hosts
    first = first_visible(selected, most, hosts)
    return first, first + most


def pane_heights(height: int, hosts: int, selected: int) -> list[int]:
    """Return the lines of each host: equal if full panes fit, otherwise the selected host gets the rest."""
    if hosts * WHOLE <= height:
        each, over = divmod(height, hosts)
        return [each + (place < over) for place in range(hosts)]
    others = next((rows for rows in (FIGURES, _SHORT) if (hosts - 1) * rows + WHOLE <= height), 1)
    rest = max(1, height - others * (hosts - 1))
    return [rest if place == selected else others for place in range(hosts)]


def host_line(host: HostState, context: DrawContext, width: int) -> Line:
    """Return name, condition and the main metrics that fit, in the same columns for all hosts."""
    selected = host is context.host and len(context.hosts) > 1
    name_width = min(_NAME, max(cell_len(sanitize(other.config.name)) for other in context.hosts))
    name: Line = ((f"{'▸' if selected else ' '}{fit(sanitize(host.config.name), name_width)}", "strong"),)
    if context.view.frozen is not None:
        name = (*name, (" ", ""), (" FROZEN ", "alarm"))
    word, rest, role = condition_words(host, context)
    if word:
        badge = f" {word} " if role == "alarm" else word
        return clip((*name, (" ", ""), (badge, role), (f" {rest}", "")), width)
    if host.point is None:
        return clip((*name, ("  up, waiting for data", "dim")), width)
    return join_fitting([name, *(part for part in _parts(host, context) if length(part))], width)


def _parts(host: HostState, context: DrawContext) -> list[Line]:
    """Return the main metrics, the most important first, each padded to its maximum width."""
    point = host.point
    assert point is not None
    busy = f"{100 - point.cpu.idle:.0f}" if point.cpu else "–"
    available = "–" if point.memory.available is None else size(point.memory.available)
    parts: list[Line] = [pairs([("cpu ", right(busy, 3)), ("", "%")])]
    parts += traffic_lines(host, context)
    parts += _process_parts(host, context)
    parts += [
        pairs([("avail ", right(available, 5))]),
        pairs([("load ", right(f"{point.load[0]:.2f}", 5))]),
        pairs([("tps ", right(si(point.io.tps) if point.io else "–", 5))]),
    ]
    if point.net:
        parts.append(pairs([("rxkB/s ", right(si(point.net.rxkb), 5)), (" txkB/s ", right(si(point.net.txkb), 5))]))
    return parts


def _process_parts(host: HostState, context: DrawContext) -> list[Line]:
    """Return pattern, number, churn and defunct processes; blanks if only other hosts watch processes."""
    point = host.point
    assert point is not None
    patterns = [sanitize(other.config.watched) for other in context.hosts if other.config.processes]
    if not patterns:
        return []
    pattern_width = min(_PATTERN, max(cell_len(pattern) for pattern in patterns))
    if not host.config.processes:
        return [((" " * (pattern_width + 4 + _CHURN), ""),), ((" " * 4, ""),)]
    if host.sample is not None and host.sample.reading.hidden:
        return [((fit("hidden (hidepid)", pattern_width + 4 + _CHURN), "warn"),), ((" " * 4, ""),)]
    count = ((f"{fit(sanitize(host.config.watched), pattern_width)}", "dim"), (right(str(point.count), 4), ""))
    defunct = ((f"Z{right(str(point.defunct), 3)}", "warn" if point.defunct else "dim"),)
    return [(*count, (" " + fit(churn(point), _CHURN - 1), "")), defunct]
