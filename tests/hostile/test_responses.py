"""Any bytes from a server, in any chunks and with any ending: each request is counted exactly once."""

from __future__ import annotations

import asyncio
from contextlib import closing
from random import Random
from typing import Any

import pytest

from cockpit.load.request_metrics import RequestMetrics, add_counts
from cockpit.model.load import PathList
from tests.hostile.measuring import THOROUGH
from tests.hostile.responses import Response, response
from tests.load.pairs import Pairs
from tests.load.servers import SMALL, ClientConnection, engine_load, plan, serving

# Requests of a test. Development machines can test many more.
CASES = 40_000 if THOROUGH else 6_000
OK = Response(SMALL, intact=True, status=200, size=5, until_close=False)
ENDINGS = ("close", "close", "hold", "hold", "keep", "keep")


def _counted(counts: RequestMetrics) -> tuple[int, int, int]:
    """Numbers of completed, failed and timed requests; `settle` would spend half of the time on histograms."""
    harvest = counts.heads.harvest()
    add_counts(counts.statuses, harvest.statuses)
    counts.body += harvest.body
    latencies = counts.service.count + len(counts.whole) + len(counts.ends)
    return sum(counts.statuses.values()), sum(counts.errors.values()), latencies


class CheckedPairs(Pairs):
    """Checks after each request that it was counted exactly once."""

    def __init__(self, method: str) -> None:
        super().__init__(plan("http://127.0.0.1/x", requests=1, method=method))
        self._before = (0, 0, 0)

    @property
    def counts(self) -> RequestMetrics:
        return self.tally.per_request[0]

    def exchange(self, message: Response, chunks: list[bytes], ending: str) -> None:
        """Send a request, deliver its response in these chunks, and end the connection in this way."""
        self.begin()
        for chunk in chunks:
            if self.over:
                break
            self.deliver(chunk)
        if not self.over and (ending == "close" or message.until_close):
            self.end()
        if self.retrying:
            self.connect()
            self.deliver(SMALL)
        timed_out = not self.over
        if timed_out:
            self.connection.expire(100.0)
        self._check(timed_out)

    def _check(self, timed_out: bool) -> None:
        assert self.over
        counted = _counted(self.counts)
        completed, failed, latencies = (after - before for after, before in zip(counted, self._before, strict=True))
        self._before = counted
        assert (completed, failed) in {(1, 0), (0, 1)}
        assert latencies == completed + timed_out
        assert not (timed_out and completed)
        assert self.connections in (0, 1)


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_request_on_fuzzed_connection_is_counted_once(method: str) -> None:
    rng = Random(method)
    with closing(CheckedPairs(method)) as pairs:
        for case in range(CASES // 3):
            message = response(rng)
            # An idle connection that is closed before any response: the request may be retried.
            chunks = [] if rng.random() < 0.02 else message.split(rng)
            ending = rng.choice(ENDINGS)
            try:
                pairs.exchange(message, chunks, ending)
            except Exception as error:
                raise AssertionError(f"case {case}: {chunks!r}, {ending}") from error
        latencies = _counted(pairs.counts)[2]
        pairs.counts.flush_latencies()
        assert pairs.counts.service.count == latencies
        assert sum(pairs.counts.errors.values()) > CASES // 30
        assert sum(pairs.counts.statuses.values()) > CASES // 30
        assert {"malformed", "timeout", "closed_early", "closed_before_response"} >= set(pairs.counts.errors)
        if method == "GET":
            assert pairs.counts.retries > 0


def test_intact_response_is_complete_in_any_chunks() -> None:
    rng = Random(7)
    with closing(CheckedPairs("GET")) as pairs:
        for _ in range(CASES // 4):
            message = response(rng)
            if not message.intact:
                continue
            before, body = pairs.counts.statuses.get(message.status, 0), pairs.counts.body
            pairs.exchange(message, message.split(rng), "keep")
            assert pairs.counts.statuses[message.status] == before + 1, message
            assert pairs.counts.body - body == message.size, message
        assert pairs.counts.errors == {}


@pytest.mark.parametrize("ending", ["close", "hold"])
def test_truncation_at_any_byte_is_one_error(ending: str) -> None:
    rng = Random(11)
    with closing(CheckedPairs("POST")) as pairs:
        for _ in range(60 if THOROUGH else 20):
            message = response(rng)
            if not message.intact or message.until_close or len(message.data) > 1000:
                continue
            for offset in range(len(message.data)):
                errors = sum(pairs.counts.errors.values())
                pairs.exchange(message, [message.data[:offset]] if offset else [], ending)
                assert sum(pairs.counts.errors.values()) == errors + 1, message.data[:offset]


MODELS: dict[str, dict[str, Any]] = {
    "closed": {"concurrency": 6},
    "closed, new connections": {"concurrency": 6, "keepalive": False},
    "open": {"rate": 1000.0, "max_in_flight": 6},
}


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("model", MODELS)
async def test_request_to_fuzzing_server_is_counted_once(model: str, method: str) -> None:
    requests, received = 600 if THOROUGH else 200, 0
    rng = Random(f"{model} {method}")

    async def serve(client: ClientConnection) -> None:
        nonlocal received
        for _ in range(rng.randrange(1, 6)):
            await client.request()
            received += 1
            message = response(rng)
            await client.send(*message.split(rng))
            if message.until_close:
                return
            if not message.intact:
                break
        end = rng.randrange(10)
        if end < 3:
            client.reset()
        elif end == 3:
            await asyncio.Event().wait()

    async with serving(serve) as server:
        paths = PathList(pattern=f"/{{1..{requests}}}", order="once")
        outcome = await engine_load(plan(server.url, method=method, paths=paths, timeout=0.2, **MODELS[model]))
    errors = sum(outcome.errors.values())
    assert outcome.total("sent") == outcome.total("completed") + errors == requests
    assert outcome.total("completed") == sum(outcome.statuses.values()) > 0
    timeouts = outcome.errors.get("timeout", 0) + outcome.errors.get("connect_timeout", 0)
    assert outcome.merged("service").count == outcome.total("completed") + timeouts
    assert received <= outcome.total("sent") + outcome.total("retries")
    assert outcome.total("retries") == 0 or method == "GET"
