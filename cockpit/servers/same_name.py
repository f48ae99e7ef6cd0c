"""Blocks of the same name, told apart by directives in them: `server[server_name=www.example.org] {`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cockpit.servers.blocks import ADDRESSED, CONDITION, BlockItem, BlockPath

# Depth up to which blocks are told apart.
_DEPTH = 8
_VALUE = re.compile(r"(?:[\w.:*/-]|\[[\w:.]*\])+")


class _Block(NamedTuple):
    """A block of a text: the words of its directives, and the positions of the items in it, its end included."""

    path: BlockPath
    words: Mapping[str, Sequence[str]]
    members: Sequence[int]

    def meets(self, conditions: Iterable[tuple[str, str]]) -> bool:
        return all(value in self.words.get(name, ()) for name, value in conditions)


def addressed(text: bytes, items: Iterable[BlockItem], path: BlockPath) -> list[BlockItem]:
    """Return the items; blocks that meet the conditions in `path` have the names that they have there."""
    renamed = list(items)
    for depth, header in enumerate(path):
        if parts := ADDRESSED.fullmatch(header):
            conditions = CONDITION.findall(parts[2])
            for block in list(_blocks(text, renamed)):
                if block.path == (*path[:depth], parts[1].strip()) and block.meets(conditions):
                    _rename(renamed, block, header)
    return renamed


def distinguished(text: bytes, items: Iterable[BlockItem], names: Sequence[str]) -> list[BlockItem]:
    """Return the items; blocks of the same name have conditions: by the first of the directives `names`, or by more of
    them if necessary."""
    renamed = list(items)
    deepest = max((len(item.closes or ()) for item in renamed), default=0)
    for depth in range(1, 1 + min(deepest, _DEPTH)):
        same: dict[BlockPath, list[_Block]] = {}
        for block in _blocks(text, renamed):
            if len(block.path) == depth:
                same.setdefault(block.path, []).append(block)
        for blocks in same.values():
            index: dict[tuple[str, str], list[_Block]] = {}
            for block in blocks:
                for pair in {(name, word) for name in names for word in block.words.get(name, ())}:
                    index.setdefault(pair, []).append(block)
            for block in blocks if len(blocks) > 1 else ():
                if conditions := _shortest(block, index, names):
                    _rename(renamed, block, block.path[-1] + "".join(f"[{name}={value}]" for name, value in conditions))
    return renamed


def _shortest(
    block: _Block, index: Mapping[tuple[str, str], Sequence[_Block]], names: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the conditions that only this block meets; [] if there are none."""
    conditions: list[tuple[str, str]] = []
    for name in names:
        values = [word for word in block.words.get(name, ()) if _VALUE.fullmatch(word)]
        conditions += [(name, value) for value in values[:1]]
        if conditions and sum(other.meets(conditions) for other in index[conditions[0]]) == 1:
            return conditions
    return []


def _blocks(text: bytes, items: Sequence[BlockItem]) -> Iterator[_Block]:
    opened: dict[BlockPath, list[int]] = {}
    for index, item in enumerate(items):
        for depth in range(1, len(item.within) + 1):
            opened.setdefault(item.within[:depth], []).append(index)
        if item.closes:
            members = opened.pop(item.closes, [])
            words: dict[str, list[str]] = {}
            for inner in (items[member] for member in members):
                if inner.within == item.closes and not inner.closes:
                    value = text[slice(*inner.value)].decode("utf-8", "replace")
                    words.setdefault(inner.name.decode("utf-8", "replace"), []).extend(value.split())
            yield _Block(item.closes, words, (*members, index))


def _rename(items: list[BlockItem], block: _Block, header: str) -> None:
    depth = len(block.path) - 1
    for index in block.members:
        within, closes = items[index].within, items[index].closes
        items[index] = items[index]._replace(
            within=(*within[:depth], header, *within[depth + 1 :]) if len(within) > depth else within,
            closes=(*closes[:depth], header, *closes[depth + 1 :]) if closes and len(closes) > depth else closes,
        )
