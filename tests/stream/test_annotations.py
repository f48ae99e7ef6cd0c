"""Annotations posted to a webhook: each marker once, with the token; a failing webhook is disabled."""

from __future__ import annotations

import json

import pytest

from cockpit.model.errors import UsageError
from cockpit.model.fold import fold_all
from cockpit.stream.annotations import TOKEN, AnnotationStream
from tests.load.servers import SMALL, ClientConnection, serving
from tests.session.events import small_session

STATE = fold_all(small_session())
ERROR_500 = SMALL.replace(b"200 OK", b"500 Broken")


async def test_each_marker_is_sent_once_with_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "s3cret")
    requests: list[bytes] = []

    async def handle(client: ClientConnection) -> None:
        while True:
            requests.append(await client.request())
            await client.send(SMALL)

    async with serving(handle) as server:
        stream = AnnotationStream(server.url)
        early = [marker for marker in STATE.markers if marker.t < 30]
        await stream.send_new(fold_all(event for event in small_session() if event.t < 30))
        assert len(requests) == len(early) > 0
        await stream.close(STATE)
    assert stream.trouble == "" and len(requests) == len(STATE.markers)
    assert all(b"authorization: bearer s3cret" in request.lower() for request in requests)
    posted = [json.loads(request.partition(b"\r\n\r\n")[2]) for request in requests]
    assert STATE.started is not None
    wall = STATE.started.wall
    found = sorted((annotation["time"], tuple(annotation["tags"]), annotation["text"]) for annotation in posted)
    assert found == sorted((round(1000 * (wall + m.t)), ("cockpit", m.kind), m.text) for m in STATE.markers)


async def test_failing_webhook_is_disabled_after_three_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "s3cret")

    async def handle(client: ClientConnection) -> None:
        while True:
            await client.request()
            await client.send(ERROR_500)

    async with serving(handle) as server:
        stream = AnnotationStream(server.url)
        await stream.close(STATE)
        assert server.requests == min(3, len(STATE.markers))
    number = len(STATE.markers)
    assert stream.trouble == f"--annotate: 127.0.0.1: status 500; {number} of {number} markers not sent"


async def test_unreachable_webhook_is_reported() -> None:
    stream = AnnotationStream("http://127.0.0.1:1/api/annotations")
    await stream.close(STATE)
    assert stream.trouble.startswith("--annotate: 127.0.0.1: ")


@pytest.mark.parametrize(
    "url", ["", "grafana.example/api", "ftp://grafana.example/", "http://", "http://[::1", "http://[::1]:65536/"]
)
def test_invalid_webhook_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--annotate"):
        AnnotationStream(url)
