"""nginx's status page, `stub_status`: four lines in a fixed format."""

from __future__ import annotations

import re

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import NotThePageError, PageMetrics, number

_PAGE = re.compile(
    r"\s*Active connections: (\d+)\s+server accepts handled requests(?: request_time)?\s+(\d+) (\d+) (\d+)(?: \d+)?\s+"
    r"Reading: (\d+) Writing: (\d+) Waiting: (\d+)"
)
_NAMES = ("Active connections", "accepts", "handled", "requests", "Reading", "Writing", "Waiting")


def parse(page: str) -> PageMetrics:
    match = _PAGE.match(page)
    if match is None:
        raise NotThePageError("not a stub_status page: the location of this URL needs `stub_status;`")
    metrics = {name: number(digits) for name, digits in zip(_NAMES, match.groups(), strict=True)}
    return PageMetrics({name: value for name, value in metrics.items() if value is not None}, {})


STATUS = StatusPageKind(
    name="nginx",
    url="the location with stub_status",
    parse=parse,
    not_found="is there a location with `stub_status;`?",
    forbidden="does the location allow this host? allow 127.0.0.1",
    is_counter=frozenset({"accepts", "handled", "requests"}).__contains__,
    means={"active": "Active connections", "reading": "Reading", "writing": "Writing", "waiting": "Waiting"},
    rates={"requests": "requests", "accepts": "accepts"},
)
