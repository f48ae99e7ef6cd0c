"""Columns of plain values: numbers, texts, histograms, and tuples and dicts of these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from cockpit.model.histogram import Histogram
from cockpit.recording.byte_streams import ByteReader, ByteWriter, read_ints, read_places, write_ints
from cockpit.recording.packing import Damaged
from cockpit.recording.validity import check_histogram

# Scales at which a float may turn out to be a whole number: counts, hundredths, parts of a second down to a nano.
_SCALES = (1.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e9)
_EXACT = float(1 << 52)
_NONE = np.empty(0, dtype=np.int64)


class ValueColumn(Protocol):
    """Values of one type. `read` returns as many as were written; what it gives equals what was given."""

    def write(self, values: Sequence[Any], sink: ByteWriter) -> None: ...

    def read(self, count: int, spring: ByteReader) -> list[Any]: ...


class IntColumn:
    """Numbers of 64 bits; others, should there be any, as text."""

    def write(self, values: Sequence[int], sink: ByteWriter) -> None:
        try:
            numbers = np.array(values, dtype=np.int64)
        except OverflowError:
            sink.head += ["text", [str(value) for value in values]]
            return
        sink.head.append("ints")
        write_ints(numbers, sink)

    def read(self, count: int, spring: ByteReader) -> list[int]:
        spring.objects(count)
        if spring.next() == "text":
            numbers = [int(text) for text in spring.texts()]
            if len(numbers) != count:
                raise Damaged("columns are cut short")
            return numbers
        found: list[int] = read_ints(count, spring).tolist()
        return found


class BoolColumn:
    def write(self, values: Sequence[bool], sink: ByteWriter) -> None:
        write_ints(np.array(values, dtype=np.int64), sink)

    def read(self, count: int, spring: ByteReader) -> list[bool]:
        spring.objects(count)
        return [bool(value) for value in read_ints(count, spring).tolist()]


class FloatColumn:
    """Exact: whole numbers of a scale where all are, else the bytes as they are, each different value once."""

    def write(self, values: Sequence[float], sink: ByteWriter) -> None:
        numbers = np.array(values, dtype=np.float64)
        if numbers.size == 0:
            return
        for scale in _SCALES:
            whole = np.rint(numbers * scale)
            if np.isfinite(whole).all() and (np.abs(whole) < _EXACT).all() and (whole / scale == numbers).all():
                sink.head.append(scale)
                write_ints(whole.astype(np.int64), sink)
                return
        unique, places = np.unique(numbers, return_inverse=True)
        if unique.size <= numbers.size * 3 // 4:
            sink.head += ["few", int(unique.size)]
            sink.array(unique.view(np.uint64))
            write_ints(places.astype(np.int64), sink)
        else:
            sink.head.append("raw")
            sink.array(numbers.view(np.uint64))

    def read(self, count: int, spring: ByteReader) -> list[float]:
        if count == 0:
            return []
        spring.objects(count)
        way = spring.next()
        if way == "raw":
            numbers = spring.array(count).view(np.float64)
        elif way == "few":
            unique = spring.array(spring.count()).view(np.float64)
            numbers = unique[read_places(count, spring, len(unique))]
        elif way in _SCALES:
            numbers = read_ints(count, spring) / way
        else:
            raise Damaged("numbers of an unknown form")
        if not np.isfinite(numbers).all():
            raise Damaged("a number is infinite or none")
        found: list[float] = numbers.tolist()
        return found


class TextColumn:
    """Each different text once."""

    def write(self, values: Sequence[str], sink: ByteWriter) -> None:
        places: dict[str, int] = {}
        numbers = [places.setdefault(value, len(places)) for value in values]
        sink.head.append(list(places))
        write_ints(np.array(numbers, dtype=np.int64), sink)

    def read(self, count: int, spring: ByteReader) -> list[str]:
        texts = spring.texts()
        spring.objects(count)
        return [texts[number] for number in read_places(count, spring, len(texts)).tolist()]


class LiteralColumn(TextColumn):
    """Texts of which each is one of a few."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = frozenset(allowed)

    def read(self, count: int, spring: ByteReader) -> list[str]:
        found = super().read(count, spring)
        if not self._allowed.issuperset(found):
            raise Damaged("a text is not one of those allowed")
        return found


class OptionalColumn:
    def __init__(self, inner: ValueColumn) -> None:
        self._inner = inner

    def write(self, values: Sequence[Any], sink: ByteWriter) -> None:
        write_ints(np.array([value is not None for value in values], dtype=np.int64), sink)
        self._inner.write([value for value in values if value is not None], sink)

    def read(self, count: int, spring: ByteReader) -> list[Any]:
        spring.objects(count)
        there = read_places(count, spring, 2).tolist()
        found = iter(self._inner.read(sum(there), spring))
        return [next(found) if one else None for one in there]


def _read_lengths(count: int, spring: ByteReader) -> list[int]:
    spring.objects(count)
    lengths = read_ints(count, spring)
    if count and lengths.min() < 0:
        raise Damaged("a length is negative")
    found: list[int] = lengths.tolist()
    return found


def _transposed(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """The first of every row, then the second of every row that has one, and so on."""
    found: list[Any] = []
    place = 0
    while rows := [row for row in rows if len(row) > place]:
        found += [row[place] for row in rows]
        place += 1
    return found


def _rows(lengths: list[int], values: Iterable[Any]) -> list[list[Any]]:
    """The inverse of `_transposed`."""
    rows: list[list[Any]] = [[] for _ in lengths]
    found = iter(values)
    left = list(zip(rows, lengths, strict=True))
    place = 0
    while left := [(row, length) for row, length in left if length > place]:
        for row, _ in left:
            row.append(next(found))
        place += 1
    return rows


class TupleColumn:
    """Tuples of any length: what stands in one place over time is one column."""

    def __init__(self, inner: ValueColumn) -> None:
        self._inner = inner

    def write(self, values: Sequence[tuple[Any, ...]], sink: ByteWriter) -> None:
        write_ints(np.array([len(value) for value in values], dtype=np.int64), sink)
        self._inner.write(_transposed(values), sink)

    def read(self, count: int, spring: ByteReader) -> list[tuple[Any, ...]]:
        lengths = _read_lengths(count, spring)
        return [tuple(row) for row in _rows(lengths, self._inner.read(sum(lengths), spring))]


class FixedColumn:
    """Tuples of one shape."""

    def __init__(self, inner: Sequence[ValueColumn]) -> None:
        self._inner = inner

    def write(self, values: Sequence[tuple[Any, ...]], sink: ByteWriter) -> None:
        for place, column in enumerate(self._inner):
            column.write([value[place] for value in values], sink)

    def read(self, count: int, spring: ByteReader) -> list[tuple[Any, ...]]:
        spring.objects(count)
        return list(zip(*(column.read(count, spring) for column in self._inner), strict=True))


class DictColumn:
    def __init__(self, keys: ValueColumn, values: ValueColumn) -> None:
        self._keys = keys
        self._values = values

    def write(self, values: Sequence[dict[Any, Any]], sink: ByteWriter) -> None:
        write_ints(np.array([len(value) for value in values], dtype=np.int64), sink)
        self._keys.write(_transposed([list(value) for value in values]), sink)
        self._values.write(_transposed([list(value.values()) for value in values]), sink)

    def read(self, count: int, spring: ByteReader) -> list[dict[Any, Any]]:
        lengths = _read_lengths(count, spring)
        keys = _rows(lengths, self._keys.read(sum(lengths), spring))
        values = _rows(lengths, self._values.read(sum(lengths), spring))
        return [dict(zip(names, found, strict=True)) for names, found in zip(keys, values, strict=True)]


class HistogramColumn:
    def write(self, values: Sequence[Histogram], sink: ByteWriter) -> None:
        write_ints(np.array([len(value.indices) for value in values], dtype=np.int64), sink)
        for name in ("total_ns", "min_ns", "max_ns"):
            IntColumn().write([getattr(value, name) for value in values], sink)
        filled = [value for value in values if len(value.indices)]
        if not filled:
            return
        gaps = np.concatenate([np.diff(value.indices, prepend=0) for value in filled])
        step = int(np.gcd.reduce(gaps)) or 1
        sink.head.append(step)
        write_ints(gaps // step, sink)
        write_ints(np.concatenate([value.counts for value in filled]), sink)

    def read(self, count: int, spring: ByteReader) -> list[Histogram]:
        lengths = np.array(_read_lengths(count, spring), dtype=np.int64)
        facts = [IntColumn().read(count, spring) for _ in range(3)]
        total = sum(lengths.tolist())
        if not total:
            return [Histogram(_NONE, _NONE, *three) for three in zip(*facts, strict=True)]
        step = spring.next()
        gaps, counts = read_ints(total, spring) * step, read_ints(total, spring)
        ends = np.cumsum(lengths)
        running = np.cumsum(gaps)
        found = []
        for first, last, *three in zip((ends - lengths).tolist(), ends.tolist(), *facts, strict=True):
            before = running[first - 1] if first else 0
            found.append(Histogram(running[first:last] - before, counts[first:last], *three))
            check_histogram(found[-1])
        return found
