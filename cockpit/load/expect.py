"""Whether a whole reply is what was expected."""

from __future__ import annotations

import hashlib
import re

from cockpit.model.errors import UsageError
from cockpit.model.load import Expect

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


class Expectation:
    """A plan's Expect, made ready. A reply is unexpected in one way: the first of status, length, contains, matches,
    digest. Raises UsageError for an expectation that no reply could meet."""

    def __init__(self, expect: Expect | None) -> None:
        expect = expect or Expect()
        self._statuses = frozenset(expect.statuses)
        self._length = expect.length
        self._contains = None if expect.contains is None else expect.contains.encode()
        self._digest = (expect.sha256 or "").lower()
        self._pattern = None
        if expect.matches is not None:
            try:
                self._pattern = re.compile(expect.matches.encode())
            except re.error as error:
                raise UsageError(f"expect matches {expect.matches!r}: not a regular expression: {error}") from None
        if self._digest and not _SHA256.fullmatch(self._digest):
            raise UsageError(f"expect sha256 {expect.sha256!r}: not a SHA-256 digest, which has 64 hexadecimal digits")
        wrong = [status for status in self._statuses if not 200 <= status <= 999]
        if wrong:
            raise UsageError(f"expect status {wrong[0]}: not the status of a whole reply, as 200 or 404 are")
        self.needs_body = self._contains is not None or self._pattern is not None or bool(self._digest)

    def allows(self, status: int) -> bool:
        """Whether this status is one of those asked for by number."""
        return status in self._statuses

    def of_head(self, status: int, length: int) -> str:
        """What is unexpected about a reply with this status and length of body; empty when nothing is."""
        if self._statuses and status not in self._statuses:
            return "status"
        if self._length is not None and length != self._length:
            return "length"
        return ""

    def of_reply(self, status: int, length: int, body: bytes) -> str:
        """As `of_head`, with the body, which is empty where `needs_body` is not set."""
        verdict = self.of_head(status, length)
        if verdict or not self.needs_body:
            return verdict
        if self._contains is not None and self._contains not in body:
            return "contains"
        if self._pattern is not None and not self._pattern.search(body):
            return "matches"
        if self._digest and hashlib.sha256(body).hexdigest() != self._digest:
            return "digest"
        return ""
