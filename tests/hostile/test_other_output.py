"""Numbers with thousands of digits in other output of a host cause no internal error."""

from __future__ import annotations

import asyncssh

from cockpit.hosts.ssh_errors import reason
from cockpit.servers.inventory import parse_inventory
from cockpit.servers.registry import GRAMMARS
from cockpit.tuning.pending import outcome

DIGITS = "9" * 5000


def test_discovery_skips_invalid_numbers() -> None:
    lines = (
        f"process\t{DIGITS}\t1\tapache2\t/usr/sbin/apache2",
        f"process\t1\t{DIGITS}\tapache2\t/usr/sbin/apache2",
        f'listen\t0.0.0.0:{DIGITS}\tusers:(("nginx",pid=1,fd=6))',
        f'listen\t0.0.0.0:80\tusers:(("nginx",pid={DIGITS},fd=6))',
        "process\t7\t1\tnginx\tnginx: master",
    )
    inventory = parse_inventory("\n".join(lines), ())
    assert [process.pid for process in inventory.processes] == [7]
    assert not inventory.listening


def test_failed_undo_with_huge_exit_status_is_failed() -> None:
    found = outcome(f"test {DIGITS} 1 broken\nreload x 2 broken too\n".encode())
    assert [(word, number) for word, number, _ in found.failed] == [("test", 0), ("reload", 0)]


def test_quoted_ssh_error_number_is_bounded() -> None:
    assert len(reason(asyncssh.DisconnectError(2, f"[Errno {DIGITS}] {DIGITS}"))) <= 200
    assert reason(asyncssh.DisconnectError(2, "[Errno 113] x")) == "no route to host"


def test_setting_with_thousands_of_digits_is_not_number() -> None:
    assert GRAMMARS["apache"].number(f"MinSpareServers {DIGITS}\n".encode(), "MinSpareServers", None) is None
