"""Caddy's access log, a JSON object per line, also behind the prefix of a syslog daemon.

https://caddyserver.com/docs/caddyfile/directives/log
"""

from __future__ import annotations

import math

import msgspec

from cockpit.servers.access_log import MOST_BYTES, AccessLine, LoggedRequest

_BEGIN, _ACCESS = b'{"', b"http.log.access"
_LONGEST, _STATUS, _LATEST = 1e7, 1000, 1e11


class _Request(msgspec.Struct):
    method: str
    uri: str


class _Line(msgspec.Struct):
    ts: float
    logger: str
    request: _Request
    duration: float
    status: int

    @property
    def is_valid(self) -> bool:
        times = 0 <= self.duration < _LONGEST and self.duration < self.ts < _LATEST
        return times and math.isfinite(self.ts) and 0 <= self.status < _STATUS


def parse(line: bytes) -> AccessLine | None:
    """One request; None: another format. A request that nothing answered has status 0."""
    found = _decoded(line)
    return AccessLine(found.status, found.duration) if found else None


def parse_request(line: bytes) -> LoggedRequest | None:
    """The request of a line, which Caddy writes at its end: its duration is subtracted."""
    found = _decoded(line)
    if found is None or not found.request.method or not found.request.uri:
        return None
    return LoggedRequest(found.ts - found.duration, found.request.method.encode(), found.request.uri.encode())


def _decoded(line: bytes) -> _Line | None:
    begin = line.find(_BEGIN, 0, MOST_BYTES)
    if begin < 0 or len(line) > MOST_BYTES or _ACCESS not in line:
        return None
    try:
        found = msgspec.json.decode(line[begin:].rstrip(), type=_Line)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    return found if found.is_valid and found.logger.encode().startswith(_ACCESS) else None
