"""Apache's access log: common or combined format, optionally followed by %D (microseconds) and %{cache-status}e."""

from __future__ import annotations

import re

from cockpit.servers.access_log import AccessLine, combined

# Numbers of other formats after the user agent, such as sizes, have further fields after them.
_DURATION = re.compile(rb"(\d{1,12})(?=$| -$| \"?(?:conditional )?cache )")
# Values of mod_cache: "cache hit", "conditional cache hit: …", "cache miss: …", "cache invalidated".
_CACHE = re.compile(rb"(?:^| )\"?(conditional )?cache (hit|miss|invalidated)")
_OTHER = re.compile(rb"\d+\.\d")


def parse(line: bytes) -> AccessLine | None:
    """Parse one request; None: another format. A number with decimals after the user agent is nginx's duration."""
    match = combined(line)
    if match is None or _OTHER.match(match[1]):
        return None
    status, rest = match
    duration, cache = _DURATION.match(rest), _CACHE.search(rest)
    return AccessLine(
        status,
        int(duration[1]) / 1e6 if duration else None,
        cache[2] == b"hit" if cache else None,
    )
