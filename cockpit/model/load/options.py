"""Load options: values of a plan that are set by profile keys and flags."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

# The longest duration (s): 7 days.
LONGEST = 7 * 86400.0
# A request method, e.g. GET or M-SEARCH.
METHOD = r"^[A-Z]+(-[A-Z]+)*$"


class OptionKind(NamedTuple):
    """The values of an option. `limits`: their type in a plan; `key`: their type in a profile, if it may be text to
    parse; `flag`: parser of a flag's value in cli.values ("": none)."""

    limits: Any
    key: Any = None
    flag: str = ""


KINDS = {
    "positive": OptionKind(Annotated[int, Meta(gt=0)], flag="positive"),
    "connections": OptionKind(Annotated[int, Meta(gt=0)], key=Annotated[int, Meta(gt=0)] | str, flag="connections"),
    "amount": OptionKind(Annotated[int, Meta(gt=0)], key=int | str, flag="positive"),
    "count": OptionKind(Annotated[int, Meta(ge=0)], flag="count"),
    "rate": OptionKind(Annotated[float, Meta(gt=0)], key=Annotated[float, Meta(gt=0)] | str, flag="rate"),
    "seconds": OptionKind(Annotated[float, Meta(gt=0, le=LONGEST)], key=float | str, flag="seconds"),
    "wait": OptionKind(Annotated[float, Meta(ge=0, le=LONGEST)], key=float | str, flag="wait"),
    "cpus": OptionKind(tuple[Annotated[int, Meta(ge=0)], ...], flag="cpus"),
    "method": OptionKind(Annotated[str, Meta(pattern=METHOD)]),
    "switch": OptionKind(bool),
}


class LoadOption(NamedTuple):
    """A load option; `name` is its field of the plan and its profile key. `limits`: type of its values in a plan;
    `key`: type in a profile; `parser`: parser of the flag's value in cli.values ("": a switch). `meaning` describes the
    key, `help` the flag; `flags`: names of the flag, () if the option has none in the table."""

    name: str
    default: Any
    limits: Any
    key: Any
    parser: str
    flags: tuple[str, ...]
    metavar: str
    meaning: str
    help: str


def options_of(plan: type[msgspec.Struct], table: str) -> dict[str, LoadOption]:
    """Parse the option table of a plan; options without a kind have the type of their field."""
    fields = {field.name: field for field in msgspec.structs.fields(plan)}
    found = {}
    for entry in table.removeprefix("# ").split("\n# "):
        head, meaning, *more = entry.rstrip("\n").split("\n")
        name, _, usage = head.partition(": ")
        word, *words = usage.split() or [""]
        kind = KINDS[word] if word else OptionKind(fields[name].type)
        types = (kind.limits, kind.key or kind.limits)
        limits, key = (each | None if fields[name].default is None else each for each in types)
        flags = tuple(each for each in words if each.startswith("-"))
        metavar = words[-1] if kind.flag and flags else ""
        help = more[0] if more else meaning.replace("`", "")
        found[name] = LoadOption(name, fields[name].default, limits, key, kind.flag, flags, metavar, meaning, help)
    return found
