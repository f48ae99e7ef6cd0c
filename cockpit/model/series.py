"""An append-only sequence that states share: the cost of an append is independent of the length. Parts of it may be
loaded on first access."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Protocol, TypeVar, overload

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# Items per chunk, and minimum number of items after the last chunk: these may still be replaced.
CHUNK = 64
LOOSE = 8


class Chunk(Protocol[T_co]):
    """Items that no longer change."""

    def __len__(self) -> int: ...

    def items(self) -> tuple[T_co, ...]: ...


class MemoryChunk(tuple[T, ...]):
    """A chunk in memory."""

    def items(self) -> tuple[T, ...]:
        return self


class LazySequence(Sequence[T]):
    """Items that are computed on first access. Equal to any sequence of the same items."""

    __slots__ = ("_items", "_make")

    def __init__(self, make: Callable[[], tuple[T, ...]]) -> None:
        self._make: Callable[[], tuple[T, ...]] | None = make
        self._items: tuple[T, ...] = ()

    def _made(self) -> tuple[T, ...]:
        if self._make is not None:
            self._items, self._make = self._make(), None
        return self._items

    def __len__(self) -> int:
        return len(self._made())

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        return self._made()[at]

    def __iter__(self) -> Iterator[T]:
        return iter(self._made())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazySequence | tuple) and self._made() == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._made())


class Series(Sequence[T]):
    """Chunks, followed by single items (`rest`). Equal to any sequence of the same items; slices are tuples."""

    __slots__ = ("_chunks", "_ends", "_rest")

    def __init__(
        self, chunks: tuple[Chunk[T], ...], rest: tuple[T, ...], totals: tuple[int, ...] | None = None
    ) -> None:
        """`ends`: number of items up to the end of each chunk; None: compute it."""
        self._chunks = chunks
        self._rest = rest
        if totals is None:
            totals, total = (), 0
            counted = []
            for chunk in chunks:
                total += len(chunk)
                counted.append(total)
            totals = tuple(counted)
        self._ends = totals

    def __len__(self) -> int:
        return self._chunked + len(self._rest)

    @property
    def _chunked(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        if isinstance(at, slice):
            first, last, step = at.indices(len(self))
            items = self._between(min(first, last), max(first, last)) if step == 1 else tuple(self)[at]
            return items if step != 1 or first < last else ()
        place = at + len(self) if at < 0 else at
        if not 0 <= place < len(self):
            raise IndexError(at)
        if place >= self._chunked:
            return self._rest[place - self._chunked]
        number = bisect_right(self._ends, place)
        return self._chunks[number].items()[place - self._begin(number)]

    def _begin(self, number: int) -> int:
        return self._ends[number - 1] if number else 0

    def _between(self, first: int, last: int) -> tuple[T, ...]:
        if first >= self._chunked:
            return self._rest[first - self._chunked : last - self._chunked]
        number = bisect_right(self._ends, first)
        parts: list[tuple[T, ...]] = []
        while number < len(self._chunks) and self._begin(number) < last:
            begin = self._begin(number)
            parts.append(self._chunks[number].items()[max(0, first - begin) : last - begin])
            number += 1
        if last > self._chunked:
            parts.append(self._rest[: last - self._chunked])
        return tuple(chain.from_iterable(parts))

    def __iter__(self) -> Iterator[T]:
        for chunk in self._chunks:
            yield from chunk.items()
        yield from self._rest

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Series | tuple):
            return NotImplemented
        return len(self) == len(other) and all(first == second for first, second in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Series({len(self)} items)"

    def replaced(self, place: int, items: tuple[T, ...]) -> Series[T]:
        """Return the series with all items from index `place` on replaced by `items`."""
        if place < self._chunked:
            return series((*self[:place], *items))
        rest = (*self._rest[: place - self._chunked], *items)
        if len(rest) < CHUNK + LOOSE:
            return Series(self._chunks, rest, self._ends)
        chunk: MemoryChunk[T] = MemoryChunk(rest[:CHUNK])
        return Series((*self._chunks, chunk), rest[CHUNK:], (*self._ends, self._chunked + CHUNK))


def series(items: Sequence[T]) -> Series[T]:
    cut = max(0, len(items) - LOOSE) // CHUNK * CHUNK
    chunks: tuple[Any, ...] = tuple(MemoryChunk(items[at : at + CHUNK]) for at in range(0, cut, CHUNK))
    return Series(chunks, tuple(items[cut:]))


def replaced(items: Sequence[T], place: int, more: tuple[T, ...]) -> Sequence[T]:
    """Return `items` with all items from index `place` on replaced by `more`."""
    return (items if isinstance(items, Series) else series(items)).replaced(place, more)
