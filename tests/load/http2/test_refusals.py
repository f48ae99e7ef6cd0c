"""Requests that the server did not process, and limits of streams: retries, and what the server must never see."""

import asyncio
from typing import Any

import pytest

from cockpit.load.http2 import frames
from cockpit.load.http2.frames import (
    MAX_CONCURRENT_STREAMS,
    REFUSED_STREAM,
    RST_STREAM,
    frame,
    number_bytes,
    reset,
    settings,
    window_update,
)
from cockpit.load.http2.output import Http2Output
from cockpit.load.http2.stream import Http2Stream
from cockpit.load.preflight import preflight
from cockpit.model.errors import TargetError, UsageError
from tests.load.certificates import certificate, server_context, trusting
from tests.load.http2.raw import SETTINGS_ACK, FrameClient, framed, response, sends
from tests.load.http2.servers import H2Client, ServedRequest, h2_server
from tests.load.servers import ClientConnection, always, engine_load, engine_run, plan, serving


def goaway(last: int, code: int = 0) -> bytes:
    return frame(frames.GOAWAY, 0, 0, number_bytes(last) + number_bytes(code))


async def every_third(peer: FrameClient, number: int) -> None:
    """Refuse every third request."""
    refuses = len(peer.requests) % 3 == 0
    await peer.send(reset(number, REFUSED_STREAM) if refuses else response(number))


async def test_a_refused_stream_is_sent_again() -> None:
    outcome, server = await engine_run(framed(every_third), http="2", requests=40, concurrency=1, streams=2)
    assert outcome.statuses == {200: 40}
    assert outcome.errors == {}
    retries = outcome.total("retries")
    assert retries >= 13
    assert server.requests == 40 + retries
    assert outcome.total("sent") == 40


async def test_a_refused_stream_of_a_method_that_is_not_idempotent_is_an_error() -> None:
    outcome, server = await engine_run(
        framed(every_third), http="2", requests=40, concurrency=1, streams=2, method="POST"
    )
    assert (outcome.statuses, outcome.errors) == ({200: 27}, {"refused_stream": 13})
    assert (outcome.total("retries"), server.requests) == (0, 40)


async def test_a_stream_that_is_always_refused_is_an_error() -> None:
    outcome, server = await engine_run(
        sends(lambda number: reset(number, REFUSED_STREAM)), http="2", requests=5, concurrency=1
    )
    assert outcome.errors == {"refused_stream": 5}
    assert (outcome.total("retries"), server.requests) == (15, 20)


async def test_requests_above_the_last_stream_are_sent_again() -> None:
    connections: list[FrameClient] = []

    async def leave(peer: FrameClient, number: int) -> None:
        if peer not in connections:
            connections.append(peer)
        if number == 1 or len(connections) > 3:
            await peer.send(response(number))
        elif number == 7:
            await peer.send(response(3), goaway(5), response(5))
            await peer.until_closed()

    outcome, server = await engine_run(framed(leave), http="2", requests=30, concurrency=1, streams=3)
    assert outcome.errors == {}
    assert outcome.statuses == {200: 30}
    assert outcome.total("reconnects") == len(server.connections) - 1 == 3
    # The last request of a connection may have been read by nobody.
    assert 3 <= outcome.total("retries") <= 6
    assert 30 <= server.requests <= 30 + outcome.total("retries")


async def test_goaway_with_an_error() -> None:
    async def fail(peer: FrameClient, number: int) -> None:
        await peer.send(goaway(number, 2))
        raise EOFError

    outcome, _ = await engine_run(framed(fail), http="2", requests=6, concurrency=2)
    assert outcome.errors == {"goaway": 6}


async def test_a_reset_stream_is_an_error_and_the_connection_stays() -> None:
    outcome, server = await engine_run(sends(lambda number: reset(number, 2)), http="2", requests=10, concurrency=1)
    assert outcome.errors == {"stream_reset": 10}
    assert len(server.connections) == 1


async def test_more_streams_than_the_server_allows_wait() -> None:
    def respond(client: H2Client, request: ServedRequest) -> Any:
        async def later() -> None:
            await asyncio.sleep(0.001)
            client.respond(request.number)
            await client.flush()

        tasks.add(asyncio.create_task(later()))

    tasks: set[asyncio.Task[None]] = set()
    async with h2_server(respond, MAX_CONCURRENT_STREAMS=3) as server:
        load_plan = plan(server.server.url, http="2", requests=60, concurrency=2, streams=10)
        outcome = await engine_load(load_plan)
        checked = await preflight(load_plan)
    assert outcome.statuses == {200: 60}
    assert (outcome.total("retries"), server.violations) == (0, [])
    assert server.most <= 3
    assert [line for line in checked.warnings if "allows 3 streams per connection, not 10" in line]


async def test_a_limit_of_streams_that_changes() -> None:
    async def shrink(peer: FrameClient, number: int) -> None:
        limit = settings({MAX_CONCURRENT_STREAMS: 1 + len(peer.requests) % 3})
        await peer.send(limit, response(number))

    outcome, _ = await engine_run(framed(shrink), http="2", requests=60, concurrency=1, streams=5)
    assert outcome.statuses == {200: 60}


async def test_bodies_that_are_no_longer_sent_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server responds before it has read them, and opens no window."""
    waiting: list[int] = []

    def count(output: Http2Output, stream: Http2Stream) -> None:
        send(output, stream)
        waiting.append(len(output._blocked))

    send = Http2Output._send_body
    monkeypatch.setattr(Http2Output, "_send_body", count)
    early = sends(lambda number: response(number) + window_update(number, 1))
    outcome, _ = await engine_run(early, http="2", requests=40, concurrency=1, method="POST", body="b" * 200_000)
    assert outcome.statuses == {200: 40} and max(waiting) == 1


async def test_a_window_that_never_opens() -> None:
    closed = settings({frames.INITIAL_WINDOW_SIZE: 0}) + SETTINGS_ACK

    async def wait(peer: FrameClient, number: int) -> None:
        if len(peer.requests) == 1:
            await peer.send(response(number))

    outcome, _ = await engine_run(
        framed(wait, closed), http="2", requests=3, concurrency=1, timeout=0.2, method="PUT", body="x" * 100_000
    )
    assert outcome.statuses.get(200, 0) + sum(outcome.errors.values()) == 3
    assert set(outcome.errors) == {"flow_stalled"}


async def test_a_timeout_ends_one_stream_and_late_frames_are_ignored() -> None:
    async def late(peer: FrameClient, number: int) -> None:
        if number == 3:
            slow.append(number)
        elif slow and any(kind == RST_STREAM for kind, *_ in peer.seen):
            await peer.send(response(slow.pop()), response(number))
        else:
            # At most 200 responses before the timeout.
            await asyncio.sleep(0.01 if slow else 0)
            await peer.send(response(number))

    slow: list[int] = []
    outcome, server = await engine_run(framed(late), http="2", requests=250, concurrency=1, streams=2, timeout=2.0)
    assert outcome.errors == {"timeout": 1} and not slow
    assert outcome.statuses == {200: 249}
    assert len(server.connections) == 1


async def test_a_silent_server_gets_no_more_requests_on_the_connection() -> None:
    async def nothing(peer: FrameClient, number: int) -> None:
        pass

    outcome, server = await engine_run(framed(nothing), http="2", requests=4, concurrency=1, timeout=1.0)
    assert outcome.errors == {"timeout": 4}
    assert len(server.connections) == 2


async def test_a_connection_that_the_server_closes() -> None:
    async def close(peer: FrameClient, number: int) -> None:
        if len(peer.requests) == 5:
            raise EOFError
        await peer.send(response(number))

    outcome, server = await engine_run(framed(close), http="2", requests=40, concurrency=1)
    assert outcome.statuses == {200: 40}
    assert outcome.total("retries") == outcome.total("reconnects") == len(server.connections) - 1
    outcome, server = await engine_run(framed(close), http="2", requests=40, concurrency=1, method="POST")
    assert outcome.errors == {"closed_before_response": 8}


async def test_preflight_names_the_problem() -> None:
    async with serving(always(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as server:
        with pytest.raises(TargetError, match="does not speak HTTP/2"):
            await preflight(plan(server.url, http="2"))

    async def closes(client: ClientConnection) -> None:
        await client.reader.read(1)

    async with serving(closes) as server:
        with pytest.raises(TargetError, match="closed the connection without a response"):
            await preflight(plan(server.url, http="2"))
    async with serving(
        always(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), server_context(certificate())
    ) as server:
        with pytest.raises(TargetError, match="does not offer HTTP/2"):
            await preflight(plan(server.url, http="2", tls=trusting()))
        checked = await preflight(plan(server.url, http="auto", tls=trusting()))
        assert (checked.http, checked.status) == ("1.1", 200)
        assert any("chose HTTP/1.1" in line for line in checked.warnings)
        with pytest.raises(UsageError, match="has no streams"):
            await preflight(plan(server.url, http="auto", streams=2, tls=trusting()))
    async with h2_server() as h2:
        checked = await preflight(plan(h2.server.url, http="2"))
        assert (checked.http, checked.status, checked.warnings) == ("2", 200, ())
        checked = await preflight(plan(h2.server.url, http="2", method="GET", body="x"))
        assert (checked.status, len(h2.received)) == (None, 1)
        with pytest.raises(UsageError, match="header Upgrade: HTTP/2 has none"):
            await preflight(plan(h2.server.url, http="2", headers=(("Upgrade", "x"),)))
