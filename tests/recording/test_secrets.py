"""Secrets of a profile reach neither events nor recordings, wherever they are printed."""

from __future__ import annotations

import asyncio
import base64
import sqlite3
import zlib
from pathlib import Path

from cockpit.model.clock import Clock
from cockpit.model.events import encode
from cockpit.model.fold import fold_all
from cockpit.model.hosts import HostConfig, StatusPage
from cockpit.model.knobs import Knob
from cockpit.model.load import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.recording.packing import decompressed
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from tests.hosts.pages import NGINX
from tests.load.servers import SMALL, ClientConnection, serving

BODY, BEARER, COOKIE, PASSWORD, KNOB, LOGIN = (
    f"hidden-{name}" for name in ("body", "bearer", "cookie", "password", "knob", "login")
)
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----"
LOGIN_HEADER = base64.b64encode(f"me:{LOGIN}".encode())


def profile(url: str, folder: Path) -> Profile:
    """Make a profile with a secret of each kind, and a host on which most of them are printed."""
    (folder / "conf").write_text(f"Token={KNOB}\n")
    host = HostConfig(
        name="here",
        interval=0.2,
        processes=("sleep",),
        tail=(f"echo Authorization: Bearer {BEARER}; printf {COOKIE}; sleep 1000", "echo words; exit 3"),
        status=(StatusPage(kind="nginx", url=f"{url}/status", auth=f"me:{LOGIN}"),),
    )
    plan = LoadPlan(
        url=url.replace("://", f"://user:{PASSWORD}@"),
        method="POST",
        headers=(("Authorization", f"Bearer {BEARER}"), ("Cookie", f"a=b; session={COOKIE}"), ("X-Plain", "shown")),
        body=f"{BODY} {KEY}",
        requests=20,
    )
    knob = Knob(
        name="Token", host="here", kind="keyvalue", file=str(folder / "conf"), key="Token", reload="true", secret=True
    )
    return Profile(name="x", plan=plan, hosts=(host,), knobs=(knob,))


def decompressed_content(path: Path) -> bytes:
    """Return the file's bytes, and its compressed values decompressed."""
    found = [path.read_bytes()]
    database = sqlite3.connect(path)
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        for row in database.execute(f"SELECT * FROM {table}"):
            for value in row:
                if isinstance(value, bytes):
                    found += [value, zlib.decompress(value) if table == "events" else decompressed(value)]
                else:
                    found.append(str(value).encode())
    database.close()
    return b"\n".join(found)


async def test_no_secret_reaches_recording(tmp_path: Path) -> None:
    path = tmp_path / "s.cockpit"
    pages: list[bytes] = []

    async def behave(client: ClientConnection) -> None:
        """Serve the load, and a status page, first without access."""
        while True:
            request = await client.request()
            if b"/status" not in request:
                await client.send(SMALL)
                continue
            pages.append(request)
            status, body = ("401 Unauthorized", "") if len(pages) == 1 else ("200 OK", NGINX)
            await client.send(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    async with serving(behave) as server:
        source = LiveSource(profile(server.url, tmp_path), Clock())
        session = Session(source, RecordingWriter(path))
        running = asyncio.create_task(session.run())

        async def until(condition) -> None:  # type: ignore[no-untyped-def]
            await asyncio.wait_for(session.until(condition), 120)

        await until(lambda state: bool(state.knobs) and state.knobs["Token"].known)
        await until(lambda state: [len(tail.lines) for tail in state.hosts["here"].tails] == [2, 1])
        await until(lambda state: state.hosts["here"].tails[1].detail == "exit status 3: words")
        await until(lambda state: state.hosts["here"].pages[0].t is not None)
        await source.load.start()
        await until(lambda state: state.runs == 1 and state.running is None)
        await source.tuning.apply({"Token": f"{KNOB}-next"})
        await until(lambda state: bool(state.changes and state.changes[0].outcome))
        await source.close()
        await running
    assert (tmp_path / "conf").read_text() == f"Token={KNOB}-next\n"
    assert any(LOGIN_HEADER in request for request in pages)
    with Recording(path) as recording:
        found = list(recording.events())
    assert fold_all(found) == session.state
    events, content = b"\n".join(map(encode, found)), decompressed_content(path)
    assert b"Authorization: (not recorded)" in events and b"change_begun" in events and b"exit status 3" in events
    for secret in (*(text.encode() for text in (BODY, BEARER, COOKIE, PASSWORD, KNOB, LOGIN, KEY)), LOGIN_HEADER):
        assert secret not in events
        assert secret not in content, secret
