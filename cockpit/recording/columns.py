"""Many structs of one type as columns: values of one field stand side by side, as differences where these are smaller.

The columns follow the types of the fields, so that a field added to an event is kept without a word here; a field that
an older writer did not know, or of which all values are the default, is read as its default.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import numpy as np

from cockpit.model.events import Tick
from cockpit.model.histogram import Histogram
from cockpit.model.hosts import ProcessCounters
from cockpit.model.series import Deferred
from cockpit.recording.byte_streams import ByteReader, ByteWriter, Ints, read_ints, read_places, write_ints
from cockpit.recording.packing import Damaged
from cockpit.recording.plain_columns import (
    BoolColumn,
    DictColumn,
    FixedColumn,
    FloatColumn,
    HistogramColumn,
    IntColumn,
    LiteralColumn,
    OptionalColumn,
    TextColumn,
    TupleColumn,
    ValueColumn,
)
from cockpit.recording.validity import BOUNDS, UNBOUNDED, check_field

_NO_DEFAULT = object()

# A field that mostly tells what another told one struct earlier: a tick begins where the one before ended.
_CONTINUES: dict[Any, tuple[str, str]] = {Tick: ("start", "t")}


class StructColumn:
    """Structs of one type, a column a field."""

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        self._kind = kind
        self._fields = {field.name: field for field in msgspec.structs.fields(kind)}
        self._columns: dict[str, ValueColumn] = {}
        self._continued, self._after = _CONTINUES.get(kind, ("", ""))

    def write(self, values: Sequence[Any], sink: ByteWriter) -> None:
        told = [
            (name, column)
            for name, field in self._fields.items()
            if name != self._continued and not _all_default(column := list(map(attrgetter(name), values)), field)
        ]
        sink.head.append([name for name, _ in told])
        for name, column in told:
            self._column(name).write(column, sink)
        if self._continued:
            begins = [getattr(value, self._continued) for value in values]
            ends = [None, *(getattr(value, self._after) for value in values)]
            breaks = [at for at, begin in enumerate(begins) if begin != ends[at]]
            sink.head.append(breaks)
            FloatColumn().write([begins[at] for at in breaks], sink)

    def read(self, count: int, spring: ByteReader) -> list[Any]:
        spring.objects(count)
        columns = {name: self._column(name).read(count, spring) for name in spring.texts()}
        if self._continued:
            breaks = spring.next()
            begins = [0.0, *columns[self._after][:-1]] if count else []
            for at, begin in zip(breaks, FloatColumn().read(len(breaks), spring), strict=True):
                begins[at] = begin
            columns[self._continued] = begins
        for name, column in columns.items():
            if name not in BOUNDS or issubclass(self._kind, UNBOUNDED):
                continue
            if numbers := [one for one in column if isinstance(one, int | float)]:
                check_field(name, min(numbers), max(numbers))
        missing = [name for name in self._fields if name not in columns]
        for name in missing:
            columns[name] = [self._default_of(name)] * count
        if not columns:
            return [self._kind() for _ in range(count)]
        if self._kind.__struct_config__.array_like:
            return list(map(self._kind, *(columns[name] for name in self._fields)))
        rows = zip(*columns.values(), strict=True)
        return [self._kind(**dict(zip(columns, row, strict=True))) for row in rows]

    def _default_of(self, name: str) -> Any:
        found = _default_of(self._fields[name])
        if found is _NO_DEFAULT:
            raise Damaged(f"{self._kind.__name__} without {name!r}")
        return found

    def _column(self, name: str) -> ValueColumn:
        if name not in self._fields:
            raise Damaged(f"a field {name!r} that {self._kind.__name__} does not have")
        if name not in self._columns:
            self._columns[name] = column_for(self._fields[name].type)
        return self._columns[name]


def _default_of(field: Any) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return _NO_DEFAULT


def _all_default(values: Sequence[Any], field: Any) -> bool:
    default = _default_of(field)
    return default is not _NO_DEFAULT and all(value is default or value == default for value in values)


# Processes by (pid, start), each with its samples and its row in each of them.
Lives = dict[tuple[int, int], tuple[list[int], list[ProcessCounters]]]


class ProcessFieldsColumn:
    """The processes of each sample. One that lives on is told once, with the samples it is in; what changes of it is a
    column over time. They are made when somebody looks at the sample: till then a Deferred stands for the tuple."""

    _TEXTS = ("stat", "comm", "command")
    _NUMBERS = ("ppid", "utime", "stime", "threads", "vsz", "rss", "shared")

    def __init__(self) -> None:
        self._plain = TupleColumn(StructColumn(ProcessCounters))

    def write(self, values: Sequence[Sequence[ProcessCounters]], sink: ByteWriter) -> None:
        lives = _lives(values)
        arrays = None if lives is None else self._arrays(lives)
        if lives is None or arrays is None:
            sink.head.append(None)
            self._plain.write([tuple(value) for value in values], sink)
            return
        sink.head.append(len(lives))
        for numbers in arrays:
            write_ints(numbers, sink)
        rows = [row for _, told in lives.values() for row in told]
        for name in self._TEXTS:
            TextColumn().write([getattr(row, name) for row in rows], sink)

    def _arrays(self, lives: Lives) -> list[Ints] | None:
        """Pids and starts, first samples and lengths, then the numbers of each row; None if one has over 64 bits."""
        columns = [[identity[place] for identity in lives] for place in (0, 1)]
        columns.append([samples[0] for samples, _ in lives.values()])
        columns.append([len(samples) for samples, _ in lives.values()])
        rows = [row for _, told in lives.values() for row in told]
        columns += [[getattr(row, name) for row in rows] for name in self._NUMBERS]
        try:
            return [np.array(column, dtype=np.int64) for column in columns]
        except OverflowError:
            return None

    def read(self, count: int, spring: ByteReader) -> list[Sequence[ProcessCounters]]:
        lives = spring.next()
        if lives is None:
            return list(self._plain.read(count, spring))
        spring.objects(lives)
        pids, starts = read_ints(lives, spring), read_ints(lives, spring)
        firsts, lengths = read_ints(lives, spring), read_ints(lives, spring)
        if lengths.min(initial=1) < 1 or firsts.min(initial=0) < 0 or (firsts + lengths).max(initial=0) > count:
            raise Damaged("processes that do not add up")
        total = sum(lengths.tolist())
        spring.ints(8 * total)
        whose = np.repeat(np.arange(lives), lengths)
        sample = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(firsts, lengths)
        order = np.lexsort((whose, sample))
        columns: dict[str, Ints] = {"pid": pids[whose[order]], "start": starts[whose[order]]}
        for name in self._NUMBERS:
            columns[name] = read_ints(total, spring)[order]
        texts = {}
        for name in self._TEXTS:
            texts[name] = spring.texts()
            columns[name] = read_places(total, spring, len(texts[name]))[order]
        ends = np.cumsum(np.bincount(sample, minlength=count)).tolist()
        return [
            Deferred(partial(_processes, columns, texts, first, last))
            for first, last in zip([0, *ends], ends, strict=False)
        ]


def _processes(columns: dict[str, Ints], texts: dict[str, list[str]], first: int, last: int) -> tuple[Any, ...]:
    """Those in the rows from one place to another."""
    found = {name: column[first:last].tolist() for name, column in columns.items()}
    for name, known in texts.items():
        found[name] = [known[number] for number in found[name]]
    return tuple(map(ProcessCounters, *(found[name] for name in ProcessCounters.__struct_fields__)))


def _lives(values: Sequence[Sequence[ProcessCounters]]) -> Lives | None:
    """Every process by (pid, start), with the samples it is in, in one go; None where they do not stand in that order
    or one comes back."""
    found: Lives = {}
    for sample, rows in enumerate(values):
        before = (-1, -1)
        for row in rows:
            identity = (row.pid, row.start)
            samples, told = found.setdefault(identity, ([], []))
            if identity <= before or (samples and samples[-1] != sample - 1):
                return None
            samples.append(sample)
            told.append(row)
            before = identity
    return dict(sorted(found.items()))


_SIMPLE: dict[Any, type[Any]] = {int: IntColumn, float: FloatColumn, str: TextColumn, bool: BoolColumn}


@cache
def column_for(kind: Any) -> ValueColumn:
    """How values of a type are kept. Raises TypeError for a type that no event has."""
    if kind in _SIMPLE:
        column: ValueColumn = _SIMPLE[kind]()
        return column
    if kind is Histogram:
        return HistogramColumn()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return StructColumn(kind)
    return _column_for_form(kind, get_origin(kind), get_args(kind))


def _column_for_form(kind: Any, origin: Any, parts: tuple[Any, ...]) -> ValueColumn:
    if origin is Literal:
        return LiteralColumn(parts)
    if origin in (Union, types.UnionType) and types.NoneType in parts and len(parts) == 2:
        return OptionalColumn(column_for(next(part for part in parts if part is not types.NoneType)))
    if origin is dict:
        return DictColumn(column_for(parts[0]), column_for(parts[1]))
    if kind == tuple[ProcessCounters, ...]:
        return ProcessFieldsColumn()
    if origin is tuple and parts[-1:] == (...,):
        return TupleColumn(column_for(parts[0]))
    if origin is tuple:
        return FixedColumn([column_for(part) for part in parts])
    raise TypeError(f"no column for {typing.cast(Any, kind)!r}")
