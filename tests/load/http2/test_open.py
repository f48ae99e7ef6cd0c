"""Open load, log replay and duets over HTTP/2."""

import asyncio
from pathlib import Path
from typing import Any

from cockpit.load.http.protocol import assignments
from cockpit.model.load.plan import LogReplay, TargetVariant
from tests.load.http2.servers import H2Client, ServedRequest, h2_run, h2_server
from tests.load.servers import engine_load, plan, run_engine


async def test_arrivals_share_the_streams_of_few_connections() -> None:
    def later(client: H2Client, request: ServedRequest) -> Any:
        async def respond() -> None:
            await asyncio.sleep(0.02)
            client.respond(request.number)
            await client.flush()

        tasks.append(asyncio.create_task(respond()))

    tasks: list[asyncio.Task[None]] = []
    outcome, server = await h2_run(later, requests=200, rate=1000.0, streams=50)
    assert outcome.statuses == {200: 200}
    assert outcome.errors == {}
    assert outcome.merged("response").count == outcome.merged("service").count == 200
    assert outcome.merged("response").min_ns >= outcome.merged("service").min_ns > 15e6
    assert server.most <= 50
    assert len(server.clients) <= 5


async def test_a_ramp_and_connections_that_idle() -> None:
    outcome, server = await h2_run(rate=50.0, ramp_to=400.0, duration=0.5, streams=3, arrivals="poisson")
    assert outcome.errors == {}
    completed = outcome.total("completed")
    assert 0 < completed <= len(server.received) <= completed + outcome.total("abandoned")


async def test_connections_that_the_server_closes_between_requests_are_replaced() -> None:
    left: set[int] = set()

    def leave(client: H2Client, request: ServedRequest) -> None:
        if id(client) in left:
            server.received.pop()
            return
        left.add(id(client))
        client.respond(request.number)
        client.h2.close_connection(last_stream_id=request.number)

    async with h2_server(leave) as server:
        outcome = await engine_load(plan(server.server.url, http="2", requests=20, rate=400.0, streams=2))
    assert outcome.statuses == {200: 20}
    assert outcome.errors == {}
    assert outcome.total("reconnects") >= 19
    assert len(server.received) == 20


async def test_a_log_is_replayed(tmp_path: Path) -> None:
    def by_method(client: H2Client, request: ServedRequest) -> None:
        if request[":method"] == "HEAD":
            client.h2.send_headers(request.number, [(":status", "200"), ("content-length", "9")], end_stream=True)
        else:
            client.respond(request.number)

    log = tmp_path / "access.log"
    line = '127.0.0.1 - - [10/Oct/2025:13:55:{:02d} +0000] "{} /{} HTTP/1.1" 200 5 "-" "-"\n'
    log.write_text("".join(line.format(n // 10, ("GET", "HEAD")[n % 2], n) for n in range(40)))
    async with h2_server(by_method) as server:
        replay = LogReplay(file=str(log), speed=20.0)
        outcome = await engine_load(plan(server.server.url, http="2", streams=4, replay=replay, requests=40))
    assert outcome.statuses == {200: 40}
    assert outcome.errors == {}
    assert sorted(request[":path"] for request in server.received) == sorted(f"/{n}" for n in range(40))


async def test_a_duet_loads_both_targets() -> None:
    async with h2_server() as left, h2_server() as right:
        variants = tuple(TargetVariant(name=name, url=each.server.url) for name, each in (("a", left), ("b", right)))
        load_plan = plan(left.server.url, http="2", streams=2, concurrency=2, duration=0.3, variants=variants)
        ports = [("127.0.0.1", each.server.port) for each in (left, right)]
        [assignment] = assignments(load_plan, 1, *ports)
        outcome = await run_engine(assignment)
    assert set(outcome.groups) == {"a", "b"}
    for name, server in (("a", left), ("b", right)):
        completed = sum(group.completed for group in outcome.groups[name])
        assert 0 < completed <= len(server.received) <= completed + 4
        assert len(server.clients) == 2
