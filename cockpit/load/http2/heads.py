"""Heads of HTTP/2 responses. cockpit allows no dynamic table, so equal header blocks mean equal heads: a block seen
before is looked up by its bytes, and only an unknown one is decoded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from cockpit.load.failures import Malformed
from cockpit.load.http.heads import UNTIL_CLOSE, Head, ResponseHeads
from cockpit.load.http.responses import HEAD_LIMIT, SWITCHING_PROTOCOLS
from cockpit.load.http2.frames import DATA, END_STREAM, FRAME_LIMIT, HEADER_SIZE, Http2Fault, head_too_large
from cockpit.load.http2.requests import CONNECTION_FIELDS

if TYPE_CHECKING:
    from hpack import Decoder

# Names in lower case; characters that no value has (RFC 9113 section 8.2.1).
_NAME = re.compile(rb"[^:A-Z\r\n\0][^A-Z\r\n\0]*")
_FORBIDDEN = re.compile(rb"[\r\n\0]")
# Size (bytes) of the dynamic table before the server knows our SETTINGS.
_FIRST_TABLE = 4096
# Fields whose values matter; maximum number of cached fields, and maximum length of a cached field (bytes).
_NEEDED = frozenset({b":status", b"content-length", b"location"})
_CACHED_FIELDS = 512
_CACHED_FIELD_LIMIT = 1024
# Maximum number of bytes of an integer after its first.
_INTEGER_LIMIT = 4


class HeaderField(NamedTuple):
    """A valid field of a head; `line`: as HTTP/1 has it."""

    name: bytes
    value: bytes
    line: bytes


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

    def decode(self, block: bytes) -> list[HeaderField]:
        """Raises Http2Fault for an invalid block, Malformed for an invalid field."""
        from hpack import HPACKError, OversizedHeaderListError

        try:
            decoded = self._decoder.decode(block, raw=True)
        except OversizedHeaderListError:
            raise head_too_large() from None
        except (HPACKError, ValueError, IndexError) as error:
            raise Http2Fault(f"invalid header block: {error}", "http2_compression") from None
        return [_checked(bytes(name), bytes(value)) for name, value in decoded]


class FieldCache:
    """Decodes header blocks without a dynamic table, whose fields are independent of each other. A field is looked up
    by its bytes; by those of its name if nothing depends on its value, which may then be that of an earlier block."""

    def __init__(self, *, every_value: bool) -> None:
        """`every_value`: the values of all fields are needed."""
        self._decoder = BlockDecoder(0)
        self._every_value = every_value
        self._known: dict[bytes, list[HeaderField]] = {}

    def decode(self, block: bytes) -> list[HeaderField]:
        """Raises Http2Fault for an invalid block, Malformed for an invalid field."""
        fields: list[HeaderField] = []
        known = self._known
        for name, encoded in _split(block):
            fields += known.get(name) or known.get(encoded) or self._decode_field(name, encoded)
        return fields

    def _decode_field(self, name: bytes, encoded: bytes) -> list[HeaderField]:
        decoded = self._decoder.decode(encoded)
        if len(self._known) >= _CACHED_FIELDS:
            self._known.clear()
        if len(encoded) <= _CACHED_FIELD_LIMIT:
            needed = self._every_value or any(field.name in _NEEDED for field in decoded)
            self._known[encoded if needed else name] = decoded
        return decoded


def _checked(name: bytes, value: bytes) -> HeaderField:
    """Return a field. Raises Malformed."""
    valid = name == b":status" or (_NAME.fullmatch(name) and name.decode("latin-1") not in CONNECTION_FIELDS)
    if not valid or _FORBIDDEN.search(value):
        raise Malformed("invalid_head", f"invalid header {name!r} in the head of the response")
    return HeaderField(name, value, b"%b: %b\r\n" % (name, value))


def _split(block: bytes) -> list[tuple[bytes, bytes]]:
    """Return each encoded field of a block, after its name or index (RFC 7541 section 6). Raises Http2Fault."""
    fields = []
    start, size = 0, len(block)
    try:
        while start < size:
            first = block[start]
            if first & 0xE0 == 0x20 or first >= 0x80:
                # A size of the dynamic table, or an index of a whole field.
                _, end = _integer(block, start, 0x7F if first >= 0x80 else 0x1F)
                middle = end
            else:
                index, middle = _integer(block, start, 0x3F if first >= 0x40 else 0x0F)
                if not index:
                    length, middle = _integer(block, middle, 0x7F)
                    middle += length
                length, end = _integer(block, middle, 0x7F)
                end += length
                if end > size:
                    raise IndexError
            fields.append((block[start:middle], block[start:end]))
            start = end
    except IndexError:
        raise Http2Fault("invalid header block: it ends within a field", "http2_compression") from None
    return fields


def _integer(block: bytes, at: int, prefix: int) -> tuple[int, int]:
    """Return an integer whose first byte has the bits `prefix` of it (RFC 7541 section 5.1), and its end. Raises
    IndexError, Http2Fault."""
    value = block[at] & prefix
    at += 1
    if value < prefix:
        return value, at
    for number in range(_INTEGER_LIMIT):
        byte = block[at + number]
        value += (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return value, at + number + 1
    raise Http2Fault("invalid header block: an integer is too large", "http2_compression")


class Http2Heads(ResponseHeads):
    """The heads of the HTTP/2 responses to a request of the plan."""

    def __init__(self, **options: Any) -> None:
        """`options`: as of ResponseHeads."""
        super().__init__(**options)
        self._fields: FieldCache | None = None

    def learn(self, raw: bytes) -> Http2Head | None:
        """Return the head of a block; None if it is invalid."""
        try:
            return self.parse(raw)
        except Malformed:
            return None

    def parse(self, raw: bytes) -> Http2Head:
        """Return the head of a block without references to a dynamic table. Raises Malformed."""
        self._fields = self._fields or FieldCache(every_value=self._private)
        head = self.head_of(self._fields.decode(raw), len(raw))
        self._cache(raw, head)
        if self._private:
            # Its user needs the head and the start of the body of each response.
            head.total = -1
        elif head.total >= 0 and 0 < head.length <= FRAME_LIMIT:
            head.total += HEADER_SIZE
            head.tail = head.length.to_bytes(3, "big") + bytes((DATA, END_STREAM))
        return head

    def head_of(self, fields: list[HeaderField], size: int) -> Http2Head:
        """Return the head with these fields, of a block of `size` bytes. Raises Malformed."""
        status, lengths, location = b"", set(), b""
        lines: list[bytes] = []
        for name, value, line in fields:
            if name == b":status":
                if status or lines:
                    raise Malformed("invalid_head", "misplaced :status in the head of the response")
                status = value
                continue
            if name == b"content-length":
                lengths.add(value)
            elif name == b"location":
                location = value
            lines.append(line)
        if not (len(status) == 3 and status.isdigit() and status >= b"100"):
            raise Malformed("invalid_head", "no valid :status in the head of the response")
        if int(status) == SWITCHING_PROTOCOLS:
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
