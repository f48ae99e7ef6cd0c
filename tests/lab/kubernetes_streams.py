"""The streams of `kubectl exec` for its server: over a WebSocket (v5.channel.k8s.io) and over SPDY/3.1 (v4)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import struct
import zlib
from collections.abc import AsyncIterator

STDIN, STDOUT, STDERR, ERROR = 0, 1, 2, 3
_NAMES = {b"stdin": STDIN, b"stdout": STDOUT, b"stderr": STDERR, b"error": ERROR}
_CLOSE_CHANNEL = 255
_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10


def accept_key(key: str) -> str:
    """Return the value of Sec-WebSocket-Accept (RFC 6455)."""
    digest = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
    return base64.b64encode(digest).decode()


def status_of(exit_status: int) -> bytes:
    """Return the message on the channel of errors."""
    if exit_status == 0:
        return json.dumps({"metadata": {}, "status": "Success"}).encode()
    causes = [{"reason": "ExitCode", "message": str(exit_status)}]
    message = f"command terminated with non-zero exit code: exit status {exit_status}"
    failure = {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": message}
    return json.dumps(failure | {"details": {"causes": causes}}).encode()


class WebSocketStreams:
    """Messages whose first byte is the channel; 255 and a channel close it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def input(self) -> AsyncIterator[bytes]:
        """Yield the data of standard input, b"" at its end."""
        message = b""
        while frame := await self._frame():
            kind, last, data = frame
            if kind == _PING:
                await self._write(_PONG, data)
            elif kind == _CLOSE:
                return
            elif kind != _PONG:
                message += data
                if last:
                    if message[0] == STDIN and message[1:]:
                        yield message[1:]
                    elif message == bytes((_CLOSE_CHANNEL, STDIN)):
                        yield b""
                    message = b""

    async def send(self, channel: int, data: bytes) -> None:
        await self._write(_BINARY, bytes((channel,)) + data)

    async def finish(self, exit_status: int) -> None:
        await self.send(ERROR, status_of(exit_status))
        await self._write(_CLOSE, struct.pack(">H", 1000))

    async def _frame(self) -> tuple[int, bool, bytes] | None:
        try:
            first, second = await self._reader.readexactly(2)
            size = second & 127
            if size > 125:
                length = 2 if size == 126 else 8
                size = int.from_bytes(await self._reader.readexactly(length))
            mask = await self._reader.readexactly(4)
            data = await self._reader.readexactly(size)
        except asyncio.IncompleteReadError:
            return None
        repeated = (mask * (size // 4 + 1))[:size]
        unmasked = (int.from_bytes(data) ^ int.from_bytes(repeated)).to_bytes(size)
        return first & 15, bool(first & 128), unmasked

    async def _write(self, kind: int, data: bytes) -> None:
        size = struct.pack(">BH", 126, len(data)) if len(data) > 125 else bytes((len(data),))
        self._writer.write(bytes((128 | kind,)) + size + data)
        await self._writer.drain()


# SPDY/3.1, section 2.6.10.1: words that compress its headers.
_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
)
_LAST_WORDS = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_REST = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
    "Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 "
    "Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec "
    "00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8"
    "charset=iso-8859-1,utf-,*,enq=0."
)
_DICTIONARY = b"".join(struct.pack(">I", len(word)) + word.encode() for word in (*_WORDS.split(), *_LAST_WORDS))
_DICTIONARY += _REST.encode()
_SYN_STREAM, _SYN_REPLY, _SPDY_PING = 1, 2, 6
_CONTROL, _FIN = 0x8003, 1


class SpdyStreams:
    """A stream per channel, which kubectl opens."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._unpack = zlib.decompressobj(zdict=_DICTIONARY)
        self._pack = zlib.compressobj(zdict=_DICTIONARY)
        self._streams: dict[int, int] = {}

    @classmethod
    async def accept(cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> SpdyStreams:
        """Return the streams once all are open."""
        streams = cls(reader, writer)
        while len(streams._streams) < len(_NAMES):
            if await streams._data() is None:
                raise ConnectionResetError
        return streams

    async def input(self) -> AsyncIterator[bytes]:
        """Yield the data of standard input, b"" at its end."""
        while (frame := await self._data()) is not None:
            stream, last, data = frame
            if stream == self._streams[STDIN]:
                if data:
                    yield data
                if last:
                    yield b""

    async def send(self, channel: int, data: bytes) -> None:
        await self._write(self._streams[channel], 0, data)

    async def finish(self, exit_status: int) -> None:
        for channel, data in ((STDOUT, b""), (STDERR, b""), (ERROR, status_of(exit_status))):
            await self._write(self._streams[channel], _FIN, data)

    async def _data(self) -> tuple[int, bool, bytes] | None:
        """Return the next frame of data, (0, False, b"") for another one, and None at the end."""
        try:
            head = await self._reader.readexactly(8)
            data = await self._reader.readexactly(int.from_bytes(head[5:]))
        except asyncio.IncompleteReadError:
            return None
        if not head[0] & 128:
            return int.from_bytes(head[:4]), bool(head[4] & _FIN), data
        kind = int.from_bytes(head[2:4])
        if kind == _SYN_STREAM:
            stream = int.from_bytes(data[:4])
            self._streams[self._channel(data[10:])] = stream
            reply = struct.pack(">I", stream) + self._pack.compress(bytes(4)) + self._pack.flush(zlib.Z_SYNC_FLUSH)
            await self._control(_SYN_REPLY, reply)
        elif kind == _SPDY_PING:
            await self._control(_SPDY_PING, data)
        return 0, False, b""

    def _channel(self, packed: bytes) -> int:
        """Return the channel that the headers name."""
        headers = self._unpack.decompress(packed)
        parts, at = [], 4
        while at < len(headers):
            size = int.from_bytes(headers[at : at + 4])
            parts.append(headers[at + 4 : at + 4 + size])
            at += 4 + size
        return _NAMES[dict(zip(parts[::2], parts[1::2], strict=True))[b"streamtype"]]

    async def _control(self, kind: int, data: bytes) -> None:
        self._writer.write(struct.pack(">HHI", _CONTROL, kind, len(data)) + data)
        await self._writer.drain()

    async def _write(self, stream: int, flags: int, data: bytes) -> None:
        self._writer.write(struct.pack(">II", stream, flags << 24 | len(data)) + data)
        await self._writer.drain()
