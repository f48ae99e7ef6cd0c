"""Find the end of a response: llhttp parses the head, which frames the body. HTTP/1.1, RFC 9112 section 6.

Servers repeat the same head, except for the second in `Date`. A head with the same bytes as a parsed one is looked up
in a cache: this makes Python as cheap per request as a program in C. A head that differs from the last one only in
values that do not affect framing is compared line by line instead of parsed.
"""

from __future__ import annotations

import re

import httptools

from cockpit.load.failures import Malformed
from cockpit.load.http.chunks import Chunks
from cockpit.load.http.heads import CHUNKED, UNTIL_CLOSE, Head, ResponseHeads

# Maximum length of a head (bytes).
HEAD_LIMIT = 128 * 1024

# Start of every response; empty lines before it are ignored.
_START = b"HTTP/1."

SWITCHING_PROTOCOLS = 101
_SWITCH = "the server switches to another protocol (101) without a request for it"
_INVALID = "invalid head of the response"
# llhttp: "Transfer-Encoding can't be present with Content-Length", or the other way round.
_WITH_BOTH = ("present with Content-Length", "present with Transfer-Encoding")
_TOO_LARGE = f"the head of the response is larger than {HEAD_LIMIT // 1024} KiB"
# Fields (except Content-Length) that affect framing or keep-alive.
_FRAMING = frozenset({b"transfer-encoding", b"connection", b"proxy-connection", b"upgrade"})
_LENGTH_LINE = re.compile(rb"(?im)^content-length:([^\r\n]*)\r\n")
# Allowed characters of a field's value (RFC 9110 section 5.5), and the maximum length of a number.
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
# An empty line. Lines may end in LF alone (RFC 9112 section 2.2).
_HEAD_END = re.compile(rb"\n\r?\n")
_LINE_END = re.compile(rb"\r?\n")
# A header continued in the next line, equivalent to a space (RFC 9112 section 5.2).
_FOLD = re.compile(rb"(?<![ \t])[ \t]*\r\n[ \t]+")
_DIGITS = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]*")


class _Fields:
    """Collects from llhttp the few fields that frame a response."""

    def __init__(self) -> None:
        self.complete = False
        self.length: int | None = None
        self.encoding = b""
        self.connection = b""
        self.location = b""

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.lower()
        if key == b"content-length":
            self.length = int(value)
        elif key == b"transfer-encoding":
            self.encoding += b"," + value.lower()
        elif key == b"connection":
            self.connection += b"," + value.lower()
        elif key == b"location":
            self.location = value

    def on_headers_complete(self) -> None:
        self.complete = True


class HeadCache(ResponseHeads):
    """The heads of HTTP/1 responses."""

    _last: tuple[list[bytes], _Fields, Head] | None = None

    def like_last(self, raw: bytes) -> Head | None:
        """Return the head in `raw` if its framing follows from the last parsed head; None: parse it."""
        if self._last is None:
            return None
        last_lines, fields, last = self._last
        lines = raw.split(b"\r\n")
        if len(lines) != len(last_lines) or lines[0] != last_lines[0]:
            return None
        length = last.length
        for line, last_line in zip(lines, last_lines, strict=True):
            if line == last_line:
                continue
            name, colon, value = line.partition(b":")
            if name[:1] in (b" ", b"\t"):
                return None
            key = name.lower()
            if not last_line.startswith(name + b":") or key in _FRAMING or not (colon and _VALUE.fullmatch(value)):
                return None
            if key == b"content-length":
                digits = _DIGITS.fullmatch(value)
                if digits is None:
                    return None
                fields.length = int(digits[1])
                length = self._length(fields, last.status)
        head = Head(last.status, len(raw), length, last.keeps, last.reuse)
        self._cache(raw, head)
        return head

    def parse(self, raw: bytes) -> Head:
        """Return the head in `raw`, which includes the empty line at its end. Raises Malformed."""
        if b"HTTP/1." not in raw[:16]:
            raise Malformed
        fields = _Fields()
        parser = httptools.HttpResponseParser(fields)
        normalized = _with_one_length(_normalized(raw))
        try:
            parser.feed_data(normalized)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if parser.get_status_code() == SWITCHING_PROTOCOLS:
                raise Malformed("protocol_switch", _SWITCH) from None
            has_both = str(error).endswith(_WITH_BOTH)
            raise Malformed("ambiguous_length" if has_both else "invalid_head", f"{_INVALID}: {error}") from None
        if not fields.complete:
            raise Malformed
        status = parser.get_status_code()
        if status == SWITCHING_PROTOCOLS:
            raise Malformed("protocol_switch", _SWITCH)
        keeps = self._is_kept_open(fields, minor=raw[raw.find(b"HTTP/1.") + 7 :][:1])
        length = self._length(fields, status)
        head = Head(status, len(raw), length, keeps, keeps and self._keepalive and length != UNTIL_CLOSE)
        self._last = (normalized.split(b"\r\n"), fields, head)
        self._cache(raw, head)
        self._note_redirect(status, fields.location)
        return head

    def _length(self, fields: _Fields, status: int) -> int:
        if self._has_no_body(status):
            return 0
        if fields.encoding:
            return CHUNKED if _tokens(fields.encoding)[-1] == b"chunked" else UNTIL_CLOSE
        return UNTIL_CLOSE if fields.length is None else fields.length

    @staticmethod
    def _is_kept_open(fields: _Fields, minor: bytes) -> bool:
        options = _tokens(fields.connection)
        if b"close" in options:
            return False
        return minor != b"0" or b"keep-alive" in options


def _normalized(head: bytes) -> bytes:
    """Normalize a head: each line ends with CR LF, and folded lines are joined."""
    if head.count(b"\n") != head.count(b"\r\n"):
        head = _LINE_END.sub(b"\r\n", head)
    return _FOLD.sub(b" ", head) if b"\r\n " in head or b"\r\n\t" in head else head


def _with_one_length(head: bytes) -> bytes:
    """Join repeated fields Content-Length of one value (RFC 9110 section 8.6). Raises Malformed if they differ."""
    lengths = [length for line in _LENGTH_LINE.findall(head) for length in _tokens(line)]
    if len(lengths) < 2:
        return head
    if len(set(lengths)) > 1:
        values = b" and ".join(lengths[:3]).decode("latin-1")
        raise Malformed("ambiguous_length", f"the response has different values of Content-Length: {values}")
    return _LENGTH_LINE.sub(b"", head)[: -len(b"\r\n")] + b"Content-Length: %b\r\n\r\n" % lengths[0]


def _tokens(value: bytes) -> list[bytes]:
    return [token.strip() for token in value.split(b",")]


class ResponseReader:
    """Incremental parser that finds the end of each response.

    `head` is None until the head is complete; `lines` are its bytes. `size` is the number of bytes of the body so far.
    `excess`: there were unexpected bytes after the end.
    """

    __slots__ = ("_body", "_chunks", "_heads", "_left", "_partial", "_read", "excess", "head", "lines")

    def __init__(self, heads: ResponseHeads) -> None:
        self._chunks: Chunks | None = None
        self.take_up(heads)

    def take_up(self, heads: ResponseHeads) -> None:
        self._heads = heads
        self._chunks = None
        self.reset()

    def reset(self) -> None:
        self.head: Head | None = None
        self.excess = False
        self._partial = b""
        self._left = self._read = 0
        self._body = self._heads.expectation.body()
        if self._chunks is not None and (self._chunks.excess or not self._chunks.ended):
            # The parser is in the middle of a response, and cannot be reused.
            self._chunks = None

    @property
    def size(self) -> int:
        head = self.head
        if head is None:
            return 0
        if head.length >= 0:
            return head.length - max(self._left, 0)
        if head.length == CHUNKED:
            return self._chunks.size if self._chunks is not None else 0
        return self._read

    def verdict(self) -> str:
        """Return the first kind that differs in the complete response; "" if none."""
        assert self.head is not None
        return self._heads.expectation.of_response(self.head.status, self.size, self._body)

    @property
    def start(self) -> bytes:
        """The start of the body, up to the number of bytes that the expectation keeps."""
        return bytes(self._body.start) if self._body is not None else b""

    def feed(self, data: bytes | memoryview) -> bool:
        """Parse the next piece; return whether the response is complete. Raises Malformed."""
        head = self.head
        if head is None:
            return self._feed_head(self._partial + data)
        if head.length >= 0:
            if self._body is not None and self._left > 0:
                self._body.add(data[: self._left])
            self._left -= len(data)
            self.excess = self._left < 0
            return self._left <= 0
        if head.length == UNTIL_CLOSE or self._chunks is None:
            self._read += len(data)
            if self._body is not None:
                self._body.add(data)
            return False
        ended = self._chunks.feed(data)
        self.excess = self._chunks.excess
        return ended

    def _feed_head(self, raw: bytes) -> bool:
        start = 0
        while True:
            empty = _HEAD_END.search(raw, start)
            if empty is None:
                if len(raw) - start > HEAD_LIMIT:
                    raise Malformed("head_too_large", _TOO_LARGE)
                begun = raw[start : start + 16].lstrip(b"\r\n")[: len(_START)]
                if not _START.startswith(begun):
                    raise Malformed
                self._partial = raw[start:]
                return False
            end = empty.end()
            if end - start > HEAD_LIMIT:
                raise Malformed("head_too_large", _TOO_LARGE)
            lines = raw[start:end]
            head = self._heads.known(lines) or self._heads.like_last(lines) or self._heads.parse(lines)
            if head.status >= 200:
                break
            start = end
        self.head = head
        self.lines = lines
        self._partial = b""
        self._left = head.length
        if head.length == CHUNKED:
            self._chunks = self._chunks or Chunks()
            self._chunks.begin(_normalized(lines), self._body)
        return self.feed(raw[end:])

    def closed(self) -> bool:
        """Return whether the response is complete when the server closes the connection."""
        return self.head is not None and self.head.length == UNTIL_CLOSE
