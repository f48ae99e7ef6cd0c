"""TLS handshakes: full and resumed ones as the server counts them, and the negotiated parameters."""

import asyncio
import select
import socket
import ssl
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Event
from types import SimpleNamespace

import pytest

from cockpit.load.http import tls as tls_module
from cockpit.load.http.tls import TlsSocket, TlsWrapper
from cockpit.load.poller import best_poller
from cockpit.model.counts import Counts
from cockpit.model.load.plan import Tls
from cockpit.model.tls import TlsParameters
from tests.load.certificates import authority, certificate, server_context, trusting
from tests.load.servers import POLLERS, SMALL, ClientConnection, Outcome, engine_load, plan, serving
from tests.waiting import DEADLINE

# The counts of the load, and those of the server by whether a session was resumed.
Counted = tuple[Outcome, Counter[bool]]
NONE = Tls(ca=str(authority().cert), resumption=False)


def context(version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    server = server_context(certificate())
    server.minimum_version = server.maximum_version = version
    server.set_alpn_protocols(["http/1.1"])
    return server


async def counted(server_side: ssl.SSLContext, tls: Tls, keepalive: bool = False) -> Counted:
    """Send 25 requests on 4 connections at a time."""
    resumed = Counter[bool]()

    async def behave(client: ClientConnection) -> None:
        resumed[client.writer.get_extra_info("ssl_object").session_reused] += 1
        while True:
            await client.request()
            await client.send(SMALL)

    async with serving(behave, server_side) as server:
        load_plan = plan(server.url, requests=25, keepalive=keepalive, tls=tls)
        outcome = await engine_load(load_plan)
    assert outcome.statuses == {200: 25} and outcome.errors == {}
    return outcome, resumed


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_new_connections_resume_session(version: ssl.TLSVersion) -> None:
    outcome, resumed = await counted(context(version), trusting())
    [(key, full)] = outcome.counts_of("full_handshakes").items()
    assert outcome.counts_of("resumed_handshakes") == {key: 25 - full}
    assert resumed == {False: full, True: 25 - full}
    assert 1 <= full < 25
    assert (outcome.merged("tls").count, outcome.merged("tls_resumed").count) == (full, 25 - full)
    assert outcome.merged("tls").min > 0 < outcome.merged("tls_resumed").min
    parameters = TlsParameters.of_key(key)
    assert parameters.version == version.name.replace("_", ".") and parameters.alpn == "http/1.1"
    assert parameters.cipher.startswith(("TLS_", "ECDHE-")) and parameters.key == key


async def test_no_session_is_resumed_without_resumption() -> None:
    outcome, resumed = await counted(context(), NONE)
    assert sum(outcome.counts_of("full_handshakes").values()) == resumed[False] == 25
    assert outcome.counts_of("resumed_handshakes") == {}


async def test_handshakes_of_server_without_sessions_are_full() -> None:
    server_side = context()
    server_side.num_tickets = 0
    outcome, resumed = await counted(server_side, trusting())
    assert sum(outcome.counts_of("full_handshakes").values()) == resumed[False] == 25


async def test_kept_connection_has_one_handshake() -> None:
    outcome, resumed = await counted(context(), trusting(), keepalive=True)
    assert sum(outcome.counts_of("full_handshakes").values()) == resumed[False] == 4


def connected(
    wrapper: TlsWrapper, server_side: ssl.SSLContext, sockets: tuple[socket.socket, socket.socket] | None = None
) -> tuple[TlsSocket, ssl.SSLSocket]:
    """Return both ends of a connection after the handshake and a greeting of the server."""
    client, server = sockets or socket.socketpair()
    with ThreadPoolExecutor(1) as pool:
        wrapped = pool.submit(server_side.wrap_socket, server, server_side=True)
        connection = wrapper.wrap(client)
        is_complete = False
        while not is_complete:
            with suppress(BlockingIOError):
                connection.shake_hands()
                is_complete = True
        # The end of the handshake is sent with the first data.
        connection.send(b"hi")
    wrapped.result().send(b"hello")
    assert connection.recv(5) == b"hello"
    return connection, wrapped.result()


def test_session_of_open_connection_is_resumed_until_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(tls_module, "monotonic", lambda: now)
    wrapper, server_side, restarted = TlsWrapper(trusting(), "127.0.0.1"), context(), context()
    pairs = [connected(wrapper, server_side), connected(wrapper, server_side)]
    now += 1
    pairs += [connected(wrapper, server_side), connected(wrapper, server_side)]
    now += 1
    pairs += [connected(wrapper, restarted), connected(wrapper, restarted)]
    now += 1
    pairs.append(connected(wrapper, restarted))
    assert [connection.resumed for connection, _ in pairs] == [False, False, True, True, False, False, True]
    for pair in pairs:
        for end in pair:
            end.close()


class ServerOfRecords:
    """A server of one response in two parts of 20 records each. The second part is sent when `due` is set, and has
    arrived when `send_rest` returns."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self._due, self._is_sent = Event(), Event()

    def serve(self) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context().wrap_bio(incoming, outgoing, server_side=True)
        with self.listener, self.listener.accept()[0] as client:
            for step in (tls.do_handshake, partial(tls.read, 65536)):
                while True:
                    try:
                        step()
                        break
                    except ssl.SSLWantReadError:
                        client.sendall(outgoing.read())
                        incoming.write(client.recv(65536))
            tls.write(b"HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n")
            for part in range(2):
                for _ in range(20):
                    tls.write(b"x")
                client.sendall(outgoing.read())
                if not part:
                    self._due.wait(DEADLINE)
            self._is_sent.set()
            client.recv(65536)

    def send_rest(self, fd: int) -> None:
        """Send the second part to the socket `fd`."""
        self._due.set()
        assert self._is_sent.wait(DEADLINE) and select.select((fd,), (), (), DEADLINE)[0]


async def test_data_that_arrives_while_a_connection_waits_to_read_on_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    server, poller = ServerOfRecords(), best_poller()
    again, waits = poller.again, list[int]()

    def late(fd: int) -> None:
        if not waits:
            server.send_rest(fd)
        waits.append(fd)
        again(fd)

    monkeypatch.setattr(poller, "again", late)
    monkeypatch.setitem(POLLERS, "late", lambda: poller)
    load_plan = plan(f"https://127.0.0.1:{server.port}/", requests=1, concurrency=1, tls=NONE, timeout=5.0)
    served = asyncio.create_task(asyncio.to_thread(server.serve))
    outcome = await engine_load(load_plan, "late")
    await served
    assert waits and outcome.errors == {} and outcome.statuses == {200: 1}


def test_messages_without_data_end_a_connection() -> None:
    class Endless(TlsSocket):
        def _receive(self) -> None:
            """The server sends messages for ever."""

    connection, reads = Endless.__new__(Endless), list[int]()

    def read(size: int) -> bytes:
        reads.append(size)
        raise ssl.SSLWantReadError

    connection._tls = SimpleNamespace(read=read, pending=lambda: 0)  # type: ignore[assignment]
    connection._outgoing = SimpleNamespace(pending=0)  # type: ignore[assignment]
    connection._incoming = SimpleNamespace(pending=1)  # type: ignore[assignment]
    with pytest.raises(OSError, match="only messages of TLS"):
        connection.recv(100)
    assert len(reads) < 1000


def test_data_larger_than_send_buffer_is_sent_once() -> None:
    raw, other = socket.socketpair()
    client, server = connected(TlsWrapper(trusting(), "127.0.0.1"), context(), (raw, other))
    assert server.recv(2) == b"hi"
    raw.setblocking(False)
    data, sent, blocked = bytes(range(256)) * 10_000, 0, 0
    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(lambda: b"".join(iter(partial(server.recv, 1 << 16), b"end")))
        while sent < len(data):
            try:
                sent += client.send(memoryview(data)[sent:])
            except BlockingIOError:
                blocked += 1
                select.select((), (raw,), (), 5)
        raw.setblocking(True)
        client.send(b"end")
        assert received.result() == data
    assert blocked
    for end in (client, server):
        end.close()


def test_handshakes_are_listed_by_parameters() -> None:
    new, old = TlsParameters("TLSv1.3", "TLS_AES", "x25519", "h2"), TlsParameters("TLSv1.2", "ECDHE")
    counts = Counts(full_handshakes={new.key: 1, old.key: 2}, resumed_handshakes={new.key: 5})
    assert list(counts.handshakes.items()) == [(new, (1, 5)), (old, (2, 0))]
    assert new.words == "TLSv1.3 TLS_AES x25519, ALPN h2" and old.words == "TLSv1.2 ECDHE"
    assert TlsParameters.of_key("hostile key").words == "hostile key"
