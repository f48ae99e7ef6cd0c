"""squid's access.log in its native format: time, milliseconds, client, result/status, bytes, method, URL."""

from __future__ import annotations

import re

from cockpit.servers.access_log import AccessLine, LoggedRequest

_LINE = re.compile(rb"\d{1,12}\.\d{3} +(\d{1,9}) \S+ ([A-Z_]{3,60})/(\d{3}) \d+ [A-Z]+ ")
_REQUEST = re.compile(rb"(\d{1,12}\.\d{3}) +(\d{1,9}) \S+ [A-Z_]{3,60}/\d{3} \d+ ([A-Z]+) (\S+) ")
# Results without a cache lookup: denied, tunnelled or redirected requests, or no request at all.
_NO_LOOKUP = (b"NONE", b"TCP_DENIED", b"TCP_TUNNEL", b"TCP_REDIRECT")


def parse(line: bytes) -> AccessLine | None:
    """Parse one request; None: another format."""
    match = _LINE.match(line)
    if match is None:
        return None
    result = match[2]
    # REFRESH_UNMODIFIED is served from the cache after revalidation by the origin server.
    hit = None if result.startswith(_NO_LOOKUP) else b"HIT" in result or result.endswith(b"REFRESH_UNMODIFIED")
    return AccessLine(int(match[3]), int(match[1]) / 1e3, hit)


def parse_request(line: bytes) -> LoggedRequest | None:
    """Return the request of a line, at the time it started. squid logs the end of the request: the duration is
    subtracted."""
    match = _REQUEST.match(line)
    return LoggedRequest(float(match[1]) - int(match[2]) / 1e3, match[3], match[4]) if match else None
