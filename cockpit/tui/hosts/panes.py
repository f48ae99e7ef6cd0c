"""The hosts: each as a pane like sar, free and ps, or as one line if there is no room."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from cockpit.model.host_state import HostState
from cockpit.model.text import neutral, si, size
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.hosts.details import Reach
from cockpit.tui.hosts.host_pane import FIGURES, WHOLE, churn, condition_words, host_pane
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import EMPTY, Line, beside, clip, fit, length, packed, pairs, right

# Title, cpu, processes, memory: less of a host is a line.
_SHORT = 4

# Minimum width per host for hosts side by side.
_LEAST = 50
_GAP = 3

# Cells of a name and of a process pattern in a line.
_NAME, _PATTERN = 16, 10


class HostPanes(Lines):
    """All hosts side by side or one below the other; the selected one has the most room.

    `reach` is how far its list can be scrolled.
    """

    reach = Reach()

    def draw(self, scene: DrawContext, width: int, height: int) -> list[Line]:
        hosts = scene.hosts
        self.reach = Reach()
        if not hosts:
            return []
        at = scene.view.host % len(hosts)
        if scene.view.room == "alone" or len(hosts) == 1:
            return self._stack([hosts[at]], scene, width, height)
        columns = max(1, min(len(hosts), (width + _GAP) // (_LEAST + _GAP)))
        if columns == 1:
            return self._stack(hosts, scene, width, height)
        each = (width - _GAP * (columns - 1)) // columns
        return beside([self._stack(hosts[at::columns], scene, each, height) for at in range(columns)], each, height)

    def _stack(self, hosts: Sequence[HostState], scene: DrawContext, width: int, height: int) -> list[Line]:
        """Some of the hosts one under the other."""
        looked_at = next((place for place, host in enumerate(hosts) if host is scene.host), 0)
        first, last = in_sight(len(hosts), looked_at, height)
        hidden = len(hosts) - (last - first)
        shown = hosts[first:last]
        lines: list[Line] = []
        for host, room in zip(shown, share_out(height - bool(hidden), len(shown), looked_at - first), strict=True):
            if room == 1:
                lines.append(host_line(host, scene, width))
                continue
            pane = host_pane(host, scene, width, room)
            if host is scene.host:
                self.reach = pane.reach
            lines += [*pane.lines, *[EMPTY] * (room - len(pane.lines))]
        return [*lines, ((f"… and {hidden} hosts more: tab", "dim"),)] if hidden else lines


class HostLines(Lines):
    """Return one line per host; if there are too many, those around the selected one."""

    def draw(self, scene: DrawContext, width: int, height: int) -> list[Line]:
        hosts = scene.hosts
        if len(hosts) <= height:
            return [host_line(host, scene, width) for host in hosts]
        room = max(1, height - 1)
        at = scene.view.host % len(hosts)
        first = max(0, min(at - room // 2, len(hosts) - room))
        lines = [host_line(host, scene, width) for host in hosts[first : first + room]]
        return [*lines, ((f"  … and {len(hosts) - room} hosts more: tab", "dim"),)]


def in_sight(hosts: int, looked_at: int, height: int) -> tuple[int, int]:
    """Return (first, end) of the shown hosts: all if each has a line beside a short pane, else
    those around the selected one."""
    most = max(1, height - _SHORT)
    if hosts <= most + 1:
        return 0, hosts
    first = max(0, min(looked_at - most // 2, hosts - most))
    return first, first + most


def share_out(height: int, hosts: int, looked_at: int) -> list[int]:
    """Return lines per host: equal if each gets a whole pane, else the selected one takes the rest."""
    if hosts * WHOLE <= height:
        each, over = divmod(height, hosts)
        return [each + (place < over) for place in range(hosts)]
    others = next((rows for rows in (FIGURES, _SHORT) if (hosts - 1) * rows + WHOLE <= height), 1)
    mine = max(1, height - others * (hosts - 1))
    return [mine if place == looked_at else others for place in range(hosts)]


def host_line(host: HostState, scene: DrawContext, width: int) -> Line:
    """Return name, condition and the main metrics, as many as fit, in columns shared with other hosts."""
    looked_at = host is scene.host and len(scene.hosts) > 1
    wide = min(_NAME, max(cell_len(neutral(other.config.name)) for other in scene.hosts))
    name: Line = ((f"{'▸' if looked_at else ' '}{fit(neutral(host.config.name), wide)}", "strong"),)
    if scene.view.frozen is not None:
        name = (*name, (" ", ""), (" FROZEN ", "alarm"))
    word, rest, role = condition_words(host, scene)
    if word:
        badge = f" {word} " if role == "alarm" else word
        return clip((*name, (" ", ""), (badge, role), (f" {rest}", "")), width)
    if host.point is None:
        return clip((*name, ("  up, waiting for data", "dim")), width)
    return packed([name, *(part for part in _parts(host, scene) if length(part))], width)


def _parts(host: HostState, scene: DrawContext) -> list[Line]:
    """Return the main metrics, the most important first, each at its maximum width."""
    point = host.point
    assert point is not None
    busy = f"{100 - point.cpu.idle:.0f}" if point.cpu else "–"
    parts: list[Line] = [pairs([("cpu ", right(busy, 3)), ("", " %")])]
    parts += _process_parts(host, scene)
    parts += [
        pairs([("avail ", right(size(point.memory.available), 5))]),
        pairs([("load ", right(f"{point.load[0]:.2f}", 5))]),
        pairs([("tps ", right(si(point.io.tps) if point.io else "–", 5))]),
    ]
    if point.net:
        parts.append(pairs([("rxkB/s ", right(si(point.net.rxkb), 5)), (" txkB/s ", right(si(point.net.txkb), 5))]))
    return parts


def _process_parts(host: HostState, scene: DrawContext) -> list[Line]:
    """Return pattern, number, churn, defunct; blanks if only other hosts have any."""
    point = host.point
    assert point is not None
    patterns = [neutral(other.config.processes) for other in scene.hosts if other.config.processes is not None]
    if not patterns:
        return []
    wide = min(_PATTERN, max(cell_len(pattern) for pattern in patterns))
    if host.config.processes is None:
        return [((" " * (wide + 4 + 9), ""),), ((" " * 4, ""),)]
    if host.sample is not None and host.sample.reading.hidden:
        return [((fit("hidden (hidepid)", wide + 4 + 9), "warn"),), ((" " * 4, ""),)]
    count = ((f"{fit(neutral(host.config.processes), wide)}", "dim"), (right(str(point.count), 4), ""))
    defunct = ((f"Z{right(str(point.defunct), 3)}", "warn" if point.defunct else "dim"),)
    return [(*count, (" " + fit(churn(point), 8), "")), defunct]
