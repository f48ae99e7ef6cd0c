"""Apache's access log: common or combined format, then %D (microseconds) and %{cache-status}e if they are logged."""

from __future__ import annotations

import re

from cockpit.servers.access_log import AccessLine, combined

_DURATION = re.compile(rb"(\d{1,12})(?= |$)")
# The words of mod_cache: "cache hit", "conditional cache hit: …", "cache miss: …", "cache invalidated".
_CACHE = re.compile(rb"(?:^| )\"?(conditional )?cache (hit|miss|invalidated)")
_OTHER = re.compile(rb"\d+\.\d")


def parse(line: bytes) -> AccessLine | None:
    """One request; None: not a line of this kind. nginx's fields behind the user agent are seconds with decimals."""
    found = combined(line)
    if found is None or _OTHER.match(found[1]):
        return None
    status, rest = found
    duration, cache = _DURATION.match(rest), _CACHE.search(rest)
    return AccessLine(
        status,
        int(duration[1]) / 1e6 if duration else None,
        cache[2] == b"hit" if cache else None,
    )
