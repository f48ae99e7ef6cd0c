"""Lines of access logs, as the kinds of servers parse them. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

# Bytes of a line that are parsed; a request line may have 8 KiB, and what follows it is lost with the rest.
MOST_BYTES = 16384
_QUOTED = rb'"(?:[^"\\]|\\.)*"'
# Common and combined format, also behind a virtual host: client, identity, user, [time], "request", status, bytes, then
# "referer" and "user agent", which the client chooses, then the fields of the server's own format.
_COMBINED = re.compile(
    rb"(?:[^\s\[\"]+ ){3,4}\[[^\]]{1,64}\] " + _QUOTED + rb" (\d{3}) (?:\d+|-)(?: " + _QUOTED + rb" " + _QUOTED + rb")?"
)


class AccessLine(NamedTuple):
    """One request: its `status`, its duration (`seconds`) and whether it was a `hit` of the cache; None: not logged."""

    status: int
    seconds: float | None = None
    hit: bool | None = None


def combined(line: bytes) -> tuple[int, bytes] | None:
    """The status of a line in common or combined format, and the fields behind it; None: another format."""
    found = _COMBINED.match(line, 0, MOST_BYTES)
    return (int(found[1]), line[found.end() : MOST_BYTES].strip()) if found else None
