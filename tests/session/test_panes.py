"""Tails and status pages in a live session are recorded without secrets; the recording has the same final state."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cockpit.model.clock import Clock
from cockpit.model.events import encode
from cockpit.model.fold import fold_all
from cockpit.model.hosts import HostConfig, StatusPage
from cockpit.model.load import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from tests.hosts import pages
from tests.hosts.test_status import response, serving

SECRET = "open-sesame"
# `me:open-sesame` in Base64, as in the request header.
ENCODED = "bWU6b3Blbi1zZXNhbWU="


async def test_tails_and_pages_are_recorded_without_secrets(tmp_path: Path) -> None:
    file = tmp_path / "s.cockpit"
    async with serving(response("", "401 Unauthorized"), response(pages.NGINX)) as server:
        page = StatusPage(kind="nginx", url=f"http://127.0.0.1:{server.port}/", auth=f"me:{SECRET}")
        tails = ("printf 'one\\ntwo'; sleep 1000", "echo words; exit 3")
        host = HostConfig(name="here", interval=0.2, tail=tails, status=(page,))
        plan = LoadPlan(url=f"http://127.0.0.1:{server.port}/", requests=1)
        recorder = RecordingWriter(file)
        session = Session(LiveSource(Profile(name="x", plan=plan, hosts=(host,)), Clock()), recorder)
        running = asyncio.create_task(session.run())
        await asyncio.wait_for(
            session.until(
                lambda state: bool(
                    (here := state.hosts.get("here"))
                    and here.pages[0].t is not None
                    and [line.text for line in here.tails[0].lines] == ["one", "two"]
                    and here.tails[1].detail == "exit status 3: words"
                )
            ),
            60,
        )
        await session.source.close()
        await running
        await asyncio.to_thread(recorder.close)
    assert any(ENCODED.encode() in head for head in server.heads)
    with Recording(file) as recording:
        events = list(recording.events())
    assert fold_all(events) == session.state
    content = b"\n".join(encode(event) for event in events) + file.read_bytes()
    assert b"exit status 3" in content
    assert SECRET.encode() not in content and ENCODED.encode() not in content
