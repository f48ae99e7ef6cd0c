"""Parsed heads of HTTP/1 and HTTP/2 responses: a cache by their bytes, and the counts of responses with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

from cockpit.load.http.expect import Expectation
from cockpit.load.paths import PLAIN
from cockpit.model.load.plan import is_redirect

# Special values of a length.
CHUNKED = -1
UNTIL_CLOSE = -2

# Maximum length of a stored Location, and its characters that are not percent-encoded.
_LOCATION_LIMIT = 2000
_URL = f"{PLAIN}#"
# Maximum number of cached heads, and maximum length of a cached head (bytes).
_CACHED_HEADS = 128
_CACHED_HEAD_LIMIT = 4096


class Head:
    """A parsed head. `length` is the length of the body, or CHUNKED or UNTIL_CLOSE.

    `keeps`: the server keeps the connection open. `reuse`: both the server and the plan keep it open. `total` is the
    size of head and body, -1 if it is unknown or the body must be checked. `hits` is the number of responses with
    this head that arrived in one piece and are not collected yet; each counts with this `length_differs` and
    `verdict`.
    """

    __slots__ = ("hits", "keeps", "length", "length_differs", "reuse", "size", "status", "total", "verdict")

    def __init__(self, status: int, size: int, length: int, keeps: bool, reuse: bool) -> None:
        self.status = status
        self.size = size
        self.length = length
        self.keeps = keeps
        self.reuse = reuse
        self.total = size + length if length >= 0 and status >= 200 else -1
        self.hits = 0
        self.length_differs = False
        self.verdict = ""


class ResponseCounts(NamedTuple):
    """Complete responses: counts by status, bytes received, bytes of bodies, number of bodies whose length differs from
    the first (`length_mismatches`), and counts of unexpected responses by kind."""

    statuses: dict[int, int]
    received: int
    body: int
    length_mismatches: int
    unexpected: dict[str, int]


class ResponseHeads:
    """Cache of parsed heads by their bytes. `known(bytes)` returns the Head or None."""

    def __init__(
        self,
        *,
        bodiless: bool,
        keepalive: bool,
        expectation: Expectation | None = None,
        one_length: bool = True,
        private: bool = False,
    ) -> None:
        """`bodiless`: responses have no body, regardless of the head (HEAD). `keepalive`: the plan reuses connections.

        `one_length`: all requests are for the same resource, so a body whose length differs from the first is counted
        as a mismatch. `private`: a Location may contain values of a user, and is not stored.
        """
        self._bodiless = bodiless
        self._keepalive = keepalive
        self.expectation = expectation or Expectation(None)
        self._one_length = one_length
        self._private = private
        self._first_length: int | None = None
        self._heads: dict[bytes, Any] = {}
        # Location of the first unexpected redirect.
        self.location = ""
        self._clear()
        self.known: Callable[[bytes], Any] = self._heads.get

    def like_last(self, raw: bytes) -> Head | None:
        """Return the head in `raw` if its framing follows from the last parsed head; None: parse it."""
        return None

    def parse(self, raw: bytes) -> Head:
        """Return the head in `raw`. Raises Malformed."""
        raise NotImplementedError

    def length_differs(self, length: int) -> bool:
        """Return whether the length of a body differs from that of the first body."""
        if self._first_length is None and self._one_length:
            self._first_length = length
        return self._one_length and length != self._first_length

    def _cache(self, raw: bytes, head: Head) -> None:
        if head.total >= 0:
            head.length_differs = self.length_differs(head.length)
            head.verdict = self.expectation.of_head(head.status, head.length)
        if self.expectation.needs_body and not head.verdict:
            head.total = -1
        if len(raw) > _CACHED_HEAD_LIMIT:
            head.total = -1
            return
        if len(self._heads) >= _CACHED_HEADS:
            self._collect()
            self._heads.clear()
        self._heads[raw] = head

    def _note_redirect(self, status: int, location: bytes) -> None:
        """Keep the Location of the first unexpected redirect."""
        is_new_redirect = is_redirect(status) and not self.location and not self._private
        if is_new_redirect and not self.expectation.allows(status):
            self.location = quote(location[:_LOCATION_LIMIT], safe=_URL)

    def _has_no_body(self, status: int) -> bool:
        return self._bodiless or status < 200 or status in (204, 304)

    def _clear(self) -> None:
        self._statuses: dict[int, int] = {}
        self._unexpected: dict[str, int] = {}
        self._received = self._body = self._length_mismatches = 0

    def _collect(self) -> None:
        for head in self._heads.values():
            hits = head.hits
            if not hits:
                continue
            self._statuses[head.status] = self._statuses.get(head.status, 0) + hits
            self._received += hits * head.total
            self._body += hits * head.length
            self._length_mismatches += hits * head.length_differs
            if head.verdict:
                self._unexpected[head.verdict] = self._unexpected.get(head.verdict, 0) + hits
            head.hits = 0

    def harvest(self) -> ResponseCounts:
        """Return the counts since the last call, and reset them."""
        self._collect()
        harvest = ResponseCounts(self._statuses, self._received, self._body, self._length_mismatches, self._unexpected)
        self._clear()
        return harvest
