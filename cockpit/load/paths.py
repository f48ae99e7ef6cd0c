"""Many paths instead of one: a pattern or a list, in order, shuffled, or each once.

A pattern's paths are made on demand, so that ten million of them take no more memory than their order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from urllib.parse import quote

import numpy as np

from cockpit.model.errors import UsageError
from cockpit.model.load import PathList

# Characters of a URL that go out as they are; everything else is percent-encoded.
PLAIN = "/?:@!$&'()*+,;=%~-._[]"

_MOST = 10_000_000
# Maximum number of paths that are made in advance.
_PREPARED = 200_000
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


class Pattern:
    """`/img/{00001..15000}.jpg`: numbers keep their width; several ranges give every combination, the last one
    running fastest. Raises UsageError."""

    def __init__(self, pattern: str) -> None:
        if not pattern.startswith("/"):
            raise UsageError(f"paths {pattern!r}: a path begins with /, as in /img/{{1..100}}.jpg")
        pieces = _RANGE.split(pattern)
        self._texts = [quote(text, safe=PLAIN).encode() for text in pieces[0::3]]
        self._ranges: list[tuple[int, int, int]] = []
        for low, high in zip(pieces[1::3], pieces[2::3], strict=True):
            if int(low) > int(high):
                raise UsageError(f"paths {pattern!r}: {{{low}..{high}}} ends before it begins")
            padded = low.startswith("0") or high.startswith("0")
            self._ranges.append((int(low), int(high) - int(low) + 1, max(len(low), len(high)) if padded else 1))
        self.count = math.prod(size for _, size, _ in self._ranges)
        if self.count > _MOST:
            raise UsageError(f"paths {pattern!r}: gives {self.count} paths; {_MOST} is the most")

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
    """A path of a list as it goes over the wire. Raises UsageError."""
    path = path.strip()
    if not path.startswith("/"):
        raise UsageError(f"paths: {path[:80]!r} is not a path; each begins with /")
    return quote(path.partition("#")[0], safe=PLAIN).encode()


def count_of(paths: PathList) -> int:
    """How many paths there are. Raises UsageError when there are none, too many, or one is not a path."""
    if bool(paths.pattern) == bool(paths.listed):
        raise UsageError("paths: give either a pattern or a list, with one path at least")
    if paths.pattern:
        return Pattern(paths.pattern).count
    for path in paths.listed:
        plain_path(path)
    if len(paths.listed) > _MOST:
        raise UsageError(f"paths: the list has {len(paths.listed)}; {_MOST} is the most")
    return len(paths.listed)


class Paths:
    """One worker's paths, in its order: of `workers`, worker w takes every `workers`-th from the w-th on.

    `next` gives them one after the other. A list that is taken once is over after `own` of them, which is for the
    caller to count; the others go round.
    """

    def __init__(self, paths: PathList, worker: int, workers: int) -> None:
        total = count_of(paths)
        order = np.arange(total, dtype=np.int32)
        if paths.order == "shuffle" or (paths.order == "once" and paths.seed):
            np.random.default_rng(paths.seed).shuffle(order)
        if paths.order == "once":
            mine = order[worker::workers]
        else:
            # Over several rounds, a worker takes all of them if the number of workers does not divide theirs.
            steps = total // math.gcd(total, workers)
            mine = order[(worker + workers * np.arange(steps, dtype=np.int64)) % total]
        self.own = len(mine)
        self._at = 0
        make: Callable[[int], bytes]
        if paths.pattern:
            make = Pattern(paths.pattern)
        else:
            listed = [plain_path(path) for path in paths.listed]
            make = listed.__getitem__
        if self.own <= _PREPARED:
            ready = [make(index) for index in mine.tolist()]
            self._path: Callable[[int], bytes] = ready.__getitem__
        else:
            self._path = lambda at: make(int(mine[at]))

    def next(self) -> bytes:
        at = self._at
        path = self._path(at)
        self._at = at + 1 if at + 1 < self.own else 0
        return path
