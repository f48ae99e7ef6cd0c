"""Check responses against the expectation. Bodies are checked as they arrive, and not kept as a whole."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

from cockpit.model.load.plan import Expect

# Bytes of a body kept for `matches`: the pattern may need any of them.
MATCH_LIMIT = 256 * 1024


class Expectation:
    """A compiled Expect. A response that differs in several ways counts once, as the first of these kinds: status,
    length, contains, too_large, matches, digest."""

    def __init__(self, expect: Expect | None, keep: int = 0) -> None:
        """`keep`: bytes of the start of each body to keep."""
        expect = expect or Expect()
        self._keep = keep
        self._statuses = frozenset(expect.statuses)
        self._length = expect.length
        self._contains = None if expect.contains is None else expect.contains.encode()
        self._digest = (expect.sha256 or "").lower()
        self._pattern = None if expect.matches is None else re.compile(expect.matches.encode())
        self.needs_body = self._contains is not None or self._pattern is not None or bool(self._digest or keep)

    def allows(self, status: int) -> bool:
        return status in self._statuses

    def of_head(self, status: int, length: int) -> str:
        """Return the first kind that differs for this status and length of body; "" if none."""
        if self._statuses and status not in self._statuses:
            return "status"
        if self._length is not None and length != self._length:
            return "length"
        return ""

    def of_response(self, status: int, length: int, body: Body | None) -> str:
        """Like `of_head`, with the body if there is one."""
        return self.of_head(status, length) or (body.verdict() if body is not None else "")

    def body(self) -> Body | None:
        """Return an empty Body for the next response; None if bodies are not checked."""
        if not self.needs_body:
            return None
        return Body(self._contains, self._pattern, self._digest, self._keep)


@dataclass(slots=True)
class Body:
    """Incremental check of a body. Keeps only its hash, the end of the last piece, at most MATCH_LIMIT bytes for the
    pattern, and the `start` of at most `keep` bytes."""

    contains: bytes | None
    pattern: re.Pattern[bytes] | None
    digest: str
    keep: int
    start: bytearray = field(default_factory=bytearray)
    _contained: bool = False
    _tail: bytes = b""
    _matched: bytearray = field(default_factory=bytearray)
    _too_large: bool = False
    _hash: Any = None

    def __post_init__(self) -> None:
        self._contained = not self.contains
        self._hash = hashlib.sha256() if self.digest else None

    def add(self, piece: bytes | memoryview) -> None:
        if len(self.start) < self.keep:
            self.start += piece[: self.keep - len(self.start)]
        if self._hash is not None:
            self._hash.update(piece)
        if self.contains and not self._contained:
            window = self._tail + piece
            self._contained = self.contains in window
            self._tail = window[max(0, len(window) - len(self.contains) + 1) :]
        if self.pattern is not None and not self._too_large:
            self._too_large = len(self._matched) + len(piece) > MATCH_LIMIT
            if self._too_large:
                self._matched.clear()
            else:
                self._matched += piece

    def verdict(self) -> str:
        """Return the first kind that differs in the complete body; "" if none."""
        if not self._contained:
            return "contains"
        if self._too_large:
            return "too_large"
        if self.pattern is not None and not self.pattern.search(self._matched):
            return "matches"
        if self._hash is not None and self._hash.hexdigest() != self.digest:
            return "digest"
        return ""
