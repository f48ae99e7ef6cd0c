"""Where the active value of a setting can be read in a running server: processes, sockets, status pages. Pure."""

from __future__ import annotations

from collections.abc import Callable
from operator import eq
from typing import NamedTuple


class Evidence(NamedTuple):
    """The source of a setting's active value in a running server.

    `source` names it for the user. `command` is a read-only sh program that prints one line, or nothing if the value is
    not visible. It can use the functions of tuning/sh/shown.sh, `$pid` (the server's first process), `$port` (one of
    its ports), `$file` (its main configuration) and `$section` (of the setting).
    The first word of the line is displayed as the value; with `is_whole` the whole line. `agrees` compares the value in
    the file with the line; None: the line is consistent with other values, too.
    """

    source: str
    command: str
    agrees: Callable[[str, str], bool | None] = eq
    is_whole: bool = False


def _queue(value: str, shown: str) -> bool | None:
    """Compare with `LIMIT SOMAXCONN`: the kernel caps the queue length at net.core.somaxconn."""
    limit, most = (int(word) for word in shown.split())
    return limit == min(int(value), most) if value.isdecimal() else None


def at_least(value: str, shown: str) -> bool | None:
    """Compare with a count that is never below the value. A higher count is inconclusive: it can have other causes."""
    if not value.isdecimal() or int(shown) > int(value):
        return None
    return shown == value


def at_most(value: str, shown: str) -> bool | None:
    """Compare with a count that is never above the value. A lower count is inconclusive: it rises under load only."""
    if not value.isdecimal() or int(shown) < int(value):
        return None
    return shown == value


LISTEN_QUEUE = Evidence("its listen queue", 'listen_queue "$pid" "${section#Connector }"', _queue)
LIMIT_OF_FILES = Evidence("the limits of its process", 'open_files "$pid"')
