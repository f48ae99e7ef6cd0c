"""HTTP/2 servers: of the `h2` library, which refuses whatever a client must not send, and of raw frames."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, RequestReceived, StreamEnded, StreamReset, WindowUpdated
from h2.exceptions import ProtocolError, StreamClosedError
from h2.settings import SettingCodes, Settings

from tests.load.servers import ClientConnection, Outcome, Server, engine_load, plan, serving


@dataclass
class ServedRequest:
    """A request as the server received it."""

    number: int
    headers: list[tuple[bytes, bytes]]
    body: bytearray = field(default_factory=bytearray)

    def __getitem__(self, name: str) -> str:
        return next(value for key, value in self.headers if key == name.encode()).decode()


class H2Client:
    """A client's connection on the side of the `h2` library. `violation`: what the client must not have sent."""

    def __init__(self, client: ClientConnection, settings: dict[SettingCodes, int]) -> None:
        self.client = client
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self.h2.local_settings = Settings(client=False, initial_values={**self.h2.local_settings, **settings})
        self.open: dict[int, ServedRequest] = {}
        self.unsent: dict[int, tuple[bytes, bool]] = {}
        self.most = 0
        self.resets = 0

    async def flush(self) -> None:
        self.client.writer.write(self.h2.data_to_send())
        await self.client.writer.drain()

    def respond(
        self, number: int, body: bytes = b"hello", status: int = 200, headers: Iterable[tuple[str, str]] | None = None
    ) -> None:
        """Send a response, as far as the windows allow."""
        given = [("content-length", str(len(body)))] if headers is None else [*headers]
        self.h2.send_headers(number, [(":status", str(status)), *given], end_stream=not body)
        if body:
            self.unsent[number] = (body, True)
            self.send_rest()

    def send_rest(self) -> None:
        for number, (body, ends) in list(self.unsent.items()):
            while body:
                size = min(len(body), self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size)
                if not size:
                    break
                self.h2.send_data(number, body[:size], end_stream=ends and size == len(body))
                body = body[size:]
            self.unsent[number] = (body, ends)
            if not body:
                del self.unsent[number]


Answer = Callable[[H2Client, ServedRequest], Any]


@dataclass
class H2Server:
    """What a server received. `violations` of the clients; `most` streams of one connection at once."""

    server: Server
    received: list[ServedRequest] = field(default_factory=list)
    clients: list[H2Client] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    @property
    def most(self) -> int:
        return max(client.most for client in self.clients)


def hello(client: H2Client, request: ServedRequest) -> None:
    client.respond(request.number)


@asynccontextmanager
async def h2_server(
    answer: Answer = hello, secure: ssl.SSLContext | None = None, **settings: int
) -> AsyncIterator[H2Server]:
    """Run a server of the `h2` library, which calls `answer` for each complete request. `settings`: by name."""

    async def behave(client: ClientConnection) -> None:
        peer = H2Client(client, {SettingCodes[name]: value for name, value in settings.items()})
        result.clients.append(peer)
        peer.h2.initiate_connection()
        await peer.flush()
        while data := await client.reader.read(1 << 16):
            try:
                events = peer.h2.receive_data(data)
            except ProtocolError as error:
                result.violations.append(f"{type(error).__name__}: {error}")
                await peer.flush()
                return
            for event in events:
                await _handle(peer, event)
            await peer.flush()

    async def _handle(peer: H2Client, event: Event) -> None:
        if isinstance(event, RequestReceived):
            peer.open[event.stream_id] = ServedRequest(event.stream_id, list(event.headers))
            peer.most = max(peer.most, len(peer.open))
        elif isinstance(event, DataReceived):
            peer.open[event.stream_id].body += event.data
            peer.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded):
            request = peer.open.pop(event.stream_id)
            result.received.append(request)
            outcome = answer(peer, request)
            if asyncio.iscoroutine(outcome):
                await outcome
        elif isinstance(event, StreamReset):
            peer.open.pop(event.stream_id, None)
            peer.unsent.pop(event.stream_id, None)
            peer.resets += 1
        elif isinstance(event, WindowUpdated):
            peer.send_rest()

    async with serving(behave, secure) as server:
        result = H2Server(server)
        yield result


async def h2_run(answer: Answer = hello, poller: str = "best", **values: Any) -> tuple[Outcome, H2Server]:
    """Run a plan of these values in an engine alone, against a server of the `h2` library."""
    async with h2_server(answer) as server:
        outcome = await engine_load(plan(server.server.url, http="2", **values), poller)
        return outcome, server


__all__ = ["ErrorCodes", "H2Client", "H2Server", "ServedRequest", "StreamClosedError", "h2_run", "h2_server", "hello"]
