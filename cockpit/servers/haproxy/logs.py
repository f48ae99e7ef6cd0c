"""HAProxy's `option httplog`, from stdout or behind the prefix of a syslog daemon.

https://docs.haproxy.org/2.8/configuration.html#8.2.3
"""

from __future__ import annotations

import re

from cockpit.servers.access_log import AccessLine, LoggedRequest, logged_request, without_prefix

# client [time] frontend backend/server TR/Tw/Tc/Tr/Ta status: the last of the timers (ms) is the whole request.
_LINE = re.compile(
    rb"\S{1,64} \[([^\]]{1,64})\] \S{1,256} \S{1,256}/(\S{1,256}) (?:-?\d{1,9}/){4}\+?(\d{1,9}) (\d{3}|-1) \+?\d+ "
)
_CACHE, _ABORTED = b"<CACHE>", b"-1"


def parse(line: bytes) -> AccessLine | None:
    """One request; None: another format. A client that gave up before the status has 499, as nginx logs it."""
    found = _LINE.match(without_prefix(line))
    if found is None:
        return None
    _, server, milliseconds, status = found.groups()
    return AccessLine(499 if status == _ABORTED else int(status), int(milliseconds) / 1e3, server == _CACHE or None)


def parse_request(line: bytes) -> LoggedRequest | None:
    """The request of a line, at the instant of its first byte: the line's last field, in quotes."""
    line = without_prefix(line).rstrip()
    found = _LINE.match(line)
    _, quote, request = line.removesuffix(b'"').rpartition(b' "')
    return logged_request(found[1], request) if found and quote else None
