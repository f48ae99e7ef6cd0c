"""Recordings are read back, complete or cut short; other files are refused; secrets of a profile reach no recording."""

import asyncio
import base64
import resource
import sqlite3
import stat
import zlib
from collections.abc import Iterable
from operator import ge
from pathlib import Path

import pytest

from cockpit.model.clock import Clock
from cockpit.model.errors import RecordingError
from cockpit.model.events import AnyEvent, encode
from cockpit.model.fold.fold import fold_all
from cockpit.model.host.samples import HostConfig, StatusPage
from cockpit.model.knobs import Knob
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.recording import writer as recording_writer
from cockpit.recording.packing import decompressed
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from tests.hosts.pages import PAGES
from tests.load.servers import SMALL, ClientConnection, serving
from tests.recording import kills
from tests.session.events import small_session


def recorded(path: Path, events: Iterable[AnyEvent] | None = None) -> Path:
    """Record the events, by default a small session."""
    writer = RecordingWriter(path)
    for event in small_session() if events is None else events:
        writer.record([event])
    writer.close()
    assert writer.trouble == ""
    return path


def test_events_are_read_in_order_of_arrival(tmp_path: Path) -> None:
    path = recorded(tmp_path / "s.cockpit")
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.cockpit"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with Recording(path) as recording:
        assert list(recording.events()) == list(small_session())
        assert recording.end == 60.0
        assert recording.started.name == "small"
    database = sqlite3.connect(path)
    kinds = dict(database.execute("SELECT kind, count(*) FROM events GROUP BY kind"))
    assert (kinds["tick"], kinds["run_started"], kinds["note"]) == (400, 2, 2)
    database.execute("UPDATE events SET body = x'00ff' WHERE seq = 10")
    database.commit()
    database.close()
    with Recording(path) as recording:
        events = list(small_session())
        assert list(recording.events()) == [*events[:9], *events[10:]]
        assert recording.damage == "1 event from 00:00:05 to 00:00:05 is damaged and left out: wrong checksum"


def test_recording_in_progress_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "s.cockpit"
    writer = RecordingWriter(path)
    events = list(small_session())
    writer.record(events[:50])
    while True:
        try:
            with Recording(path) as recording:
                assert list(recording.events()) == events[:50]
            break
        except RecordingError as error:
            assert "has no events" in str(error)
    writer.close()


@pytest.mark.parametrize("seed", [1, 3])
def test_kill_9_loses_less_than_a_second(seed: int, tmp_path: Path) -> None:
    """Before and after the first page. On a busy machine an attempt may lose more: one of five must pass."""
    for attempt in range(5):
        killed = kills.killed(tmp_path / f"{attempt}.cockpit", seed, 10.0)
        assert killed.opened, killed
        if killed.missing <= 1.0:
            return
    pytest.fail(str(killed))


def test_unwritable_path_is_refused_immediately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecordingError, match="No such file or directory"):
        RecordingWriter(tmp_path / "none" / "s.cockpit")
    recorded(tmp_path / "s.cockpit")
    with pytest.raises(RecordingError, match="exists already"):
        RecordingWriter(tmp_path / "s.cockpit")
    monkeypatch.setattr(recording_writer, "TABLES", "no SQL")
    with pytest.raises(RecordingError, match="cannot create the recording"):
        RecordingWriter(tmp_path / "t.cockpit")
    assert not (tmp_path / "t.cockpit").exists()


def test_full_disk_is_reported_and_session_continues(tmp_path: Path) -> None:
    """A file size limit of the process makes writes fail, too."""
    writer = RecordingWriter(tmp_path / "s.cockpit")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, limits[1]))
    try:
        writer.record(list(small_session()))
        writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert writer.trouble.startswith("s.cockpit: ") and "events" in writer.trouble


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("hello " * 1000)
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE events (t)")
    other.commit()
    other.close()
    newer = sqlite3.connect(recorded(tmp_path / "newer"))
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    messages = {
        "none": "no such recording",
        "empty": "is not a cockpit recording",
        "text": "cannot be read as a recording",
        "other": "is not a cockpit recording",
        "newer": "written by a newer cockpit",
        ".": "is a folder",
    }
    for name, message in messages.items():
        with pytest.raises(RecordingError, match=message):
            Recording(tmp_path / name)


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
            status, body = ("401 Unauthorized", "") if len(pages) == 1 else ("200 OK", PAGES["nginx"])
            await client.send(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    async with serving(behave) as server:
        source = LiveSource(profile(server.url, tmp_path), Clock())
        session = Session(source, RecordingWriter(path))
        running = asyncio.create_task(session.run())

        async def until(condition) -> None:  # type: ignore[no-untyped-def]
            await asyncio.wait_for(session.until(condition), 120)

        await until(lambda state: bool(state.knobs) and state.knobs["Token"].known)
        # The second command starts again after it has ended.
        await until(lambda state: all(map(ge, (len(tail.lines) for tail in state.hosts["here"].tails), (2, 1))))
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
