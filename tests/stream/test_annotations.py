"""Markers sent to a webhook: each once, with the token, and a webhook that fails is left alone."""

from __future__ import annotations

import json

import pytest

from cockpit.model.errors import UsageError
from cockpit.model.fold import fold_all
from cockpit.stream.annotations import TOKEN, AnnotationStream
from tests.load.servers import SMALL, Conversation, serving
from tests.session.events import small_session

STATE = fold_all(small_session())
BROKEN = SMALL.replace(b"200 OK", b"500 Broken")


async def test_each_marker_is_sent_once_with_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "s3cret")
    requests: list[bytes] = []

    async def behave(talk: Conversation) -> None:
        while True:
            requests.append(await talk.request())
            await talk.send(SMALL)

    async with serving(behave) as server:
        stream = AnnotationStream(server.url)
        early = [marker for marker in STATE.markers if marker.t < 30]
        await stream.take(fold_all(event for event in small_session() if event.t < 30))
        assert len(requests) == len(early) > 0
        await stream.close(STATE)
    assert stream.trouble == "" and len(requests) == len(STATE.markers)
    assert all(b"authorization: bearer s3cret" in request.lower() for request in requests)
    said = [json.loads(request.partition(b"\r\n\r\n")[2]) for request in requests]
    assert STATE.started is not None
    wall = STATE.started.wall
    found = sorted((one["time"], tuple(one["tags"]), one["text"]) for one in said)
    assert found == sorted((round(1000 * (wall + m.t)), ("cockpit", m.kind), m.text) for m in STATE.markers)


async def test_a_webhook_that_fails_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "s3cret")

    async def behave(talk: Conversation) -> None:
        while True:
            await talk.request()
            await talk.send(BROKEN)

    async with serving(behave) as server:
        stream = AnnotationStream(server.url)
        await stream.close(STATE)
        assert server.requests == min(3, len(STATE.markers))
    assert stream.trouble.startswith("--annotate: 127.0.0.1: status 500: ") and "s3cret" not in stream.trouble


async def test_a_webhook_that_is_not_there_is_trouble() -> None:
    stream = AnnotationStream("http://127.0.0.1:1/api/annotations")
    await stream.close(STATE)
    assert stream.trouble.startswith("--annotate: 127.0.0.1: ")


@pytest.mark.parametrize(
    "url", ["", "grafana.example/api", "ftp://grafana.example/", "http://", "http://[::1", "http://[::1]:65536/"]
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--annotate"):
        AnnotationStream(url)
