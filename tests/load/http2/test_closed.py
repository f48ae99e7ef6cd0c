"""Closed load over HTTP/2: each request once, as a server of the `h2` library sees it."""

import asyncio
import gc
from typing import Any

import pytest

from cockpit.load.http.request import target_of
from cockpit.load.http2.connection import Http2Connection
from cockpit.model.load.plan import Expect, Extraction, PathList, Request, Stage, ThinkTime
from tests.load.certificates import certificate, server_context, trusting
from tests.load.http2.servers import H2Client, ServedRequest, h2_run, h2_server
from tests.load.servers import engine_load, load, plan


@pytest.mark.parametrize("poller", ["best", "level-triggered"])
@pytest.mark.parametrize("streams", [1, 7])
async def test_each_request_is_counted_once(poller: str, streams: int) -> None:
    outcome, server = await h2_run(poller=poller, requests=211, concurrency=3, streams=streams)
    assert server.violations == []
    assert outcome.statuses == {200: 211}
    assert outcome.errors == {}
    assert (len(server.received), len(server.clients)) == (211, 3)
    assert (outcome.total("sent"), outcome.total("abandoned"), outcome.total("retries")) == (211, 0, 0)
    assert outcome.total("body_bytes") == 5 * 211
    assert outcome.merged("service").count == outcome.merged("first_byte").count == 211
    assert outcome.merged("connect").count == 3
    assert server.most <= streams


async def test_the_request_has_its_fields() -> None:
    headers = (("X-Id", "7"), ("Accept", "text/html"))
    outcome, server = await h2_run(requests=3, concurrency=1, headers=headers)
    assert outcome.statuses == {200: 3}
    sent = dict(server.received[-1].headers)
    authority = f"127.0.0.1:{server.server.port}".encode()
    assert sent | {b"user-agent": b""} == {
        b":method": b"GET",
        b":scheme": b"http",
        b":path": b"/x",
        b":authority": authority,
        b"x-id": b"7",
        b"accept": b"text/html",
        b"user-agent": b"",
    }
    assert [name for name, _ in server.received[-1].headers][:4] == [b":method", b":path", b":scheme", b":authority"]


def large(client: H2Client, request: ServedRequest) -> None:
    client.respond(request.number, b"x" * 300_000)


def without_length(client: H2Client, request: ServedRequest) -> None:
    client.respond(request.number, b"no length", headers=[])


def empty(client: H2Client, request: ServedRequest) -> None:
    client.respond(request.number, b"")


def no_content(client: H2Client, request: ServedRequest) -> None:
    client.respond(request.number, b"", 204, [])


def interim_and_trailers(client: H2Client, request: ServedRequest) -> None:
    client.h2.send_headers(request.number, [(":status", "103"), ("link", "</a>")])
    client.h2.send_headers(request.number, [(":status", "200"), ("content-length", "2")])
    client.h2.send_data(request.number, b"hi", pad_length=9)
    client.h2.send_headers(request.number, [("x-sum", "1")], end_stream=True)


def changing(client: H2Client, request: ServedRequest) -> None:
    body = b"x" * (request.number % 11)
    fields = [("x-number", str(request.number)), ("date", str(request.number)), ("content-length", str(len(body)))]
    client.respond(request.number, body, headers=fields if request.number % 3 else fields[:1])


def with_large_head(client: H2Client, request: ServedRequest) -> None:
    client.respond(request.number, headers=[("x-large", "y" * 20_000)])


@pytest.mark.parametrize(
    ("answer", "status", "size"),
    [
        (large, 200, 300_000),
        (without_length, 200, 9),
        (empty, 200, 0),
        (no_content, 204, 0),
        (interim_and_trailers, 200, 2),
    ],
)
async def test_responses(answer: Any, status: int, size: int) -> None:
    outcome, server = await h2_run(answer, requests=40, concurrency=2, streams=5)
    assert outcome.errors == {}
    assert outcome.statuses == {status: 40}
    assert outcome.total("body_bytes") == 40 * size
    assert server.violations == []


async def test_a_head_in_several_frames() -> None:
    outcome, server = await h2_run(with_large_head, requests=4, concurrency=1, streams=2)
    assert (outcome.statuses, outcome.errors, server.violations) == ({200: 4}, {}, [])


async def test_responses_of_different_lengths() -> None:
    outcome, server = await h2_run(changing, requests=60, concurrency=2, streams=3)
    assert outcome.statuses == {200: 60}
    assert outcome.total("body_bytes") == sum(request.number % 11 for request in server.received)
    assert outcome.total("length_mismatches") > 0


async def test_responses_that_share_a_connection_are_interleaved() -> None:
    both: list[int] = []

    def alternate(client: H2Client, request: ServedRequest) -> Any:
        both.append(request.number)
        if len(both) == 2:
            return pieces(client)
        return None

    async def pieces(client: H2Client) -> None:
        for number in both:
            client.h2.send_headers(number, [(":status", "200")])
        for last in (False, True):
            for number in both:
                client.h2.send_data(number, b"piece", end_stream=last)
                await client.flush()
                await asyncio.sleep(0.01)
        both.clear()

    outcome, _ = await h2_run(alternate, requests=8, concurrency=1, streams=2)
    assert outcome.statuses == {200: 8}
    assert outcome.merged("head_of_line").count >= 7
    assert outcome.merged("head_of_line").max <= outcome.merged("service").max


@pytest.mark.parametrize("size", [3, 70_000, 900_000])
async def test_bodies_follow_the_windows(size: int) -> None:
    body = "b" * size
    outcome, server = await h2_run(requests=9, concurrency=2, streams=2, method="POST", body=body)
    assert server.violations == []
    assert outcome.statuses == {200: 9}
    assert {len(request.body) for request in server.received} == {size}
    assert server.received[0]["content-length"] == str(size)
    assert outcome.total("bytes_sent") >= 9 * size


async def test_small_windows_and_a_large_request_head() -> None:
    async with h2_server(INITIAL_WINDOW_SIZE=100) as server:
        url = server.server.url
        # The `h2` library accepts no body before its SETTINGS are acknowledged.
        mix = (Request(name="read", url=url), Request(name="write", url=url, method="PUT", body="c" * 950))
        outcome = await engine_load(plan(url, http="2", requests=6, concurrency=1, mix=mix))
        assert outcome.statuses == {200: 6}
        assert [len(request.body) for request in server.received] == [0, 950] * 3
        headers = (("X-Large", "z" * 40_000),)
        outcome = await engine_load(plan(url, http="2", requests=6, streams=2, headers=headers))
        assert outcome.statuses == {200: 6}
        assert server.received[-1]["x-large"] == "z" * 40_000
        assert server.violations == []


async def test_head_requests() -> None:
    def head(client: H2Client, request: ServedRequest) -> None:
        client.h2.send_headers(request.number, [(":status", "200"), ("content-length", "5000")], end_stream=True)

    outcome, _ = await h2_run(head, requests=20, method="HEAD", streams=2)
    assert (outcome.statuses, outcome.errors, outcome.total("body_bytes")) == ({200: 20}, {}, 0)


@pytest.mark.parametrize(("keepalive", "limit", "connections"), [(False, None, 12), (True, 5, 3)])
async def test_requests_per_connection(keepalive: bool, limit: int | None, connections: int) -> None:
    outcome, server = await h2_run(requests=12, concurrency=1, keepalive=keepalive, requests_per_connection=limit)
    assert outcome.statuses == {200: 12}
    assert outcome.errors == {}
    assert outcome.merged("connect").count == len(server.clients) == connections


async def test_closed_connections_are_freed_without_the_garbage_collector() -> None:
    """It is off in a worker."""
    gc.collect()
    gc.disable()
    try:
        outcome, _ = await h2_run(requests=60, concurrency=1, keepalive=False)
        alive = sum(isinstance(each, Http2Connection) for each in gc.get_objects())
    finally:
        gc.enable()
    assert outcome.statuses == {200: 60}
    # A file descriptor keeps its last handler.
    assert alive < 10


async def test_expectations_and_paths() -> None:
    def named(client: H2Client, request: ServedRequest) -> None:
        client.respond(request.number, request[":path"].encode(), 200 if request[":path"] != "/3" else 404)

    paths = PathList(pattern="/{1..4}")
    outcome, server = await h2_run(named, requests=40, paths=paths, streams=2, expect=Expect(contains="2"))
    assert sorted(request[":path"] for request in server.received) == sorted(
        f"/{n}" for n in (1, 2, 3, 4) for _ in range(10)
    )
    assert outcome.unexpected == {"contains": 30}


async def test_a_mix_of_requests() -> None:
    async with h2_server() as server:
        url = server.server.url
        mix = (
            Request(name="read", url=url, weight=3),
            Request(name="write", url=url, method="POST", body="data", expect=Expect(statuses=(201,))),
        )
        outcome = await engine_load(plan(url, http="2", requests=40, streams=3, mix=mix))
    assert sum(group.completed for group in outcome.groups["read"]) == 30
    assert outcome.unexpected == {"status": 10}
    assert [bytes(request.body) for request in server.received if request[":method"] == "POST"] == [b"data"] * 10


@pytest.mark.parametrize("streams", [1, 4])
async def test_cookies_are_those_of_the_connection(streams: int) -> None:
    """The streams of a connection are one user."""

    def login(client: H2Client, request: ServedRequest) -> None:
        own = [("set-cookie", f"id={server.clients.index(client)}"), ("content-length", "5")]
        client.respond(request.number, headers=own)

    async with h2_server(login) as server:
        outcome = await engine_load(
            plan(server.server.url, http="2", requests=80, concurrency=2, streams=streams, cookies=True)
        )
    assert outcome.statuses == {200: 80}
    sent = [dict(request.headers).get(b"cookie") for request in server.received]
    assert set(sent) - {None} == {b"id=0", b"id=1"}
    assert sent.count(None) <= 2 * streams


async def test_a_chain_extracts_values() -> None:
    def shop(client: H2Client, request: ServedRequest) -> None:
        if request[":path"] == "/login":
            client.respond(request.number, b'{"id": "a/b"}', headers=[("x-token", f"t{request.number}")])
        else:
            client.respond(request.number, request["x-token"].encode(), 200)

    async with h2_server(shop) as server:
        origin = server.server.url.removesuffix("/x")
        extract = (
            Extraction(name="id", source="json", expression="id"),
            Extraction(name="token", source="header", expression="X-Token"),
        )
        chain = (
            Request(name="login", url=f"{origin}/login", extract=extract),
            Request(name="use", url=f"{origin}/use/{{id}}", headers=(("X-Token", "{token}"),)),
        )
        outcome = await engine_load(plan(f"{origin}/", http="2", requests=40, concurrency=2, streams=2, mix=chain))
    assert (outcome.statuses, outcome.unexpected, outcome.errors) == ({200: 40}, {}, {})
    uses = [request for request in server.received if request[":path"] != "/login"]
    assert {request[":path"] for request in uses} == {"/use/a%2Fb"}
    assert len({request["x-token"] for request in uses}) > 1


async def test_think_time_levels_and_a_warm_up() -> None:
    outcome, server = await h2_run(requests=24, concurrency=2, streams=3, think_time=ThinkTime(seconds=0.01))
    assert (outcome.statuses, len(server.clients)) == ({200: 24}, 2)
    stages = (
        Stage(concurrency=1, duration=0.2),
        Stage(concurrency=3, duration=0.2),
        Stage(concurrency=1, duration=0.2),
    )
    outcome, server = await h2_run(stages=stages, streams=4, concurrency=1, warmup=0.1)
    assert outcome.errors == {}
    assert server.violations == []
    highest = [max((tick.in_flight for tick in outcome.ticks if tick.stage == stage), default=0) for stage in range(3)]
    assert highest[1] <= 12
    connections = [tick.connections for tick in outcome.ticks if tick.stage == 2]
    assert 1 in connections
    assert outcome.total("completed") + outcome.total("abandoned") == outcome.total("sent")


async def test_tls_and_the_version_that_the_server_chooses() -> None:
    context = server_context(certificate())
    context.set_alpn_protocols(["h2", "http/1.1"])
    async with h2_server(secure=context) as server:
        for http in ("2", "auto"):
            load_plan = plan(server.server.url, http=http, requests=20, streams=3, tls=trusting())
            outcome = await load(load_plan)
            assert outcome.statuses == {200: 20}
            assert outcome.started.plan.http == "2"
            assert outcome.merged("tls").count == 4
    assert target_of(server.server.url).secure
