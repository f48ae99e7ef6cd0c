"""Settings of a server that can be read and changed."""

from __future__ import annotations

from typing import Literal

import msgspec

KnobKind = Literal["apache"]


class Knob(msgspec.Struct, frozen=True, kw_only=True):
    """A directive of an Apache configuration file.

    `section` is the opening of the block that holds it, without brackets (`IfModule mpm_prefork_module`); None is
    the top level, or the one such conditional block that has the directive. `test` checks the whole configuration,
    `reload` puts it into force: shell commands for the host.
    `values` limits what it may be set to; empty is anything that is one word.
    """

    name: str
    host: str
    kind: KnobKind = "apache"
    file: str
    section: str | None = None
    directive: str
    test: str
    reload: str
    values: tuple[str, ...] = ()


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One knob taken from `old` to `new`; None is: the directive is not in the file."""

    knob: str
    old: str | None
    new: str | None
