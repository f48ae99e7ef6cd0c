"""Lines of access logs as each kind of server writes them, by the table `access_logs.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cockpit.servers.access_log import AccessLine, LoggedRequest, instant
from cockpit.servers.registry import LOGGED_REQUESTS, PARTIAL_LOGS, parse_access

HAPROXY = b"127.0.0.1:45844 [23/Nov/2026:04:57:52.228] f"
CLIENT = b'10.0.0.9 - - [23/Nov/2026:01:10:00 +0000] "GET /img/00001.jpg HTTP/1.1"'

JOURNAL = b"Nov 23 01:10:00 web1 gunicorn[4711]: "


def logged(line: bytes) -> LoggedRequest | None:
    return next((found for parse in LOGGED_REQUESTS if (found := parse(line)) is not None), None)


def test_lines_are_parsed() -> None:
    for text, access, request, lacks in tomllib.loads(Path(__file__).with_name("access_logs.toml").read_text())[
        "lines"
    ]:
        line = text.encode()
        assert parse_access(line) == (AccessLine(*access) if access else None), line
        assert logged(line) == (LoggedRequest(request[0], *map(str.encode, request[1:])) if request else None), line
        assert [one.lacks for one in PARTIAL_LOGS if one.pattern.match(line)] == ([lacks] if lacks else []), line


@given(st.binary(max_size=300))
def test_any_bytes_are_parsed_or_none(tail: bytes) -> None:
    for head in (b"", CLIENT, CLIENT + b" 200 1 ", JOURNAL, b"1700000000.123 1 ", HAPROXY):
        found, request = parse_access(head + tail), logged(head + tail)
        assert found is None or (0 <= found.status <= 999 and (found.seconds is None or 0 <= found.seconds < 1e7))
        assert request is None or (request.at > 0 and request.method and request.target)


def test_line_of_escaped_quotes_is_parsed_in_linear_time() -> None:
    assert parse_access(CLIENT[:-1] + b'\\"' * 500_000) is None


def test_timestamp_without_zone_is_utc_invalid_is_none() -> None:
    assert instant(b"23/Nov/2026:01:10:00.125") == 1795396200.125
    assert instant(b"23/Nov/2026:25:10:00 +0000") is None and instant(b"2026-11-23T01:10:00Z") is None
