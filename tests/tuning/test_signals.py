"""The processes that a reload command signals, as parsed from the command."""

from __future__ import annotations

import pytest

from cockpit.tuning.signals import Signalled, signalled


@pytest.mark.parametrize(
    ("command", "receivers"),
    [
        ("kill -HUP 12", Signalled((12,))),
        ("sudo -n /bin/kill -s HUP 12 13", Signalled((12, 13))),
        ("nginx -t && kill -1 12; sleep 1", Signalled((12,))),
        ('kill -USR2 "$(cat /run/a.pid)"', Signalled(files=("/run/a.pid",))),
        ("kill -HUP $(</run/a.pid)", Signalled(files=("/run/a.pid",))),
        ("kill -HUP `cat /run/a.pid`", Signalled(files=("/run/a.pid",))),
        ("pkill -HUP -F /run/a.pid", Signalled(files=("/run/a.pid",))),
        ("pkill -HUP nginx", Signalled(names=("nginx",))),
        ("pkill -x -USR1 apache2", Signalled(names=("apache2",), exact=True)),
        ("killall -s HUP nginx", Signalled(names=("nginx",), exact=True)),
        ("service demo reload", Signalled(files=("/run/demo.pid", "/run/demo/demo.pid", "/run/php/demo.pid"))),
    ],
)
def test_receivers_of_signal_are_parsed(command: str, receivers: Signalled) -> None:
    assert list(signalled(command)) == [receivers]


@pytest.mark.parametrize(
    "command",
    [
        "nginx -s reload",
        "pkill -o -USR1 -x demo",
        "pkill -f a",
        "pkill -P 4 nginx",
        "sh -c 'kill -1 2'",
        "kill '",
        "echo kill -1 2",
    ],
)
def test_unclear_command_has_no_receivers(command: str) -> None:
    assert list(signalled(command)) == []


def test_variable_is_not_parsed_as_pid() -> None:
    assert list(signalled("pid=3; kill -HUP $pid")) == [Signalled()]
