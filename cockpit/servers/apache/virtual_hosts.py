"""Virtual hosts of the same address, told apart by their names: `VirtualHost *:80 (ServerName a.example)`. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from cockpit.servers.apache.grammar import ConfigBlock, Item, words

KIND = "virtualhost"
_ADDRESSED = re.compile(r"(.*\S)\s+\(\s*ServerName\s+([^()\s]+)\s*\)", re.IGNORECASE)
_NAMES = (b"servername", b"serveralias")
_NAME = re.compile(r"[\w.:*-]+")


def addressed(items: Sequence[Item], argument: str) -> list[Item]:
    """Return the items. Virtual hosts of the name and address in `argument` have it as argument."""
    parts = _ADDRESSED.fullmatch(argument)
    if not parts:
        return list(items)
    return _renamed(items, lambda block, names: argument if (block.argument, parts[2]) in _each(block, names) else "")


def distinguished(items: Sequence[Item]) -> list[Item]:
    """Return the items. Virtual hosts of the same address have their first name that no other of them has, too."""
    names_of = _names(items)
    used = Counter(pair for block, names in names_of.items() for pair in set(_each(block, names)))
    times = Counter(block.argument for block in names_of)

    def argument(block: ConfigBlock, names: list[str]) -> str:
        own = (name for name in names if used[block.argument, name] == 1 and _NAME.fullmatch(name))
        name = next(own, "") if times[block.argument] > 1 else ""
        return f"{block.argument} (ServerName {name})" if name else ""

    return _renamed(items, argument)


def _each(block: ConfigBlock, names: list[str]) -> Iterator[tuple[str, str]]:
    return ((block.argument, name) for name in names)


def _names(items: Sequence[Item]) -> dict[ConfigBlock, list[str]]:
    names: dict[ConfigBlock, list[str]] = {
        item.closes: [] for item in items if item.closes and item.closes.name == KIND
    }
    for item in items:
        if item.name.content.lower() in _NAMES and item.within and item.within[-1].name == KIND:
            arguments = words(item.line.body, item.name.end)
            names[item.within[-1]] += [word.content.decode("utf-8", "replace") for word in arguments]
    return names


def _renamed(items: Sequence[Item], argument: Callable[[ConfigBlock, list[str]], str]) -> list[Item]:
    """Return the items with the arguments of virtual hosts that `argument` returns; "": unchanged."""
    new = {
        block: block._replace(argument=changed, header=f"{block.header.split(None, 1)[0]} {changed}")
        for block, names in _names(items).items()
        if (changed := argument(block, names))
    }
    return [
        item._replace(
            within=tuple(new.get(block, block) for block in item.within),
            closes=new.get(item.closes, item.closes) if item.closes else None,
        )
        for item in items
    ]
