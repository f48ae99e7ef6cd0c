"""Structs as the JSON that cockpit prints."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from cockpit.model.text import escaped

T = TypeVar("T", bound=msgspec.Struct)


def struct_from(kind: type[T], source: Any, **values: Any) -> T:
    """Return a struct of `kind` from `values`, and from the attributes of `source` for the other fields."""
    rest = {name: getattr(source, name) for name in kind.__struct_fields__ if name not in values}
    return kind(**rest, **values)


def to_json(value: object) -> str:
    """Return indented JSON without a line end; hostile characters are escaped."""
    return escaped(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
