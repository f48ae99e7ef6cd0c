"""Upstreams, access logs and status pages by the tables of this folder."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.servers import registry
from cockpit.servers.access_log import AccessLine, LoggedRequest, instant
from cockpit.servers.inventory import parse_inventory
from cockpit.servers.registry import LOGGED_REQUESTS, PARTIAL_LOGS, STATUS_PAGES, parse_access
from cockpit.servers.upstreams import Upstream, hop_to, upstreams
from tests.hosts.pages import PAGES

UPSTREAMS = tomllib.loads(Path(__file__).with_name("upstreams.toml").read_text())


@pytest.mark.parametrize("kind", UPSTREAMS)
def test_upstream_addresses_are_found(kind: str) -> None:
    found = upstreams(UPSTREAMS[kind]["text"], registry.UPSTREAMS[kind])
    assert [upstream.words for upstream in found] == UPSTREAMS[kind]["addresses"].split(" ")


def test_processes_on_upstream_addresses_are_found() -> None:
    inventory = parse_inventory(
        "process\t9\t1\thaproxy\thaproxy -f /a\nprocess\t10\t9\thaproxy\thaproxy\n"
        'listen\t127.0.0.1:80\tusers:(("lighttpd",pid=11,fd=6))\nlisten\t10.0.0.1:80\tusers:(("haproxy",pid=10,fd=6))\n'
        'listen\t*:3000\tusers:(("node",pid=12,fd=6))\nlisten\t[::]%lo:3000\tusers:(("node",pid=12,fd=6))\n'
        'unix\t/run/x.sock\tusers:(("gunicorn",pid=14,fd=6))\nunix\tx\tusers:(("evil",pid=15,fd=1))\naddress\t10.0.0.1\n',
        registry.FILES,
    )
    (server,) = registry.running_servers(inventory)
    addresses = [("10.0.0.1", 80, ""), ("localhost", 3000, ""), ("", 0, "/run/x.sock"), ("127.0.0.2", 4000, "")]
    addresses += [("localhost", 80, "")]
    upstreams_found = [Upstream(*address) for address in (*addresses, ("10.0.0.2", 80, ""))]
    found = [hop_to("nginx :81", upstream, inventory, [server]) for upstream in upstreams_found]
    assert [(hop.is_here, hop.server, hop.name) for hop in found] == [
        (True, server, "haproxy"),
        (True, None, "node"),
        (True, None, "gunicorn"),
        (True, None, ""),
        (True, None, "lighttpd"),
        (False, None, ""),
    ]
    assert [hop.words for hop in found[:3]] == [
        "nginx :81 -> HAProxy 10.0.0.1:80",
        "nginx :81 -> node localhost:3000",
        "nginx :81 -> gunicorn /run/x.sock",
    ]


HAPROXY_LOG = b"127.0.0.1:45844 [23/Nov/2026:04:57:52.228] f"
CLIENT_LOG = b'10.0.0.9 - - [23/Nov/2026:01:10:00 +0000] "GET /img/00001.jpg HTTP/1.1"'

JOURNAL_LOG = b"Nov 23 01:10:00 web1 gunicorn[4711]: "


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
    for head in (b"", CLIENT_LOG, CLIENT_LOG + b" 200 1 ", JOURNAL_LOG, b"1700000000.123 1 ", HAPROXY_LOG):
        found, request = parse_access(head + tail), logged(head + tail)
        assert found is None or (0 <= found.status <= 999 and (found.seconds is None or 0 <= found.seconds < 1e7))
        assert request is None or (request.at > 0 and request.method and request.target)


def test_line_of_escaped_quotes_is_parsed_in_linear_time() -> None:
    assert parse_access(CLIENT_LOG[:-1] + b'\\"' * 500_000) is None


def test_timestamp_without_zone_is_utc_invalid_is_none() -> None:
    assert instant(b"23/Nov/2026:01:10:00.125") == 1795396200.125
    assert instant(b"23/Nov/2026:25:10:00 +0000") is None and instant(b"2026-11-23T01:10:00Z") is None


STATUS = tomllib.loads(Path(__file__).with_name("status_values.toml").read_text())


@pytest.mark.parametrize("kind", STATUS_PAGES)
def test_status_page_is_parsed(kind: str) -> None:
    page, expected = STATUS_PAGES[kind], STATUS[kind]
    values, text = page.parse(PAGES[kind])
    assert (len(values), text) == (expected["number"], expected.get("text", {}))
    for table, is_counter in (("counters", True), ("gauges", False)):
        assert {name: values.get(name) for name in expected[table]} == expected[table]
        assert {page.is_counter(name) for name in expected[table]} == {is_counter}


def test_rows_and_names_of_some_kinds() -> None:
    assert set("rW_") <= set(STATUS_PAGES["lighttpd"].scoreboard)
    # The rows of HAProxy's `option socket-stats`, with the status OPEN.
    rows = "web,sock-1,OPEN,3,1,\nweb,FRONTEND,OPEN,0,1,\napp,app1,UP,2,1,\napp,app2,DOWN,2,0,\n"
    values, _ = STATUS_PAGES["haproxy"].parse(f"# pxname,svname,status,type,scur,\n{rows}")
    assert (values["servers.up"], values["servers.down"], values["web/sock-1 scur"]) == (1, 1, 1)
    # Pages of MariaDB's buffer pool are gauges, and what was done with them is counted.
    done = ("flushed", "made_young", "lru_freed")
    counters = {
        name
        for name in (*done, "data", "dirty", "total")
        if STATUS_PAGES["mariadb"].is_counter(f"Innodb_buffer_pool_pages_{name}")
    }
    assert counters == {*done}
