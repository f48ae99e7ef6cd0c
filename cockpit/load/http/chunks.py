"""The end of a chunked body, found by llhttp."""

from __future__ import annotations

import httptools

from cockpit.load.failures import Malformed
from cockpit.load.http.expect import Body


class _Message:
    """Callbacks of llhttp. They hold no reference to the parser: garbage collection is off in a worker, so a reference
    cycle would never be freed."""

    __slots__ = ("body", "ended", "excess", "size")

    def __init__(self) -> None:
        self.body: Body | None = None
        self.size = 0
        self.ended = self.excess = False

    def on_message_begin(self) -> None:
        self.excess = self.ended

    def on_message_complete(self) -> None:
        self.ended = True

    def on_body(self, piece: bytes) -> None:
        if self.ended:
            return
        self.size += len(piece)
        if self.body is not None:
            self.body.add(piece)


class Chunks:
    """Finds the ends of consecutive chunked responses."""

    __slots__ = ("_message", "_parser")

    def __init__(self) -> None:
        self._new_parser()

    def _new_parser(self) -> None:
        self._message = _Message()
        self._parser = httptools.HttpResponseParser(self._message)

    @property
    def size(self) -> int:
        return self._message.size

    @property
    def ended(self) -> bool:
        return self._message.ended

    @property
    def excess(self) -> bool:
        """Whether there were bytes after the end."""
        return self._message.excess

    def begin(self, head: bytes, body: Body | None) -> None:
        """Start a response with a head that was parsed before. `body` is updated with the body; None: no check."""
        message = self._message
        message.ended = message.excess = False
        message.size = 0
        message.body = body
        try:
            self._parser.feed_data(head)
        except httptools.HttpParserError:
            # After `Connection: close` the parser refuses further data, but this is a new connection.
            self._new_parser()
            self._message.body = body
            self._parser.feed_data(head)

    def feed(self, data: bytes | memoryview) -> bool:
        """Parse the next piece; return whether the response is complete. Raises Malformed."""
        message = self._message
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not message.ended:
                raise Malformed("invalid_chunks", f"invalid chunked body: {error}") from None
            message.excess = True
        return message.ended
