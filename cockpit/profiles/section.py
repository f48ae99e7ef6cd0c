"""The base of all tables of a profile file, and types that many of them use."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

# Directives may have dots in their names.
KnobName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Positive = Annotated[int, Meta(gt=0)]
Seed = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
Duration = float | str


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file; a key it does not name is an error."""
