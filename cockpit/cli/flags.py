"""Flags and arguments of commands as tables, one entry per flag."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from cockpit.cli.values import count, positive, seconds

# Names of values in the help, by type.
_METAVARS: dict[object, str] = {Path: "FILE", count: "N", positive: "N", seconds: "T"}


class Flag(NamedTuple):
    """A flag with `names` such as `-z --duration`, or an argument with a name without dashes. `kind`: the parser of its
    value, its choices, or the value of a switch. `default`: text as typed, added to the help. `many`: the flag may be
    repeated."""

    names: str
    kind: Callable[[str], object] | tuple[str, ...] | bool
    help: str = ""
    metavar: str = ""
    default: str | None = None
    dest: str = ""
    nargs: str = ""
    many: bool = False

    def settings(self) -> dict[str, Any]:
        """Return the keyword arguments of `add_argument`."""
        default = f" (default {self.default})" if self.default else ""
        settings: dict[str, Any] = {"help": f"{self.help}{default}" or None}
        if isinstance(self.kind, bool):
            settings["action"] = "store_true" if self.kind else "store_false"
        elif isinstance(self.kind, tuple):
            settings |= {"choices": self.kind} | ({"metavar": self.metavar} if self.metavar else {})
        else:
            name = None if self.names.startswith("-") else self.names.upper()
            settings |= {"type": self.kind, "metavar": self.metavar or _METAVARS.get(self.kind, name)}
        settings |= {"action": "append", "default": []} if self.many else {}
        given = {"default": self.default, "dest": self.dest or None, "nargs": self.nargs or None}
        return settings | {name: value for name, value in given.items() if value is not None}


# A tuple in a table is a group of mutually exclusive flags.
FlagTable = Iterable[Flag | tuple[Flag, ...]]


class FlagGroup(Protocol):
    """A parser, or a group of its flags."""

    def add_argument(self, *names: str, **settings: Any) -> object: ...

    def add_mutually_exclusive_group(self) -> FlagGroup: ...


def add_flags(group: FlagGroup, flags: FlagTable, **more: Any) -> None:
    """Add the flags of a table; `more`: further keyword arguments of `add_argument` for all of them."""
    for entry in flags:
        if isinstance(entry, Flag):
            group.add_argument(*entry.names.split(), **entry.settings(), **more)
        else:
            add_flags(group.add_mutually_exclusive_group(), entry, **more)
