"""Numbers of thousands of digits in what a host prints beside the probe: no error of ours comes of them."""

from __future__ import annotations

import asyncssh

from cockpit.hosts.ssh_errors import reason
from cockpit.servers.inventory import parse_inventory
from cockpit.servers.registry import GRAMMARS
from cockpit.tuning.pending import outcome

DIGITS = "9" * 5000


def test_a_look_at_a_host_passes_over_numbers_that_are_none() -> None:
    lines = (
        f"process\t{DIGITS}\t1\tapache2\t/usr/sbin/apache2",
        f"process\t1\t{DIGITS}\tapache2\t/usr/sbin/apache2",
        f'listen\t0.0.0.0:{DIGITS}\tusers:(("nginx",pid=1,fd=6))',
        f'listen\t0.0.0.0:80\tusers:(("nginx",pid={DIGITS},fd=6))',
        "process\t7\t1\tnginx\tnginx: master",
    )
    seen = parse_inventory("\n".join(lines), ())
    assert [process.pid for process in seen.processes] == [7]
    assert not seen.listening


def test_an_undo_that_failed_has_failed_whatever_number_it_gives() -> None:
    found = outcome(f"test {DIGITS} 1 broken\nreload x 2 broken too\n".encode())
    assert [(word, number) for word, number, _ in found.failed] == [("test", 0), ("reload", 0)]


def test_an_ssh_server_that_quotes_an_error_number_is_quoted_in_bounds() -> None:
    assert len(reason(asyncssh.DisconnectError(2, f"[Errno {DIGITS}] {DIGITS}"))) <= 200
    assert reason(asyncssh.DisconnectError(2, "[Errno 113] x")) == "no route to host"


def test_a_setting_of_thousands_of_digits_is_no_number() -> None:
    assert GRAMMARS["apache"].number(f"MinSpareServers {DIGITS}\n".encode(), "MinSpareServers", None) is None
