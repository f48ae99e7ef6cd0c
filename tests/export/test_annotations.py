"""Annotations posted to a webhook, each marker once; a failing webhook is disabled. Streams at the end of a session."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.analysis.words.timeline import marker_text
from cockpit.export.annotations import TOKEN, AnnotationStream
from cockpit.export.follow import streaming
from cockpit.model.errors import UsageError
from cockpit.model.fold.fold import fold_all
from tests.load.servers import SMALL, ClientConnection, once, serving
from tests.session.events import small_session

STATE = fold_all(small_session())


async def test_each_marker_is_sent_once_with_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "s3cret\r\n")
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
    assert found == sorted((round(1000 * (wall + m.t)), ("cockpit", m.kind), marker_text(m)) for m in STATE.markers)


async def test_failing_webhook_is_disabled_after_three_requests() -> None:
    async def handle(client: ClientConnection) -> None:
        while True:
            await client.request()
            await client.send(SMALL.replace(b"200 OK", b"500 Broken"))

    number = len(STATE.markers)
    async with serving(handle) as server:
        stream = AnnotationStream(server.url)
        await stream.close(STATE)
        assert server.requests == min(3, number)
    assert stream.trouble == f"--annotate: 127.0.0.1: status 500; {number} of {number} markers not sent"
    unreachable = AnnotationStream("http://127.0.0.1:1/api/annotations")
    await unreachable.close(STATE)
    assert unreachable.trouble.startswith("--annotate: 127.0.0.1: ")


async def test_connection_is_closed_if_the_end_is_cancelled() -> None:
    async with serving(once(hold=True)) as server:
        stream = AnnotationStream(server.url)
        closing = asyncio.create_task(stream.close(STATE))
        await server.until(lambda: server.requests == 1)
        closing.cancel()
        await asyncio.wait([closing])
    assert stream._client.is_closed


@pytest.mark.parametrize(
    "url", ["", "grafana.example/api", "ftp://grafana.example/", "http://", "http://[::1", "http://[::1]:65536/"]
)
def test_invalid_webhook_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--annotate"):
        AnnotationStream(url)


@pytest.mark.parametrize("token", ["té", "s3\rcret"])
def test_token_of_other_characters_is_refused(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_ANNOTATE_TOKEN", token)
    with pytest.raises(UsageError, match="COCKPIT_ANNOTATE_TOKEN: a token has only printable ASCII characters"):
        AnnotationStream("http://127.0.0.1:1/")


async def test_what_is_being_sent_at_the_end_of_a_session_is_not_cut() -> None:
    begun, finish, calls = asyncio.Event(), asyncio.Event(), []

    async def send_new(state: object) -> None:
        begun.set()
        await finish.wait()
        calls.append("sent")

    async def close(state: object) -> None:
        calls.append("closed")

    session: Any = SimpleNamespace(revision=0, state=None)
    async with streaming(session, [SimpleNamespace(send_new=send_new, close=close, trouble="")]):
        await begun.wait()
        asyncio.get_running_loop().call_later(0.05, finish.set)
    assert calls == ["sent", "closed"]
