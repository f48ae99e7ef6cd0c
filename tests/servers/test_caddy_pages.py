"""Caddy: metrics and access log."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.servers import registry
from cockpit.servers.access_log import AccessLine, LoggedRequest
from cockpit.servers.caddy.logs import parse as parse_access
from cockpit.servers.caddy.logs import parse_request
from cockpit.servers.status import NotThePageError
from tests.hosts import pages

PAGE = registry.STATUS_PAGES["caddy"]


def test_metrics_are_parsed() -> None:
    values = PAGE.parse(pages.CADDY).values
    assert values["caddy_http_requests_total encode"] == 12 and values["caddy_http_requests_total file_server"] == 9
    assert values["requests"] == 12 and values["in_flight"] == 3
    assert values["process_resident_memory_bytes"] == 36519936 and values["go_goroutines"] == 16
    assert values["caddy_reverse_proxy_upstreams_healthy localhost:9"] == 1
    assert values["caddy_http_response_size_bytes_sum encode"] == 14970
    assert not any("_bucket" in name or "quantile" in name for name in values)
    assert PAGE.is_counter("caddy_http_requests_total encode") and not PAGE.is_counter("go_goroutines")
    page = pages.CADDY + "caddy_config_last_reload_success_timestamp_seconds 1.795479e+09\n"
    assert PAGE.parse(page).values[PAGE.generation] == 1795479000 and not PAGE.is_counter(PAGE.generation)
    lines = [line for line in pages.CADDY.splitlines() if not line.startswith("caddy_http")]
    values = PAGE.parse("\n".join(lines)).values
    assert "requests" not in values and "in_flight" not in values and values["process_cpu_seconds_total"] == 0.25
    labels = 'handler="' + "\\" * 3000
    page = "process_cpu_seconds_total 1\n" + f"a{{{labels}}} 1\n" * 300 + "b 1\n" * 100_000 + 'c{d="' * 50_000
    assert PAGE.parse(page).values["process_cpu_seconds_total"] == 1


@pytest.mark.parametrize("page", ["", "<html>", "process_cpu_seconds_total", "process_cpu_seconds_total NaN", "a 1"])
def test_other_page_is_refused(page: str) -> None:
    with pytest.raises(NotThePageError, match="localhost:2019/metrics"):
        PAGE.parse(page)


@given(st.text(max_size=300))
@settings(deadline=None)
def test_hostile_lines_have_finite_values(text: str) -> None:
    for line in (text, f"a{{{text}}} 1", f'a{{b="{text}"}} 1', f"{text} 1e400", f"a {text}", f"requests {text}"):
        values = PAGE.parse(f"process_cpu_seconds_total 1\n{line}\n").values
        assert all(value == value and abs(value) < 2**64 for value in values.values())


LINE = (
    b'{"level":"info","ts":1795396200.5,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":'
    b'"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a%20b?x=\\"1","headers":{"X":["y"]}},'
    b'"user_id":"","duration":0.25,"size":14970,"status":200,"resp_headers":{"Server":["Caddy"]}}'
)


def test_access_log_line_is_parsed() -> None:
    for line in (LINE, b"Nov 23 01:10:00 web1 caddy[7]: " + LINE + b"\n"):
        assert parse_access(line) == AccessLine(200, 0.25)
        assert parse_request(line) == LoggedRequest(1795396200.25, b"GET", b'/a%20b?x="1')
    assert parse_access(LINE.replace(b'"status":200', b'"status":0')) == AccessLine(0, 0.25)


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        (b'"2026-11-23T01:10:00.500Z"', 1795396200.25),
        (b'"2026-11-23T02:40:00.500+0130"', 1795396200.25),
        (b'"2026-11-23T01:10:00.500000107Z"', 1795396200.25),
        (b'"2026/11/23 01:10:00.500"', 1795396200.25),
        (b"1795396200500.0", 1795396200.25),
        (b"1795396200500000000", 1795396200.25),
        # Times in whole seconds are spread over their second by a replay.
        (b'"2026-11-23T01:10:00Z"', 1795396200),
        (b'"2026/11/23 01:10:00"', 1795396200),
        (b'"23/Nov/2026:02:10:00 +0100"', 1795396200),
    ],
)
def test_each_format_of_time_and_duration_is_read(stamp: bytes, at: float) -> None:
    for duration in (b"0.25", b'"250ms"', b'"0m0.25s"', '"249999.999µs1ns"'.encode()):
        line = LINE.replace(b"1795396200.5", stamp).replace(b"0.25", duration)
        access, request = parse_access(line), parse_request(line)
        assert access is not None and access.seconds == pytest.approx(0.25)
        assert request is not None and request.at == pytest.approx(at, abs=1e-5, rel=0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"http.log.access.log0", b"http.log.error"),
        (b'"status":200', b'"status":1000'),
        (b'"status":200', b'"status":true'),
        (b"0.25", b"-1"),
        (b"0.25", b"1e400"),
        (b"1795396200.5", b'"2026/13/23 01:10:00"'),
        (b"1795396200.5", b'"noon"'),
        (b"0.25", b'"soon"'),
        (b"0.25", b'"5ms and more"'),
        (b"0.25", b'""'),
        (b"1795396200.5", b"1e300"),
        (b'"GET"', b"null"),
        (b'{"X":["y"]}', b"[" * 5000),
        (b'"X"', b'"' + b"x" * 20_000 + b'"'),
        (b"}}", b"}"),
    ],
)
def test_other_log_lines_are_not_requests(old: bytes, new: bytes) -> None:
    assert parse_access(LINE.replace(old, new)) is None and parse_request(LINE.replace(old, new)) is None


@given(st.binary(max_size=100), st.integers(0, len(LINE)))
def test_any_line_is_parsed_or_none(noise: bytes, at: int) -> None:
    for line in (noise, LINE[:at] + noise + LINE[at:], LINE[:at] + noise):
        access, request = parse_access(line), parse_request(line)
        assert access is None or (
            0 <= access.status <= 999 and access.seconds is not None and 0 <= access.seconds < 1e7
        )
        assert request is None or (request.at > 0 and request.method and request.target)
