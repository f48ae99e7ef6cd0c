"""Caddy's access log: a JSON object per line, optionally after the prefix of a syslog daemon.

https://caddyserver.com/docs/caddyfile/directives/log
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

import msgspec

from cockpit.servers.access_log import MOST_BYTES, AccessLine, LoggedRequest, instant

_BEGIN, _ACCESS = b'{"', b"http.log.access"
# Upper bounds of plausible values: duration (s), status, time (s since the epoch).
_MAX_DURATION, _MAX_STATUS, _MAX_TIME = 1e7, 1000, 1e11
# Durations in Go's notation, e.g. 1m2.5s or 65.263\u00b5s, and its units in seconds.
_DURATION = re.compile(r"(\d{1,10}(?:\.\d{1,9})?)(ns|us|\u00b5s|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class _Request(msgspec.Struct):
    method: str
    uri: str


class _Line(msgspec.Struct):
    """`ts` and `duration` in any of Caddy's formats: https://caddyserver.com/docs/caddyfile/directives/log#json"""

    ts: float | str
    logger: str
    request: _Request
    duration: float | str
    status: int


class _Entry(msgspec.Struct):
    """A parsed line, with times in seconds."""

    at: float
    duration: float
    status: int
    request: _Request

    @property
    def is_valid(self) -> bool:
        times = 0 <= self.duration < _MAX_DURATION and self.duration < self.at < _MAX_TIME
        return times and 0 <= self.status < _MAX_STATUS


def parse(line: bytes) -> AccessLine | None:
    """Parse one request; None: another format. A request that no handler answered has status 0."""
    entry = _decoded(line)
    return AccessLine(entry.status, entry.duration) if entry else None


def parse_request(line: bytes) -> LoggedRequest | None:
    """Return the request of a line, at the time it started. Caddy logs the end of the request: the duration is
    subtracted, except from times in whole seconds."""
    entry = _decoded(line)
    if entry is None or not entry.request.method or not entry.request.uri:
        return None
    at = entry.at if entry.at.is_integer() else entry.at - entry.duration
    return LoggedRequest(at, entry.request.method.encode(), entry.request.uri.encode())


def _decoded(line: bytes) -> _Entry | None:
    begin = line.find(_BEGIN, 0, MOST_BYTES)
    if begin < 0 or len(line) > MOST_BYTES or _ACCESS not in line:
        return None
    try:
        row = msgspec.json.decode(line[begin:].rstrip(), type=_Line)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    if not row.logger.encode().startswith(_ACCESS):
        return None
    entry = _Entry(_seconds_at(row.ts), _seconds(row.duration), row.status, row.request)
    return entry if entry.is_valid else None


def _seconds_at(stamp: float | str) -> float:
    """Return the seconds since the epoch; NaN: another format. A time without a zone is UTC."""
    if isinstance(stamp, str):
        common = instant(stamp.encode())
        if common is not None:
            return common
        try:
            moment = datetime.fromisoformat(stamp.replace("/", "-"))
        except ValueError:
            return math.nan
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    # The unit is inferred from the magnitude: seconds, milliseconds or nanoseconds.
    return stamp / 1e9 if stamp > _MAX_TIME * 1e4 else stamp / 1e3 if stamp > _MAX_TIME else stamp


def _seconds(duration: float | str) -> float:
    """Return a duration in seconds; NaN: another format."""
    if not isinstance(duration, str):
        return duration
    parts = _DURATION.findall(duration)
    whole = "".join(map("".join, parts)) == duration
    return sum(float(number) * _UNITS[unit] for number, unit in parts) if parts and whole else math.nan
