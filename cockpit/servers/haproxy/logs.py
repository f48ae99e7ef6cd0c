"""HAProxy's log format `option httplog`, from stdout or after the prefix of a syslog daemon.

https://docs.haproxy.org/2.8/configuration.html#8.2.3
"""

from __future__ import annotations

import re

from cockpit.servers.access_log import AccessLine, LoggedRequest, logged_request, without_prefix

# client [time] frontend backend/server TR/Tw/Tc/Tr/Ta status: the last timer (ms), Ta, is the duration of the request.
_LINE = re.compile(
    rb"\S{1,64} \[([^\]]{1,64})\] \S{1,256} \S{1,256}/(\S{1,256}) (?:-?\d{1,9}/){4}\+?(\d{1,9}) (\d{3}|-1) \+?\d+ "
)
_CACHE, _ABORTED = b"<CACHE>", b"-1"


def parse(line: bytes) -> AccessLine | None:
    """Parse one request; None: another format. A request that the client aborted before a response has status 499, as
    in nginx's log."""
    match = _LINE.match(without_prefix(line))
    if match is None:
        return None
    _, server, milliseconds, status = match.groups()
    return AccessLine(499 if status == _ABORTED else int(status), int(milliseconds) / 1e3, server == _CACHE or None)


def parse_request(line: bytes) -> LoggedRequest | None:
    """Return the request of a line (its last field, in quotes), at the time of its first byte."""
    line = without_prefix(line).rstrip()
    match = _LINE.match(line)
    _, quote, request = line.removesuffix(b'"').rpartition(b' "')
    return logged_request(match[1], request) if match and quote else None
