"""A cache for pure functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from hashlib import blake2b
from typing import ParamSpec, TypeVar

import numpy as np

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")

# Results kept per function.
_SIZE = 20_000


def cached_by_value(function: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
    """Cache the results of a pure function by its arguments; arrays by a digest of their bytes.

    For a screen that repeats a sequence of tests whenever one more block arrives: only the last test is new. When the
    cache is full, it is emptied.
    """
    known: dict[Hashable, _Result] = {}

    @wraps(function)
    def cached(*args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
        values = (*args, *kwargs.items())
        key = tuple(blake2b(value.tobytes()).digest() if isinstance(value, np.ndarray) else value for value in values)
        if key not in known:
            if len(known) >= _SIZE:
                known.clear()
            known[key] = function(*args, **kwargs)
        return known[key]

    return cached
