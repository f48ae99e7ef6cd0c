"""Whatever bytes a server sends, in whatever pieces, and however it ends: each request is counted exactly once."""

from __future__ import annotations

import asyncio
from contextlib import closing
from random import Random
from typing import Any

import pytest

from cockpit.load.request_metrics import RequestMetrics, add_counts
from cockpit.model.load import PathList
from tests.hostile.responses import Response, response
from tests.load.pairs import Pairs
from tests.load.servers import SMALL, Conversation, engine_load, plan, serving

CASES = 40_000
OK = Response(SMALL, whole=True, status=200, size=5, until_close=False)
ENDINGS = ("close", "close", "hold", "hold", "keep", "keep")


def _counted(counts: RequestMetrics) -> tuple[int, int, int]:
    """Completed, failed, and latencies, without `Lane.settle`: a histogram per request takes half of the time."""
    harvest = counts.heads.harvest()
    add_counts(counts.statuses, harvest.statuses)
    counts.body += harvest.body
    latencies = counts.service.count + len(counts.whole) + len(counts.ends)
    return sum(counts.statuses.values()), sum(counts.errors.values()), latencies


class Checked(Pairs):
    """Checks after each request that it was counted once."""

    def __init__(self, method: str) -> None:
        super().__init__(plan("http://127.0.0.1/x", requests=1, method=method))
        self._before = (0, 0, 0)

    @property
    def counts(self) -> RequestMetrics:
        return self.tally.per_request[0]

    def exchange(self, answer: Response, pieces: list[bytes], ending: str) -> None:
        """A request, its response in these pieces, and how the server ends."""
        self.begin()
        for piece in pieces:
            if self.over:
                break
            self.deliver(piece)
        if not self.over and (ending == "close" or answer.until_close):
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
        completed, failed, latencies = (now - then for now, then in zip(counted, self._before, strict=True))
        self._before = counted
        assert (completed, failed) in {(1, 0), (0, 1)}
        assert latencies == completed + timed_out
        assert not (timed_out and completed)
        assert self.connections in (0, 1)


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_each_request_over_a_fuzzed_connection_is_counted_once(method: str) -> None:
    chance = Random(method)
    with closing(Checked(method)) as pairs:
        for case in range(CASES // 3):
            answer = response(chance)
            pieces, ending = answer.pieces(chance), chance.choice(ENDINGS)
            try:
                pairs.exchange(answer, pieces, ending)
            except Exception as error:
                raise AssertionError(f"case {case}: {pieces!r}, {ending}") from error
        latencies = _counted(pairs.counts)[2]
        pairs.counts.settle()
        assert pairs.counts.service.count == latencies
        assert sum(pairs.counts.errors.values()) > CASES // 30
        assert sum(pairs.counts.statuses.values()) > CASES // 30
        assert {"malformed", "timeout", "closed_early", "closed_before_response"} >= set(pairs.counts.errors)
        if method == "GET":
            assert pairs.counts.retries > 0


def test_an_intact_response_is_complete_whatever_its_pieces() -> None:
    chance = Random(7)
    with closing(Checked("GET")) as pairs:
        for _ in range(CASES // 4):
            answer = response(chance)
            if not answer.whole:
                continue
            before, body = pairs.counts.statuses.get(answer.status, 0), pairs.counts.body
            pairs.exchange(answer, answer.pieces(chance), "keep")
            assert pairs.counts.statuses[answer.status] == before + 1, answer
            assert pairs.counts.body - body == answer.size, answer
        assert pairs.counts.errors == {}


@pytest.mark.parametrize("ending", ["close", "hold"])
def test_a_cut_at_each_byte_is_one_error(ending: str) -> None:
    chance = Random(11)
    with closing(Checked("POST")) as pairs:
        for _ in range(60):
            answer = response(chance)
            if not answer.whole or answer.until_close or len(answer.data) > 1000:
                continue
            for at in range(len(answer.data)):
                errors = sum(pairs.counts.errors.values())
                pairs.exchange(answer, [answer.data[:at]] if at else [], ending)
                assert sum(pairs.counts.errors.values()) == errors + 1, answer.data[:at]


MODELS: dict[str, dict[str, Any]] = {
    "closed": {"concurrency": 6},
    "closed, new connections": {"concurrency": 6, "keepalive": False},
    "open": {"rate": 3000.0, "max_in_flight": 6},
}


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("model", MODELS)
async def test_each_request_to_a_fuzzing_server_is_counted_once(model: str, method: str) -> None:
    requests, received = 600, 0
    chance = Random(f"{model} {method}")

    async def behave(talk: Conversation) -> None:
        nonlocal received
        for _ in range(chance.randrange(1, 6)):
            await talk.request()
            received += 1
            answer = response(chance)
            await talk.send(*answer.pieces(chance))
            if answer.until_close:
                return
            if not answer.whole:
                break
        way = chance.randrange(10)
        if way < 3:
            talk.reset()
        elif way == 3:
            await asyncio.Event().wait()

    async with serving(behave) as server:
        paths = PathList(pattern=f"/{{1..{requests}}}", order="once")
        outcome = await engine_load(plan(server.url, method=method, paths=paths, timeout=0.2, **MODELS[model]))
    errors = sum(outcome.errors.values())
    assert outcome.total("sent") == outcome.total("completed") + errors == requests
    assert outcome.total("completed") == sum(outcome.statuses.values()) > 0
    timeouts = outcome.errors.get("timeout", 0) + outcome.errors.get("connect_timeout", 0)
    assert outcome.merged("service").count == outcome.total("completed") + timeouts
    assert received <= outcome.total("sent") + outcome.total("retries")
    assert outcome.total("retries") == 0 or method == "GET"
