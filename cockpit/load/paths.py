"""Paths of a plan with many: a pattern or a list, sent in order, shuffled, or each path once.

Paths of a large pattern are formatted on demand: ten million paths need only the memory of their order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from urllib.parse import quote

from cockpit.model.errors import UsageError
from cockpit.model.load.plan import PathList

# Characters of a URL that are sent unchanged; all others are percent-encoded.
PLAIN = "/?:@!$&'()*+,;=%~-._[]"

_PATHS_LIMIT = 10_000_000
# Maximum number of paths that are formatted in advance.
_PREPARED_LIMIT = 200_000
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


class Pattern:
    """A pattern of paths such as `/img/{00001..15000}.jpg`. Leading zeros set the width of the numbers. Several ranges
    give all combinations; the last range varies fastest. Raises UsageError."""

    def __init__(self, pattern: str) -> None:
        if not pattern.startswith("/"):
            raise UsageError(f"paths {pattern!r}: does not begin with /; write it as /img/{{1..100}}.jpg")
        pieces = _RANGE.split(pattern)
        self._texts = [quote(text, safe=PLAIN).encode() for text in pieces[0::3]]
        self._ranges: list[tuple[int, int, int]] = []
        for low, high in zip(pieces[1::3], pieces[2::3], strict=True):
            if int(low) > int(high):
                raise UsageError(f"paths {pattern!r}: invalid range {{{low}..{high}}}; put the smaller number first")
            padded = low.startswith("0") or high.startswith("0")
            self._ranges.append((int(low), int(high) - int(low) + 1, max(len(low), len(high)) if padded else 1))
        self.count = math.prod(size for _, size, _ in self._ranges)
        if self.count > _PATHS_LIMIT:
            raise UsageError(f"paths {pattern!r}: {self.count} paths; the maximum is {_PATHS_LIMIT}")

    def __call__(self, index: int) -> bytes:
        numbers = []
        for low, size, width in reversed(self._ranges):
            index, at = divmod(index, size)
            numbers.append(b"%0*d" % (width, low + at))
        pieces = [self._texts[0]]
        for number, text in zip(reversed(numbers), self._texts[1:], strict=True):
            pieces += (number, text)
        return b"".join(pieces)


def plain_path(path: str) -> bytes:
    """Return a path of a list as it is sent. Raises UsageError."""
    path = path.strip()
    if not path.startswith("/"):
        raise UsageError(f"paths: invalid path {path[:80]!r}; each path begins with /")
    return quote(path.partition("#")[0], safe=PLAIN).encode()


def count_of(paths: PathList) -> int:
    """Return the number of paths. Raises UsageError if there are none or too many, or if one is invalid."""
    if bool(paths.pattern) == bool(paths.listed):
        raise UsageError("paths: give either a pattern or a list of at least one path")
    if paths.pattern:
        return Pattern(paths.pattern).count
    for path in paths.listed:
        plain_path(path)
    if len(paths.listed) > _PATHS_LIMIT:
        raise UsageError(f"paths: {len(paths.listed)} paths in the list; the maximum is {_PATHS_LIMIT}")
    return len(paths.listed)


class Paths:
    """The paths of one worker in order: worker w of `workers` sends every `workers`-th path, starting with path w.

    `own` is the number of distinct paths. After the last one, `next` starts over. With the order "once" the caller
    must stop after `own` paths.
    """

    def __init__(self, paths: PathList, worker: int, workers: int) -> None:
        import numpy as np

        total = count_of(paths)
        order = np.arange(total, dtype=np.int32)
        if paths.order == "shuffle" or (paths.order == "once" and paths.seed):
            np.random.default_rng(paths.seed).shuffle(order)
        if paths.order == "once":
            indexes = order[worker::workers]
        else:
            # The sequence repeats after this number of steps: the worker sends all paths if both numbers are coprime.
            steps = total // math.gcd(total, workers)
            indexes = order[(worker + workers * np.arange(steps, dtype=np.int64)) % total]
        self.own = len(indexes)
        self._at = 0
        make: Callable[[int], bytes]
        if paths.pattern:
            make = Pattern(paths.pattern)
        else:
            listed = [plain_path(path) for path in paths.listed]
            make = listed.__getitem__
        if self.own <= _PREPARED_LIMIT:
            ready = [make(index) for index in indexes.tolist()]
            self._path: Callable[[int], bytes] = ready.__getitem__
        else:
            self._path = lambda at: make(int(indexes[at]))

    def next(self) -> bytes:
        at = self._at
        path = self._path(at)
        self._at = at + 1 if at + 1 < self.own else 0
        return path
