"""Lines of access logs: status, duration and cache result, as each kind of server writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.servers.access_log import AccessLine, LoggedRequest, instant
from cockpit.servers.registry import LOGGED_REQUESTS, PARTIAL_LOGS, parse_access

HAPROXY = b"127.0.0.1:45844 [23/Nov/2026:04:57:52.228] f"
CLIENT = b'10.0.0.9 - - [23/Nov/2026:01:10:00 +0000] "GET /img/00001.jpg HTTP/1.1"'

# gunicorn's clients on a Unix socket have no name.
ON_SOCKET = CLIENT.removeprefix(b"10.0.0.9")
JOURNAL = b"Nov 23 01:10:00 web1 gunicorn[4711]: "


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (CLIENT + b" 200 3072", AccessLine(200)),
        (CLIENT + b' 304 - "-" "curl/7.88.1"', AccessLine(304)),
        (b"www.example.org:80 " + CLIENT + b' 404 12 "-" "x"', AccessLine(404)),
        (CLIENT + b' 200 3072 "-" "say \\"cache hit\\" 0.001 HIT"', AccessLine(200)),
        (CLIENT + b' 200 3072 "-" "x" 1234 cache hit', AccessLine(200, 0.001234, True)),
        (CLIENT + b' 200 3072 "-" "x" 87 "cache miss: attempting entity save"', AccessLine(200, 87e-6, False)),
        (CLIENT + b' 200 3072 "-" "x" 5 conditional cache hit: entity refreshed', AccessLine(200, 5e-6, True)),
        (CLIENT + b' 200 3072 "-" "x" 87 -', AccessLine(200, 87e-6)),
        (CLIENT + b' 200 3072 "-" "x" 0.003 HIT', AccessLine(200, 0.003, True)),
        (CLIENT + b' 502 150 "-" "x" 0.000 MISS', AccessLine(502, 0.0, False)),
        (CLIENT + b' 200 3072 "-" "x" 1.250 -', AccessLine(200, 1.25)),
        (b"1700000000.123     45 10.0.0.9 TCP_MEM_HIT/200 3456 GET http://o/1 - HIER_NONE/- image/jpeg",
         AccessLine(200, 0.045, True)),
        (b"1700000000.123   1045 10.0.0.9 TCP_MISS/503 0 GET http://o/1 - HIER_DIRECT/o -",
         AccessLine(503, 1.045, False)),
        (b"1700000000.123      2 10.0.0.9 TCP_REFRESH_UNMODIFIED/200 3 GET http://o/1 - HIER_DIRECT/o -",
         AccessLine(200, 0.002, True)),
        (b"1700000000.123      0 10.0.0.9 TCP_DENIED/403 3 GET http://o/1 - HIER_NONE/- -", AccessLine(403, 0.0, None)),
        (b"1700000000.123      0 10.0.0.9 NONE_NONE/000 0 - error:x - HIER_NONE/- -", None),
        (ON_SOCKET + b' 200 5 "-" "x"', AccessLine(200)),
        (JOURNAL + CLIENT + b' 200 3072 "-" "x" 0.003 HIT', AccessLine(200, 0.003, True)),
        (b'Nov 23 01:10:00 web1 app[12]: "quoted" ' + CLIENT + b" 200 3072", None),
        (HAPROXY + b' b/s1 0/0/0/4/4 200 601 - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1"', AccessLine(200, 0.004)),
        (b"Nov 23 04:57:52 lb haproxy[12]: " + HAPROXY + b"~ b/s1 0/0/0/4/+31 302 601 - -", AccessLine(302, 0.031)),
        (b"2026-11-23T04:57:52.231+00:00 lb haproxy[12]: " + HAPROXY + b" f/<CACHE> 0/0/0/0/0 200 605 - - LR-- ",
         AccessLine(200, 0.0, True)),
        (HAPROXY + b' b/s1 0/0/-1/-1/3006 503 217 - - SC-- 1/1/0/0/3 0/0 "GET /x HTTP/1.1"', AccessLine(503, 3.006)),
        (HAPROXY + b' b/s1 12/0/1/-1/950 -1 0 - - CH-- 1/1/0/0/3 0/0 "GET /x HTTP/1.1"', AccessLine(499, 0.95)),
        (b"Nov 23 04:57:52 lb haproxy[12]: Server b/s1 is DOWN, reason: Layer4 connection problem", None),
        (b"[Mon Nov 23 01:10:00 2026] [mpm_event:notice] [pid 1] AH00489: resuming normal operations", None),
        (b"", None),
        (b'"GET / HTTP/1.1" 200 5', None),
    ],
)  # fmt: skip
def test_access_line_is_parsed(line: bytes, found: AccessLine | None) -> None:
    assert parse_access(line) == found


@given(st.binary(max_size=300))
def test_any_bytes_are_parsed_or_none(tail: bytes) -> None:
    for line in (tail, CLIENT + tail, CLIENT + b" 200 1 " + tail, b"1700000000.123 1 " + tail, HAPROXY + tail):
        found = parse_access(line)
        assert found is None or (0 <= found.status <= 999 and (found.seconds is None or 0 <= found.seconds < 1e7))


def test_line_of_escaped_quotes_is_parsed_in_linear_time() -> None:
    assert parse_access(CLIENT[:-1] + b'\\"' * 500_000) is None


def logged(line: bytes) -> LoggedRequest | None:
    return next((found for parse in LOGGED_REQUESTS if (found := parse(line)) is not None), None)


AT = 1795396200.0
IMAGE = LoggedRequest(AT, b"GET", b"/img/00001.jpg")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (CLIENT + b" 200 3072", IMAGE),
        (b"www.example.org:80 " + CLIENT + b' 404 12 "-" "x"', IMAGE),
        (ON_SOCKET + b" 200 3", IMAGE),
        (JOURNAL + ON_SOCKET + b" 200 3", IMAGE),
        (CLIENT.replace(b"01:10:00 +0000", b"02:40:00.250 +0130") + b' 200 3 "-" "x" 0.003 HIT',
         LoggedRequest(AT + 0.25, b"GET", b"/img/00001.jpg")),
        (CLIENT.replace(b"01:10:00 +0000", b"00:10:00 -0100") + b" 200 3", IMAGE),
        (CLIENT.replace(b"GET", b"POST") + b" 200 3", IMAGE._replace(method=b"POST")),
        (CLIENT.replace(b" HTTP/1.1", b"") + b" 200 3", None),
        (CLIENT.replace(b"Nov", b"Nev") + b" 200 3", None),
        (CLIENT.replace(b"23/", b"31/") + b" 200 3", None),
        (b'10.0.0.9 - - [23/Nov/2026:01:10:00 +0000] "-" 408 -', None),
        (b"1795396200.250     250 10.0.0.9 TCP_MEM_HIT/200 3456 GET http://o/1 - HIER_NONE/- image/jpeg",
         LoggedRequest(AT, b"GET", b"http://o/1")),
        (b"1795396200.250     250 10.0.0.9 TCP_TUNNEL/200 3456 CONNECT o:443 - HIER_DIRECT/o -",
         LoggedRequest(AT, b"CONNECT", b"o:443")),
        (HAPROXY.replace(b"04:57:52.228", b"01:10:00.500")
         + b' b/s1 0/0/0/4/4 200 601 - - ---- 1/1/0/0/0 0/0 "GET /a?b HTTP/1.1"',
         LoggedRequest(AT + 0.5, b"GET", b"/a?b")),
        (b"Nov 23 04:57:52 lb haproxy[12]: " + HAPROXY.replace(b"04:57:52.228", b"01:10:00.000")
         + b'~ b/s1 0/0/0/4/+31 302 601 - - ---- 1/1/0/0/0 0/0 {a|b "c} "HEAD https://o/ HTTP/2.0"\n',
         LoggedRequest(AT, b"HEAD", b"https://o/")),
        (HAPROXY + b' b/s1 0/0/0/4/4 400 601 - - PR-- 1/1/0/0/0 0/0 "<BADREQ>"', None),
        (b"", None),
    ],
)  # fmt: skip
def test_logged_request_is_parsed(line: bytes, found: LoggedRequest | None) -> None:
    assert logged(line) == found


@pytest.mark.parametrize(
    ("line", "lacks"),
    [
        (b'INFO:     127.0.0.1:52846 - "GET /x?n=1 HTTP/1.1" 200 OK', "uvicorn logs no times"),
        (b'INFO:      - "GET /x HTTP/1.1" 404 Not Found', "uvicorn logs no times"),
        (b'127.0.0.1 -  23/Nov/2026:01:10:00 +0000 "GET /index.php" 200', "PHP-FPM logs scripts instead of URLs"),
        (b'- - www 23/Nov/2026:01:10:00 -0130 "POST /a.php?b=1" 500 /srv/a.php 3.1 2048 9.9%',
         "PHP-FPM logs scripts instead of URLs"),
        (b"INFO:     Started server process [19602]", ""),
        (CLIENT + b" 200 3", ""),
        (HAPROXY + b' b/s1 0/0/0/4/4 200 601 - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1"', ""),
    ],
)  # fmt: skip
def test_log_without_times_or_urls_is_recognized(line: bytes, lacks: str) -> None:
    assert [one.lacks for one in PARTIAL_LOGS if one.pattern.match(line)] == ([lacks] if lacks else [])
    assert not lacks or logged(line) is None


def test_timestamp_without_zone_is_utc_invalid_is_none() -> None:
    assert instant(b"23/Nov/2026:01:10:00.125") == AT + 0.125
    assert instant(b"23/Nov/2026:25:10:00 +0000") is None and instant(b"2026-11-23T01:10:00Z") is None


@given(st.binary(max_size=300))
def test_any_bytes_are_logged_request_or_none(tail: bytes) -> None:
    for line in (tail, CLIENT + tail, JOURNAL + tail, b"1700000000.123 1 " + tail, HAPROXY + tail):
        found = logged(line)
        assert found is None or (found.at > 0 and found.method and found.target)
