"""HTTP/2 servers that send frames byte by byte as a test gives them."""

import asyncio
from collections.abc import Awaitable, Callable

from hpack import Encoder

from cockpit.load.http2 import frames
from cockpit.load.http2.frames import END_HEADERS, END_STREAM, frame
from tests.load.servers import Behaviour, ClientConnection

SETTINGS = frame(frames.SETTINGS, 0, 0)
SETTINGS_ACK = frame(frames.SETTINGS, frames.ACK, 0)


def block(*fields: tuple[str, str], table: int = 0) -> bytes:
    """Return a header block; `table`: size of the encoder's dynamic table (bytes)."""
    encoder = Encoder()
    encoder.header_table_size = table
    return encoder.encode(fields)


OK_BLOCK = block((":status", "200"), ("content-length", "5"))


def head(number: int, fields: bytes = OK_BLOCK, flags: int = END_HEADERS) -> bytes:
    return frame(frames.HEADERS, flags, number, fields)


def data(number: int, body: bytes = b"hello", flags: int = END_STREAM) -> bytes:
    return frame(frames.DATA, flags, number, body)


def response(number: int) -> bytes:
    """Return the frames of a complete response."""
    return head(number) + data(number)


class FrameClient:
    """A client's connection on the side of the server; `requests` are the numbers of its streams so far."""

    def __init__(self, client: ClientConnection) -> None:
        self.client = client
        self.requests: list[int] = []
        self.seen: list[tuple[int, int, int, bytes]] = []

    async def next_frame(self) -> tuple[int, int, int, bytes]:
        header = await self.client.reader.readexactly(frames.HEADER_SIZE)
        word, flags, number = frames.unpack_header(header)
        kind, payload = word & 0xFF, await self.client.reader.readexactly(word >> 8)
        self.seen.append((kind, flags, number, payload))
        return kind, flags, number, payload

    async def next_request(self) -> int:
        """Return the number of the next stream that the client opens."""
        while True:
            kind, _, number, _ = await self.next_frame()
            if kind == frames.HEADERS:
                self.requests.append(number)
                self.client.requests += 1
                self.client.request_arrived.set()
                return number

    async def send(self, *pieces: bytes) -> None:
        await self.client.send(*pieces)

    async def until_closed(self) -> None:
        """Read whatever the client sends until it closes the connection."""
        while await self.client.reader.read(1 << 16):
            pass


async def greeted(client: ClientConnection, first: bytes = SETTINGS + SETTINGS_ACK) -> FrameClient:
    """Read the preface of a client, and send SETTINGS."""
    await client.reader.readexactly(24)
    peer = FrameClient(client)
    await peer.send(first)
    return peer


def framed(answer: Callable[[FrameClient, int], Awaitable[None]], first: bytes = SETTINGS + SETTINGS_ACK) -> Behaviour:
    """Call `answer` for each request."""

    async def behave(client: ClientConnection) -> None:
        peer = await greeted(client, first)
        while True:
            await answer(peer, await peer.next_request())

    return behave


def sends(
    *pieces: Callable[[int], bytes] | bytes, first: bytes = SETTINGS + SETTINGS_ACK, close: bool = False
) -> Behaviour:
    """Send these pieces, made from the number of the stream, after each request; then close, or go on."""

    async def answer(peer: FrameClient, number: int) -> None:
        await peer.send(*(piece if isinstance(piece, bytes) else piece(number) for piece in pieces))
        if close:
            raise EOFError

    return framed(answer, first)


async def silent(peer: FrameClient, number: int) -> None:
    await asyncio.Event().wait()
