"""Heads of HTTP/2 responses. cockpit allows no dynamic table, so equal header blocks mean equal heads: a block seen
before is looked up by its bytes, and only an unknown one is decoded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cockpit.load.failures import Malformed
from cockpit.load.http.heads import UNTIL_CLOSE, Head, ResponseHeads
from cockpit.load.http.responses import HEAD_LIMIT
from cockpit.load.http2.frames import DATA, END_STREAM, FRAME_LIMIT, HEADER_SIZE, Http2Fault
from cockpit.load.http2.requests import CONNECTION_FIELDS

if TYPE_CHECKING:
    from hpack import Decoder

Fields = list[tuple[bytes, bytes]]
# Characters that no value has (RFC 9113 section 8.2.1).
_FORBIDDEN = re.compile(rb"[\r\n\0]")
# Size (bytes) of the dynamic table before the server knows our SETTINGS.
_FIRST_TABLE = 4096
_SWITCHING_PROTOCOLS = 101


class Http2Head(Head):
    """A parsed head. `tail`: the start of the DATA frame, up to its stream, that completes a response whose body needs
    no check; b"" if there is none. `lines`: the head as text of HTTP/1."""

    __slots__ = ("lines", "tail")

    def __init__(self, status: int, size: int, length: int, lines: bytes) -> None:
        super().__init__(status, size, length, keeps=True, reuse=True)
        self.lines = lines
        self.tail = b""


class BlockDecoder:
    """Decodes header blocks with hpack. `table`: size (bytes) of the dynamic table."""

    def __init__(self, table: int = _FIRST_TABLE) -> None:
        # Imported here: takes 15 ms, and only HTTP/2 needs it.
        from hpack import Decoder

        self._decoder: Decoder = Decoder(max_header_list_size=HEAD_LIMIT)
        self._decoder.max_allowed_table_size = table
        self._decoder.header_table_size = table

    def decode(self, block: bytes) -> Fields:
        """Raises Http2Fault for an invalid block, Malformed for one that is too large."""
        from hpack import HPACKError, OversizedHeaderListError

        try:
            return [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]
        except OversizedHeaderListError:
            raise Http2Fault("the head of a response is too large", "head_too_large") from None
        except (HPACKError, ValueError, IndexError) as error:
            raise Http2Fault(f"invalid header block: {error}", "http2_compression") from None


class Http2Heads(ResponseHeads):
    """The heads of the HTTP/2 responses to a request of the plan."""

    def __init__(self, **options: Any) -> None:
        """`options`: as of ResponseHeads."""
        super().__init__(**options)
        self._decoder: BlockDecoder | None = None

    def parse(self, raw: bytes) -> Http2Head:
        """Return the head of a block without references to a dynamic table. Raises Malformed."""
        self._decoder = self._decoder or BlockDecoder(0)
        head = self.head_of(self._decoder.decode(raw), len(raw))
        self._cache(raw, head)
        if head.total >= 0 and not self._private and 0 < head.length <= FRAME_LIMIT:
            head.total += HEADER_SIZE
            head.tail = head.length.to_bytes(3, "big") + bytes((DATA, END_STREAM))
        return head

    def head_of(self, fields: Fields, size: int) -> Http2Head:
        """Return the head with these fields, of a block of `size` bytes. Raises Malformed."""
        status, lengths, location = b"", set(), b""
        regular = False
        lines = []
        for name, value in fields:
            if name == b":status":
                if status or regular:
                    raise Malformed("invalid_head", "misplaced :status in the head of the response")
                status = value
                continue
            regular = True
            if (
                name[:1] == b":"
                or name != name.lower()
                or _FORBIDDEN.search(value)
                or name.decode("latin-1") in CONNECTION_FIELDS
            ):
                raise Malformed("invalid_head", f"invalid header {name!r} in the head of the response")
            if name == b"content-length":
                lengths.add(value)
            elif name == b"location":
                location = value
            lines.append(b"%b: %b\r\n" % (name, value))
        if not (len(status) == 3 and status.isdigit() and status >= b"100"):
            raise Malformed("invalid_head", "no valid :status in the head of the response")
        if int(status) == _SWITCHING_PROTOCOLS:
            raise Malformed("protocol_switch", "the server switches to another protocol (101), which HTTP/2 forbids")
        self._note_redirect(int(status), location)
        length = self._length(lengths, int(status))
        return Http2Head(int(status), HEADER_SIZE + size, length, b"HTTP/2 %b\r\n%b\r\n" % (status, b"".join(lines)))

    def _length(self, lengths: set[bytes], status: int) -> int:
        if self._has_no_body(status):
            return 0
        if not lengths:
            return UNTIL_CLOSE
        length = lengths.pop()
        if lengths or not length.isdigit() or len(length) > 18:
            raise Malformed("ambiguous_length", "different or invalid values of content-length")
        return int(length)
