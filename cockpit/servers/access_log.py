"""Lines of access logs, as the kinds of servers parse them. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

# Bytes of a line that are parsed; a request line may have 8 KiB, and what follows it is lost with the rest.
MOST_BYTES = 16384
_QUOTED = rb'"(?:[^"\\]|\\.)*"'
# Common and combined format, also behind a virtual host: client, identity, user, [time], "request", status, bytes, then
# "referer" and "user agent", which the client chooses, then the fields of the server's own format.
# A client on a Unix socket has no name in gunicorn's log.
_CLIENT = rb"[^\s\[\"]* (?:[^\s\[\"]+ ){2,3}"
_COMBINED = re.compile(
    _CLIENT + rb"\[[^\]]{1,64}\] " + _QUOTED + rb" (\d{3}) (?:\d+|-)(?: " + _QUOTED + rb" " + _QUOTED + rb")?"
)
_REQUEST = re.compile(_CLIENT + rb"\[([^\]]{1,64})\] \"((?:[^\"\\]|\\.)*)\" \d{3} ")
# The end of a syslog daemon's or journalctl's prefix: `Nov 23 04:57:52 web1 gunicorn[12]: `.
_TAGGED = re.compile(rb"[\w./-]\[\d{1,10}$")
# 23/Nov/2026:06:51:03 +0100, also with a fraction of the second, and without a zone.
_STAMP = re.compile(rb"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d(?:\.\d{1,9})?)(?: ([+-])(\d\d)(\d\d))?")
_MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")


class AccessLine(NamedTuple):
    """One request: its `status`, its duration (`seconds`) and whether it was a `hit` of the cache; None: not logged."""

    status: int
    seconds: float | None = None
    hit: bool | None = None


class PartialLog(NamedTuple):
    """A log of requests that cannot be replayed: a `pattern` of its lines, what it `lacks`, and another log to use."""

    pattern: re.Pattern[bytes]
    lacks: str
    instead: str


def without_prefix(line: bytes) -> bytes:
    """The line without the prefix of a syslog daemon or of journalctl, up to MOST_BYTES."""
    line = line[:MOST_BYTES]
    head, _, body = line.partition(b"]: ")
    return body if b'"' not in head and _TAGGED.search(head) else line


def combined(line: bytes) -> tuple[int, bytes] | None:
    """The status of a line in common or combined format, and the fields behind it; None: another format."""
    line = without_prefix(line)
    found = _COMBINED.match(line)
    return (int(found[1]), line[found.end() :].strip()) if found else None


class LoggedRequest(NamedTuple):
    """The request of a line: the instant (s since the epoch), the method, and the target as the client sent it."""

    at: float
    method: bytes
    target: bytes


@lru_cache(maxsize=256)
def instant(stamp: bytes) -> float | None:
    """Seconds since the epoch of a stamp in common log format; a stamp without a zone is taken for UTC."""
    found = _STAMP.fullmatch(stamp)
    if found is None or found[2] not in _MONTHS:
        return None
    day, month, year, hour, minute, second, sign, zone_hours, zone_minutes = found.groups()
    try:
        begun = datetime(int(year), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), tzinfo=UTC)
    except ValueError:
        return None
    zone = 60 * int(zone_hours or 0) + int(zone_minutes or 0)
    return begun.timestamp() + float(second) - 60 * (-zone if sign == b"-" else zone)


def logged_request(stamp: bytes, request: bytes) -> LoggedRequest | None:
    """The request of a stamp and a request line (`GET /x HTTP/1.1`); None: one of them is malformed."""
    words, at = request.split(b" "), instant(stamp)
    if at is None or len(words) != 3 or not words[2].startswith(b"HTTP/"):
        return None
    return LoggedRequest(at, words[0], words[1])


def combined_request(line: bytes) -> LoggedRequest | None:
    """The request of a line in common or combined format; None: another format, or no request."""
    found = _REQUEST.match(without_prefix(line))
    return logged_request(found[1], found[2]) if found else None
