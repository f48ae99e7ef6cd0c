"""Upstream addresses of proxies, and the servers that listen on them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from cockpit.servers import registry
from cockpit.servers.inventory import parse_inventory
from cockpit.servers.upstreams import Upstream, hops, upstreams

TABLE = tomllib.loads(Path(__file__).with_name("upstreams.toml").read_text())


@pytest.mark.parametrize("kind", TABLE)
def test_upstream_addresses_are_found(kind: str) -> None:
    found = upstreams(TABLE[kind]["text"], registry.UPSTREAMS[kind])
    assert [upstream.words for upstream in found] == TABLE[kind]["addresses"].split(" ")


def test_processes_on_upstream_addresses_are_found() -> None:
    inventory = parse_inventory(
        "process\t9\t1\thaproxy\thaproxy -f /a\nprocess\t10\t9\thaproxy\thaproxy\n"
        'listen\t0.0.0.0:80\tusers:(("haproxy",pid=10,fd=6))\nlisten\t*:3000\tusers:(("node",pid=12,fd=6))\n'
        'unix\t/run/x.sock\tusers:(("gunicorn",pid=14,fd=6))\nunix\tx\tusers:(("evil",pid=15,fd=1))\naddress\t10.0.0.1\n',
        registry.FILES,
    )
    (server,) = registry.running_servers(inventory)
    addresses = [("10.0.0.1", 80, ""), ("localhost", 3000, ""), ("", 0, "/run/x.sock"), ("127.0.0.2", 4000, "")]
    found = hops(
        "nginx :81", [Upstream(*address) for address in (*addresses, ("10.0.0.2", 80, ""))], inventory, [server]
    )
    assert [(hop.is_here, hop.server, hop.name) for hop in found] == [
        (True, server, "haproxy"),
        (True, None, "node"),
        (True, None, "gunicorn"),
        (True, None, ""),
        (False, None, ""),
    ]
    assert [hop.words for hop in found[:3]] == [
        "nginx :81 -> HAProxy 10.0.0.1:80",
        "nginx :81 -> node localhost:3000",
        "nginx :81 -> gunicorn /run/x.sock",
    ]
