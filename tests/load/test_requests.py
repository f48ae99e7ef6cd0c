"""Request mixes, paths, expectations and alternative connections to the target, as the server receives them."""

import hashlib
from collections import Counter
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.load import request_order
from cockpit.load.paths import Paths, Pattern
from cockpit.load.preflight import preflight
from cockpit.model.errors import TargetError
from cockpit.model.load.plan import Expect, PathList, Request
from tests.load.servers import (
    POLLERS,
    SMALL,
    Behaviour,
    ClientConnection,
    always,
    engine_load,
    engine_run,
    load,
    once,
    plan,
    serving,
)


def recording(seen: list[bytes], reply: bytes = SMALL) -> Behaviour:
    """Respond to all requests, and record them."""

    async def behave(client: ClientConnection) -> None:
        while True:
            seen.append(await client.request())
            await client.send(reply)

    return behave


def paths_of(seen: list[bytes]) -> Counter[str]:
    return Counter(request.split(b" ", 2)[1].decode() for request in seen)


# --- a mix ---


@pytest.mark.parametrize(("values", "workers"), [({}, 2), ({"rate": 500.0}, 1)])
async def test_mix_follows_weights_and_counts_by_name(values: dict[str, Any], workers: int) -> None:
    seen: list[bytes] = []
    async with serving(recording(seen)) as server:
        mix = (
            Request(name="page", url=server.url, weight=3),
            Request(name="form", url=server.url + "/f", method="POST", body="ab", headers=(("X-A", "1"),), weight=1),
        )
        outcome = await load(plan(server.url, mix=mix, requests=80, workers=workers, **values))
        assert paths_of(seen) == {"/x": 60, "/x/f": 20}
        assert sum(b"\r\nX-A: 1\r\n" in request and request.endswith(b"\r\n\r\nab") for request in seen) == 20
        for count in ("sent", "completed", "service.count"):
            value = attrgetter(count)
            counted = {name: sum(map(value, groups)) for name, groups in outcome.groups.items()}
            assert counted == {"page": 60, "form": 20}, count
        assert outcome.total("sent") == 80
        assert outcome.merged("service").count == 80
        assert outcome.total("bytes_sent") == sum(map(len, seen))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_rotation_is_exact_and_even(weights: list[int]) -> None:
    turns = request_order.rotation(weights)
    counts = Counter(turns)
    assert all(counts[index] * sum(weights) == len(turns) * weight for index, weight in enumerate(weights))
    for upto in range(1, len(turns) + 1):
        for index, weight in enumerate(weights):
            assert abs(turns[:upto].count(index) - upto * weight / sum(weights)) <= 1.5


# --- paths ---


def test_patterns_are_expanded() -> None:
    padded = Pattern("/img/{0009..0011}.jpg")
    assert [padded(index) for index in range(padded.count)] == [b"/img/0009.jpg", b"/img/0010.jpg", b"/img/0011.jpg"]
    nested = Pattern("/{1..2}/{8..10} x")
    assert [nested(index) for index in range(nested.count)] == [
        *(b"/1/8%20x", b"/1/9%20x", b"/1/10%20x"),
        *(b"/2/8%20x", b"/2/9%20x", b"/2/10%20x"),
    ]
    assert Pattern("/plain").count == 1
    listed = Paths(PathList(listed=("/a", "/b?c=d")), 0, 1)
    assert Paths(PathList(pattern="/{1..300000}"), 0, 1).next() == b"/1"
    assert [listed.next() for _ in range(5)] == [b"/a", b"/b?c=d", b"/a", b"/b?c=d", b"/a"]


@given(st.integers(1, 60), st.integers(1, 7), st.sampled_from(["sequence", "shuffle", "once"]), st.integers(0, 3))
def test_workers_share_paths_equally(count: int, workers: int, order: Any, seed: int) -> None:
    listed = PathList(listed=tuple(f"/{number}" for number in range(count)), order=order, seed=seed)
    shares = [Paths(listed, worker, workers) for worker in range(workers)]
    if order == "once":
        assert sum(paths.own for paths in shares) == count
        rounds = [[paths.next() for _ in range(paths.own)] for paths in shares]
        assert len({path for taken in rounds for path in taken}) == count
    else:
        rounds = [[paths.next() for _ in range(count)] for paths in shares]
        assert set(Counter(path for taken in rounds for path in taken).values()) == {workers}


async def test_paths_are_used_at_most_once_over_all_workers() -> None:
    seen: list[bytes] = []
    async with serving(recording(seen)) as server:
        once_each = PathList(pattern="/i/{00001..15000}.jpg", order="once", seed=3)
        outcome = await load(plan(server.url, paths=once_each, requests=500, workers=3, concurrency=7))
        assert outcome.total("completed") == len(paths_of(seen)) == 500
        assert paths_of(seen).most_common(1)[0][1] == 1
        # An exhausted list ends the run.
        listed = PathList(listed=tuple(f"/{number}" for number in range(41)), order="once")
        outcome = await load(plan(server.url, paths=listed, duration=600.0, workers=2))
    assert outcome.total("completed") == 41
    assert outcome.ended.reason == "completed"
    assert outcome.total("length_mismatches") == 0


# --- expectations ---

_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
_ONE_CHUNK = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
_UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nhello"
_FRAMINGS: dict[str, tuple[Behaviour, int]] = {
    "length": (always(SMALL), len(SMALL)),
    "in pieces": (always(SMALL[:-3], SMALL[-3:]), len(SMALL)),
    "chunked": (always(_CHUNKED[:60], _CHUNKED[60:]), len(_CHUNKED)),
    "until close": (once(_UNTIL_CLOSE), len(_UNTIL_CLOSE)),
}
_DIGEST = hashlib.sha256(b"hello").hexdigest()
_EXPECTED: list[tuple[Expect, str]] = [
    (Expect(statuses=(200,), contains="ell", matches="^h.*o$", length=5, sha256=_DIGEST), ""),
    (Expect(statuses=(201, 204)), "status"),
    (Expect(length=4), "length"),
    (Expect(contains="hullo"), "contains"),
    (Expect(matches="^ello"), "matches"),
    (Expect(sha256="0" * 64), "digest"),
    (Expect(statuses=(404,), sha256="0" * 64), "status"),
]


@pytest.mark.parametrize("poller", POLLERS)
@pytest.mark.parametrize("framing", _FRAMINGS)
async def test_failed_expectations_are_counted_by_kind(framing: str, poller: str) -> None:
    behaviour, size = _FRAMINGS[framing]
    async with serving(behaviour) as server:
        for expect, kind in _EXPECTED:
            outcome = await engine_load(plan(server.url, requests=12, expect=expect), poller)
            assert outcome.unexpected == ({kind: 12} if kind else {})
            assert outcome.statuses == {200: 12}
            assert outcome.errors == {}
            assert outcome.total("body_bytes") == 12 * 5
            assert outcome.total("bytes_received") == 12 * size


async def test_varying_length_is_counted_without_failure() -> None:
    async def behave(client: ClientConnection) -> None:
        for number in range(30):
            await client.request()
            size = 5 + number % 3
            framing = b"Content-Length: %d\r\n\r\n%s" if number % 2 else _ONE_CHUNK
            await client.send(b"HTTP/1.1 200 OK\r\n" + framing % (size, b"x" * size))

    outcome, _ = await engine_run(behave, requests=30, concurrency=1)
    assert outcome.total("length_mismatches") == 20
    assert outcome.statuses == {200: 30}
    assert outcome.errors == outcome.unexpected == {}
    assert outcome.total("body_bytes") == 30 * 6


async def test_received_bytes_of_partial_bodies_are_counted() -> None:
    outcome, _ = await engine_run(
        once(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"), requests=7, keepalive=False
    )
    assert outcome.errors == {"closed_early": 7}
    assert outcome.total("body_bytes") == 35


# --- alternative connections to the target ---


async def test_connect_to_keeps_host_header() -> None:
    seen: list[bytes] = []
    async with serving(recording(seen)) as server:
        load_plan = plan("http://web1.example:81/", connect_to=f"127.0.0.1:{server.port}", requests=3)
        found = await preflight(load_plan)
        assert found.address == ("127.0.0.1", server.port)
        outcome = await load(load_plan)
        assert outcome.total("completed") == 3
        await engine_load(plan(server.url, headers=(("Host", "other"),), requests=1))
    assert all(b"\r\nHost: web1.example:81\r\n" in request for request in seen[:-1])
    assert b"\r\nHost: other\r\n" in seen[-1]


async def test_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "web.sock")
    async with serving(always(SMALL), path=path):
        for values in ({}, {"keepalive": False}, {"rate": 200.0}):
            load_plan = plan("http://web1/", unix=path, requests=20, **values)
            outcome = await load(load_plan)
            assert outcome.statuses == {200: 20}
            assert outcome.started.addresses == (await preflight(load_plan)).shown == (path,)
    with pytest.raises(TargetError, match="unreachable"):
        await preflight(plan("http://web1/", unix=str(tmp_path / "none.sock")))


@pytest.mark.parametrize(
    ("url", "connect_to", "address"),
    [
        ("http://[::1]:{port}/", "", "::1"),
        ("http://[::1%251]:{port}/", "", "::1%lo"),
        ("http://[::1%1]:{port}/", "", "::1%lo"),
        ("http://[::1]:{port}/", "[::1%1]:{port}", "::1%lo"),
    ],
)
async def test_ipv6_zone_is_used_to_connect_and_not_sent(url: str, connect_to: str, address: str) -> None:
    heads: list[bytes] = []

    async def behave(client: ClientConnection) -> None:
        while True:
            heads.append(await client.request())
            await client.send(SMALL)

    async with serving(behave, address="::1") as server:
        url, connect_to = (text.format(port=server.port) for text in (url, connect_to))
        load_plan = plan(url, connect_to=connect_to, requests=3)
        found = await preflight(load_plan)
        outcome = await load(load_plan)
    assert outcome.statuses == {200: 3}
    assert outcome.started.addresses == found.shown == (address,)
    assert all(b"\r\nHost: [::1]:%d\r\n" % server.port in head for head in heads)


async def test_local_addresses_are_used_in_turn() -> None:
    peers: list[str] = []

    async def behave(client: ClientConnection) -> None:
        peers.append(client.writer.get_extra_info("peername")[0])
        await client.request()
        await client.send(SMALL)

    addresses = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
    async with serving(behave) as server:
        load_plan = plan(server.url, local_addresses=addresses, requests=30, keepalive=False, workers=2)
        outcome = await load(load_plan)
        assert (await preflight(load_plan)).status == 200
    assert outcome.errors == {}
    assert Counter(peers[:30]) == dict.fromkeys(addresses, 10)
