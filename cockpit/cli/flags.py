"""Flags and arguments of commands as tables, one entry per flag."""

from __future__ import annotations

from argparse import Action
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from cockpit.cli.values import count, positive, seconds

# Names of values in the help, by type.
_METAVARS: dict[object, str] = {Path: "FILE", count: "N", positive: "N", seconds: "T"}


class Switch(NamedTuple):
    """The kind of a flag without a value that sets `value`; without the flag, the option is None."""

    value: object


class Flag(NamedTuple):
    """A flag with `names` such as `-z --duration`, or an argument with a name without dashes. `kind`: the parser of its
    value, its choices, or the value of a switch that is otherwise the opposite. `default`: text as typed, added to the
    help. `const`: the value of a flag without the value that `nargs` makes optional. `many`: the flag may be repeated.
    """

    names: str
    kind: Callable[[str], object] | tuple[str, ...] | bool | Switch
    help: str = ""
    metavar: str = ""
    default: str | None = None
    dest: str = ""
    nargs: str = ""
    const: object = None
    many: bool = False

    @property
    def is_flag(self) -> bool:
        return self.names.startswith("-")

    @property
    def takes_value(self) -> bool:
        return not isinstance(self.kind, bool | Switch)

    @property
    def choices(self) -> tuple[str, ...]:
        return self.kind if isinstance(self.kind, tuple) and not isinstance(self.kind, Switch) else ()

    @property
    def value_name(self) -> str:
        """The name of its value in the help."""
        known = _METAVARS.get(self.kind) if callable(self.kind) else None
        long = next((name for name in self.names.split() if name.startswith("--")), self.names)
        return self.metavar or known or (self.dest or long.lstrip("-").replace("-", "_")).upper()

    def settings(self) -> dict[str, Any]:
        """Return the keyword arguments of `add_argument`."""
        default = f" (default {self.default})" if self.default else ""
        settings: dict[str, Any] = {"help": f"{self.help}{default}" or None}
        if isinstance(self.kind, bool):
            settings["action"] = "store_true" if self.kind else "store_false"
        elif isinstance(self.kind, Switch):
            settings |= {"action": "store_const", "const": self.kind.value}
        elif self.choices:
            settings |= {"choices": self.choices} | ({"metavar": self.metavar} if self.metavar else {})
        else:
            settings |= {"type": self.kind, "metavar": self.value_name}
        settings |= {"action": "append", "default": []} if self.many else {}
        given = {"default": self.default, "dest": self.dest or None, "nargs": self.nargs or None, "const": self.const}
        return settings | {name: value for name, value in given.items() if value is not None}


class FlagSection(NamedTuple):
    """Flags under a title of their own in the help."""

    title: str
    flags: tuple[Flag, ...]


# A tuple in a table is a group of mutually exclusive flags.
FlagTable = Iterable[Flag | FlagSection | tuple[Flag, ...]]


class FlagGroup(Protocol):
    """A parser, or a group of its flags."""

    def add_argument(self, *names: str, **settings: Any) -> Action: ...

    def add_argument_group(self, title: str) -> FlagGroup: ...

    def add_mutually_exclusive_group(self) -> FlagGroup: ...


def add_flags(group: FlagGroup, flags: FlagTable, **more: Any) -> Iterator[tuple[Flag, Action]]:
    """Add the flags of a table, and yield each with its action; `more`: further keyword arguments of `add_argument`."""
    for entry in flags:
        if isinstance(entry, Flag):
            yield entry, group.add_argument(*entry.names.split(), **entry.settings(), **more)
        elif isinstance(entry, FlagSection):
            yield from add_flags(group.add_argument_group(entry.title), entry.flags, **more)
        else:
            yield from add_flags(group.add_mutually_exclusive_group(), entry, **more)


def flat(flags: FlagTable) -> Iterator[Flag]:
    """Yield all flags of a table."""
    for entry in flags:
        if isinstance(entry, Flag):
            yield entry
        else:
            yield from flat(entry.flags if isinstance(entry, FlagSection) else entry)
