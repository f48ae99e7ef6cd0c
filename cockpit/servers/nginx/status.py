"""nginx's status page, `stub_status`: four lines in a fixed format."""

from __future__ import annotations

import re

from cockpit.servers.kind import StatusPageKind

_PAGE = re.compile(
    r"\s*Active connections: (\d+)\s+server accepts handled requests(?: request_time)?\s+(\d+) (\d+) (\d+)(?: \d+)?\s+"
    r"Reading: (\d+) Writing: (\d+) Waiting: (\d+)"
)
_NAMES = ("Active connections", "accepts", "handled", "requests", "Reading", "Writing", "Waiting")


def _rows(page: str) -> dict[str, str]:
    match = _PAGE.match(page)
    return dict(zip(_NAMES, match.groups(), strict=True)) if match else {}


STATUS = StatusPageKind(
    name="nginx",
    url="the location with stub_status",
    rows=_rows,
    required="requests",
    hint="the location of this URL needs `stub_status;`",
    forbidden="does the location allow this host? allow 127.0.0.1",
    is_counter=frozenset({"accepts", "handled", "requests"}).__contains__,
    means={"active": "Active connections", "reading": "Reading", "writing": "Writing", "waiting": "Waiting"},
    rates={"requests": "requests", "accepts": "accepts"},
)
