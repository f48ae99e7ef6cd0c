"""Kinds of servers for the matrix of test_kinds.py: a module each, whose CASE is listed in CASES there.

An instance runs on web1 with the packaged configuration, a second one of the same kind beside it with its own.
"""

from typing import NamedTuple

from cockpit.model.host.samples import StatusPage


class Change(NamedTuple):
    """A new value of an offered knob, and a command on the host that prints what the running server has: `active`."""

    knob: str
    value: str
    command: str
    active: str


class KindCase(NamedTuple):
    """`title` is the beginning of the title that discovery gives; `port` is that of the target. `start` and `stop` are
    commands for both instances, and may be repeated; a command of `second` prints something that only a change of the
    second instance alters. `places` hold the configuration.

    `changes` are made together, and then each group of `later`, which excludes some of them.
    `malformed` and `failing` are a knob, a value, and words of the refusal: by its form, and by the server itself, for
    the setting `unchecked` in place of the knob's own. `apart` are changes of the second instance alone.
    `shown` are those of `changes` whose new value the tuner finds in the running server.
    `own` prints lines `NAME=VALUE` by the server's own tool, or by counting requests and connections, with the names on
    the `page`; `load` asks the server something.
    """

    name: str
    title: str
    port: int
    start: str
    stop: str
    second: str
    places: str
    changes: tuple[Change, ...]
    malformed: tuple[str, str, str]
    failing: tuple[str, str, str]
    apart: tuple[Change, ...]
    later: tuple[tuple[Change, ...], ...] = ()
    unchecked: str = ""
    shown: tuple[str, ...] = ()
    page: StatusPage | None = None
    own: str = ""
    load: str = "true"
