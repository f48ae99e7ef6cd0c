"""nginx's access log: combined format, followed by $request_time and optionally $upstream_cache_status."""

from __future__ import annotations

import re

from cockpit.servers.access_log import AccessLine, combined

_DURATION = re.compile(rb"(\d{1,6}\.\d{3})(?= |$)")
# https://nginx.org/en/docs/http/ngx_http_upstream_module.html#var_upstream_cache_status
_HITS = frozenset({b"HIT", b"STALE", b"UPDATING", b"REVALIDATED"})
_MISSES = frozenset({b"MISS", b"EXPIRED", b"BYPASS"})


def parse(line: bytes) -> AccessLine | None:
    """Parse one request; None: another format, or no $request_time after the combined format."""
    match = combined(line)
    duration = _DURATION.match(match[1]) if match else None
    if match is None or duration is None:
        return None
    words = match[1][duration.end() :].split(None, 1)[:1]
    hit = True if set(words) & _HITS else False if set(words) & _MISSES else None
    return AccessLine(match[0], float(duration[1]), hit)
