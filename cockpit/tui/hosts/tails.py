"""The output of a command on a host, with the newest lines at the bottom, as on a terminal."""

from __future__ import annotations

import re

from msgspec.structs import replace
from rich.cells import cell_len, chop_cells

from cockpit.model import access
from cockpit.model.host.state import TailPane
from cockpit.model.text import clock, milliseconds, sanitize, si
from cockpit.tui.terminal.styled_line import (
    EMPTY,
    DrawnList,
    Line,
    Piece,
    centred,
    clip,
    fit,
    join_fitting,
    length,
    rule,
)

# SGR escape sequences: colours and font weights.
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")

# Date, time and zone of logs: Apache, nginx, Tomcat, ISO 8601, syslog.
_STAMP = re.compile(
    r"\[?(?:(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d |\d{1,2}[-/][A-Z][a-z]{2}[-/]\d{4}[ :]|\d{4}[-/]\d\d[-/]\d\d[ T])"
    r"(\d\d(?::\d\d){2})(?:[.,]\d+)?(?: ?(?:Z|[-+]\d\d:?\d\d)| \d{4}(?=\]))?\]?"
)
# Process and thread of a line in Apache's error log.
_APACHE_PROCESS = re.compile(r" \[pid \d+(?::tid \d+)?\]")
# Cells of a time of day and a blank.
_TIME = 9
# Characters in which a line's time is expected.
_STAMPED = 80

# Maximum characters of a line, more than any terminal shows.
_LONGEST = 2000
_TAB = 8


def draw_tail(tail: TailPane, back: int, held: TailPane | None, width: int, height: int) -> DrawnList:
    """Draw a tail, scrolled back by `back` lines, below the rates of an access log.

    `held` is the paused tail; its lines are shown instead of the newest.
    """
    shown = held if held is not None and held.command == tail.command else tail
    rates = _rates(tail, width)
    room = max(0, height - 1 - len(rates))
    most = max(0, len(shown.lines) - room)
    last = len(shown.lines) - min(back, most)
    lines: list[Line] = [((as_printed(line.text), ""),) for line in shown.lines[max(0, last - room) : last]]
    lines = [clip(line, width) for line in lines]
    if not shown.lines:
        lines = centred([(_nothing(tail), "dim")], width, room)
    state = _state(tail, shown if shown is held else None)
    head = rule(((short_command(sanitize(tail.command), width - length(state) - 6), "title"),), state, width)
    return DrawnList([head, *rates, *lines, *[EMPTY] * (room - len(lines))], room, most)


def brief_tail(tail: TailPane, width: int, most: int) -> TailPane:
    """Return the tail with only the time of day of each line, first, without Apache's process IDs, and long lines
    wrapped into at most `most` lines, so that a narrow pane shows the messages."""
    lines = [
        replace(line, text=part) for line in tail.lines for part in _wrapped(_brief(as_printed(line.text)), width, most)
    ]
    return replace(tail, lines=tuple(lines))


def _wrapped(text: str, width: int, most: int) -> list[str]:
    """Return the text in at most `most` lines, the others indented below the message; long words, as of a URL, are
    cut."""
    parts: list[str] = []
    while len(parts) < most - 1 and cell_len(text) > width > 2 * _TIME:
        part = chop_cells(text, width)[0]
        part = part[:at] if (at := part.rfind(" ")) > len(part) / 2 else part
        parts.append(part)
        text = " " * _TIME + text[len(part) :].lstrip()
    return [*parts, fit(text, width).rstrip()]


def _brief(text: str) -> str:
    stamp = _STAMP.search(text, 0, _STAMPED)
    if stamp is None:
        return text
    before = text[: stamp.start()].replace(" - -", "").strip()
    message = _APACHE_PROCESS.sub("", text[stamp.end() :], 1).strip()
    return " ".join(part for part in (stamp[1], before, message) if part)


def _rates(tail: TailPane, width: int) -> list[Line]:
    """Return a line with requests/s by status, hit ratio and latency of an access log; of other logs only lines/s."""
    rates = access.rates(tail.counts)
    if rates is None or tail.condition != "running":
        return []
    if not access.is_access_log(tail.counts):
        return [clip(((f"{si(rates.lines)} lines/s", "strong"),), width)]
    parts: list[Line] = [(("late: the log grows faster than it is read", "warn"),)] if tail.counts[-1].late else []
    parts += [((f"{si(sum(rates.statuses.values()))} req/s", "strong"),)]
    if rates.hit_ratio is not None:
        parts.append((("hits ", "dim"), (f"{100 * rates.hit_ratio:.1f}%", "strong")))
    by_rate = sorted(rates.statuses.items(), key=lambda entry: -entry[1])
    parts += [_status(status, number, "worse_value") for status, number in by_rate if status >= 500]
    for name in (50, 99) if rates.latency.count else ():
        value = rates.latency.percentile(name)
        # nginx and squid log whole milliseconds.
        parts.append(((f"p{name} ", "dim"), (f"{milliseconds(value)} ms" if value else "< 1 ms", "")))
    parts += [_status(status, number, "warn" if status >= 400 else "") for status, number in by_rate if status < 500]
    return [join_fitting(parts, width)]


def _status(status: int, per_second: float, role: str) -> Line:
    """Return the rate of a status; squid logs 000 for a request that its client aborted."""
    return ((f"{status:03d} ", "dim"), (f"{si(per_second)}/s", role))


def short_command(command: str, room: int) -> str:
    """Return the command; if it is too long, with only the last component of each path."""
    if cell_len(command) <= room:
        return command
    words = [f"…/{word.rpartition('/')[2]}" if word.count("/") > 1 else word for word in command.split(" ")]
    return " ".join(words)


def as_printed(text: str) -> str:
    """Return the line as a terminal shows it, without colours and control characters."""
    text = _COLOUR.sub("", text[:_LONGEST].rstrip("\r\n"))
    return sanitize(text.expandtabs(_TAB), _LONGEST)


def newer(tail: TailPane, held: TailPane) -> int:
    """Return the number of lines that are newer than `held`."""
    last = held.lines[-1].t if held.lines else -1.0
    return sum(line.t > last for line in tail.lines)


def _state(tail: TailPane, held: TailPane | None) -> Line:
    """Return the state of the tail: paused, lines skipped, ended."""
    state: list[Piece] = []
    if held is not None:
        count = newer(tail, held)
        # If all lines are newer, more may have been dropped.
        plus = "+" if count and count == len(tail.lines) else ""
        at = f" at {clock(held.lines[-1].t)}" if held.lines else ""
        state.append((f"paused{at}, {count}{plus} newer", "warn"))
    if tail.skipped and not access.is_access_log(tail.counts):
        state.append((f"{'  ' if state else ''}skipped {tail.skipped} lines", "warn"))
    if tail.condition == "ended":
        detail = f": {sanitize(tail.detail)}" if tail.detail else ""
        state.append((f"{'  ' if state else ''}ended{detail}", "warn"))
    return tuple(state)


def _nothing(tail: TailPane) -> str:
    if tail.condition == "waiting":
        return "not running yet"
    return "ended without output" if tail.condition == "ended" else "no lines yet"
