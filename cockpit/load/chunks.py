"""The end of a chunked body, found by llhttp."""

from __future__ import annotations

import httptools

from cockpit.load.expect import Body
from cockpit.load.failures import Malformed


class _Message:
    """Callbacks of llhttp. The parser refers to them and not vice versa: garbage collection is off in a worker, so a
    cycle would stay in memory."""

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
    """Finds the end of one chunked response after another."""

    __slots__ = ("_message", "_parser")

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
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
        """Whether bytes came after the end."""
        return self._message.excess

    def begin(self, head: bytes, body: Body | None) -> None:
        """Start a response with this head, which has been parsed before; its body goes to `body`."""
        message = self._message
        message.ended = message.excess = False
        message.size = 0
        message.body = body
        try:
            self._parser.feed_data(head)
        except httptools.HttpParserError:
            # The parser expects nothing after the last response: that one came over another connection.
            self._renew()
            self._message.body = body
            self._parser.feed_data(head)

    def feed(self, data: bytes | memoryview) -> bool:
        """Take the next piece; whether the response ends with it. Raises Malformed."""
        message = self._message
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not message.ended:
                raise Malformed(str(error)) from None
            message.excess = True
        return message.ended
