"""Kernel settings: valid values, accept queues of running listeners."""

from __future__ import annotations

from cockpit.servers import kernel
from cockpit.servers.inventory import parse_inventory


def test_accept_queues_of_listeners_are_noted() -> None:
    listeners = 'listen\t*:80\tusers:(("nginx",pid=2,fd=6),("nginx",pid=3,fd=6))\t511\n'
    listeners += 'listen\t*:22\tusers:(("sshd",pid=1,fd=3))\t128\nlisten\t*:23\tusers:(("old",pid=4,fd=3))\n'
    note = kernel.accept_queues(parse_inventory(listeners, ()))
    queues = "port 22 (sshd) 128, port 80 (nginx) 511"
    assert note == f"accept queues now: {queues}; restart a server to apply the change to its queue"
    assert kernel.accept_queues(parse_inventory("", ())) == ""
