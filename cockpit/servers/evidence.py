"""How a running server shows the value of a setting: by its processes, its sockets or a page of its own. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


def _same(value: str, shown: str) -> bool | None:
    return value == shown


class Evidence(NamedTuple):
    """The part of a running server that shows a setting, named by `source`.

    `command` is a program for sh that changes nothing. It prints one line, or nothing if the value cannot be seen. It
    has the functions of tuning/sh/shown.sh, and `$pid` (the server's first process), `$port` (one of its ports),
    `$file` (its main configuration) and `$section` (of the setting).
    The first word is the value for a person, unless `is_whole`: then the line is. `agrees` compares the value in the
    file with the line; None: the line fits other values too.
    """

    source: str
    command: str
    agrees: Callable[[str, str], bool | None] = _same
    is_whole: bool = False


def _queue(value: str, shown: str) -> bool | None:
    """From `LIMIT SOMAXCONN`: the kernel bounds the length by net.core.somaxconn."""
    limit, most = (int(word) for word in shown.split())
    return limit == min(int(value), most) if value.isdecimal() else None


def at_least(value: str, shown: str) -> bool | None:
    """A count that cannot be below the value; above it, something else may have added to it."""
    if not value.isdecimal() or int(shown) > int(value):
        return None
    return shown == value


def at_most(value: str, shown: str) -> bool | None:
    """A count that cannot be above the value, and is at it under load only."""
    if not value.isdecimal() or int(shown) < int(value):
        return None
    return shown == value


LISTEN_QUEUE = Evidence("its listen queue", 'listen_queue "$pid" "${section#Connector }"', _queue)
LIMIT_OF_FILES = Evidence("the limits of its process", 'open_files "$pid"')
