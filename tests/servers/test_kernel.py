"""Kernel settings: valid values, accept queues of running listeners."""

from __future__ import annotations

import pytest

from cockpit.servers import kernel
from cockpit.servers.inventory import parse_inventory


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("net.core.somaxconn", ("128", "65535"), ("0", "-1", "4k")),
        ("net.ipv4.tcp_tw_reuse", ("0", "1", "2"), ("3", "on")),
        ("net.ipv4.ip_local_port_range", ("1024 65000", "32768\t60999"), ("1024", "65000 1024", "1 70000", "a b")),
        ("vm.swappiness", ("0", "200"), ("201", "10%")),
    ],
)
def test_sysctl_values_are_validated(key: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    setting = kernel.SETTINGS[key]
    assert all(map(setting.accepts, good)) and not any(map(setting.accepts, bad))


def test_accept_queues_of_listeners_are_noted() -> None:
    listeners = 'listen\t*:80\tusers:(("nginx",pid=2,fd=6),("nginx",pid=3,fd=6))\t511\n'
    listeners += 'listen\t*:22\tusers:(("sshd",pid=1,fd=3))\t128\nlisten\t*:23\tusers:(("old",pid=4,fd=3))\n'
    note = kernel.accept_queues(parse_inventory(listeners, ()))
    queues = "port 22 (sshd) 128, port 80 (nginx) 511"
    assert note == f"accept queues now: {queues}; restart a server to apply the change to its queue"
    assert kernel.accept_queues(parse_inventory("", ())) == ""
