"""Hypothesis strategies for events of every type, built from their field types."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from cockpit.model.events import AnyEvent
from cockpit.model.histogram import EMPTY, Histogram

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def events(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Any event; all its strings and mapping keys are drawn from `text`, except literals."""
    return st.one_of([_of(kind, text) for kind in get_args(AnyEvent)])


def _of(kind: Any, text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: text,
        int: INT64,
        float: FINITE,
        bool: st.booleans(),
        bytes: text.map(lambda value: value.encode()),
        types.NoneType: st.none(),
        Histogram: st.just(EMPTY),
    }
    if kind in simple:
        return simple[kind]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        needed = {field.name: _of(field.type, text) for field in fields if field.required}
        optional = {field.name: _of(field.type, text) for field in fields if not field.required}
        return st.fixed_dictionaries(needed, optional=optional).map(lambda values: kind(**values))
    parts = get_args(kind)
    if get_origin(kind) is Literal:
        return st.sampled_from(parts)
    if get_origin(kind) in (Union, types.UnionType):
        return st.one_of([_of(part, text) for part in parts])
    if get_origin(kind) is dict:
        return st.dictionaries(_of(parts[0], text), _of(parts[1], text), max_size=2)
    if get_origin(kind) is tuple and parts[-1] is ...:
        return st.lists(_of(parts[0], text), max_size=2).map(tuple)
    if get_origin(kind) is tuple:
        return st.tuples(*(_of(part, text) for part in parts))
    raise TypeError(f"no strategy for {kind}")
