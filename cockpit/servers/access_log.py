"""Lines of access logs: common parsers of the kinds of servers, and their results. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

# Maximum bytes of a line that are parsed. A request line can have 8 KiB.
MOST_BYTES = 16384
_QUOTED = rb'"(?:[^"\\]|\\.)*"'
# Common and combined format, optionally after a virtual host: client, identity, user, [time], "request", status, bytes,
# "referer" and "user agent" (text sent by the client), then additional fields of the server's format.
# gunicorn logs no name for a client on a Unix socket.
_CLIENT = rb"[^\s\[\"]* (?:[^\s\[\"]+ ){2,3}"
_COMBINED = re.compile(
    _CLIENT + rb"\[[^\]]{1,64}\] " + _QUOTED + rb" (\d{3}) (?:\d+|-)(?: " + _QUOTED + rb" " + _QUOTED + rb")?"
)
_REQUEST = re.compile(_CLIENT + rb"\[([^\]]{1,64})\] \"((?:[^\"\\]|\\.)*)\" \d{3} ")
# The end of the prefix of a syslog daemon or journalctl: `Nov 23 04:57:52 web1 gunicorn[12]: `.
_TAG = re.compile(rb"[\w./-]\[\d{1,10}$")
# 23/Nov/2026:06:51:03 +0100; the fraction of the second and the zone are optional.
_STAMP = re.compile(rb"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d(?:\.\d{1,9})?)(?: ([+-])(\d\d)(\d\d))?")
_MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")


class AccessLine(NamedTuple):
    """A request: its `status`, its duration in `seconds`, and whether it was a cache `hit`; None: not logged."""

    status: int
    seconds: float | None = None
    hit: bool | None = None


class PartialLog(NamedTuple):
    """A log format that cannot be replayed: the `pattern` of its lines, the missing data (`lacks`), and the log to use
    `instead`."""

    pattern: re.Pattern[bytes]
    lacks: str
    instead: str


def without_prefix(line: bytes) -> bytes:
    """Return the first MOST_BYTES of a line, without the prefix of a syslog daemon or of journalctl."""
    line = line[:MOST_BYTES]
    head, _, body = line.partition(b"]: ")
    return body if b'"' not in head and _TAG.search(head) else line


def combined(line: bytes) -> tuple[int, bytes] | None:
    """Return the status of a line in common or combined format, and the fields after it; None: another format."""
    line = without_prefix(line)
    match = _COMBINED.match(line)
    return (int(match[1]), line[match.end() :].strip()) if match else None


class LoggedRequest(NamedTuple):
    """A logged request: its time (s since the epoch), method, and target as sent by the client."""

    at: float
    method: bytes
    target: bytes


@lru_cache(maxsize=256)
def instant(stamp: bytes) -> float | None:
    """Return the seconds since the epoch of a time in common log format; without a zone it is UTC. None: malformed."""
    match = _STAMP.fullmatch(stamp)
    if match is None or match[2] not in _MONTHS:
        return None
    day, month, year, hour, minute, second, sign, zone_hours, zone_minutes = match.groups()
    try:
        moment = datetime(int(year), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), tzinfo=UTC)
    except ValueError:
        return None
    zone = 60 * int(zone_hours or 0) + int(zone_minutes or 0)
    return moment.timestamp() + float(second) - 60 * (-zone if sign == b"-" else zone)


def logged_request(stamp: bytes, request: bytes) -> LoggedRequest | None:
    """Return the request of a time and a request line (`GET /x HTTP/1.1`); None: one of them is malformed."""
    method, _, rest = request.partition(b" ")
    # Clients may send spaces in a target.
    target, _, protocol = rest.rpartition(b" ")
    at = instant(stamp)
    return LoggedRequest(at, method, target) if at is not None and target and protocol.startswith(b"HTTP/") else None


def combined_request(line: bytes) -> LoggedRequest | None:
    """Return the request of a line in common or combined format; None: another format, or no request."""
    match = _REQUEST.match(without_prefix(line))
    return logged_request(match[1], match[2]) if match else None
