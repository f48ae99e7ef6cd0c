"""Dialogs for questions of hosts: shown, answered, declined, and closed if the host no longer waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from cockpit.hosts.prompts import PromptQueue, Question, UnknownHostKey
from cockpit.model.clock import Clock
from cockpit.model.events import HostSample, encode
from cockpit.model.hosts import HostConfig
from cockpit.model.load import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from cockpit.tui.app import CockpitApp
from cockpit.tui.dialogs.host_prompt import HostPromptScreen
from tests.hosts.sshd import Sshd, locked, public
from tests.tui.driving import main, running_app, screen_text, until

KEY = UnknownHostKey(
    where="web1:22",
    kind="ssh-ed25519",
    fingerprint="SHA256:7jAhx/wAlSyhWrJd1FH7MD6VVUz2TDjk6KEGqS2qPEQ",
    file=Path("/home/me/.ssh/known_hosts"),
    line="web1 ssh-ed25519 AAAA",
)
PASSPHRASE, PASSWORD = "correct-horse-42", "battery-staple-43"


def make_question(key: UnknownHostKey | None = None) -> Question:
    return Question("web1", "passphrase of \x1b[31mkey", key, asyncio.get_running_loop().create_future())


def dialog_text(pilot: Pilot[object]) -> str:
    """Return the text of the top dialog."""
    return "\n".join(str(static.render()) for static in pilot.app.screen.query(Static))


async def open_question(pilot: Pilot[object]) -> Question:
    """Wait for an open question dialog, and return its question."""

    def is_open() -> bool:
        screen = pilot.app.screen
        return isinstance(screen, HostPromptScreen) and not screen.question.given.done() and screen.is_mounted

    await until(pilot, is_open)
    assert isinstance(pilot.app.screen, HostPromptScreen)
    return pilot.app.screen.question


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_secret_input_is_masked(size: tuple[int, int]) -> None:
    async with running_app(size=size) as (pilot, source):
        source.controls.question = question = make_question()
        await open_question(pilot)
        assert "web1: passphrase of ·[31mkey" in dialog_text(pilot)
        await pilot.press(*"s3cret")
        assert "s3cret" not in pilot.app.export_screenshot()
        assert pilot.app.screen.query_one(Input).password
        await pilot.press("enter")
        assert await question.given == "s3cret"
        source.controls.question = None
        await until(pilot, lambda: pilot.app.screen is main(pilot.app))


async def test_escape_declines_question() -> None:
    async with running_app() as (pilot, source):
        source.controls.question = question = make_question(KEY)
        await open_question(pilot)
        await pilot.press("escape")
        assert await question.given is None


async def test_host_key_is_accepted_only_by_full_yes() -> None:
    async with running_app() as (pilot, source):
        source.controls.question = question = make_question(KEY)
        await open_question(pilot)
        for part in (KEY.where, KEY.kind, KEY.fingerprint, str(KEY.file), KEY.line):
            assert part in dialog_text(pilot)
        await pilot.press("y", "enter")
        await pilot.pause()
        assert not question.given.done()
        await pilot.press(*"yes", "enter")
        assert await question.given is True


async def test_question_waits_for_open_dialog_and_closes_if_withdrawn() -> None:
    async with running_app() as (pilot, source):
        await pilot.press("question_mark")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 2)
        source.controls.question = make_question()
        main(pilot.app).frame()
        assert not isinstance(pilot.app.screen, HostPromptScreen)
        await pilot.press("escape")
        await open_question(pilot)
        source.controls.question = None
        await until(pilot, lambda: pilot.app.screen is main(pilot.app))


@pytest.fixture
async def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sshd]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    directory = tmp_path / "sshd"
    directory.mkdir()
    server = await Sshd(directory).start()
    yield server
    await server.stop()


@asynccontextmanager
async def live_app(sshd: Sshd, recording: Path, *hosts: str) -> AsyncIterator[tuple[Pilot[object], Session]]:
    """Run the app on a live session that watches these hosts of ssh_config."""
    configs = tuple(HostConfig(name=name, ssh=name, interval=0.2) for name in hosts)
    profile = Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/"), hosts=configs)
    source = LiveSource(profile, Clock(), ssh_config=sshd.ssh_config, questions=PromptQueue())
    session = Session(source, RecordingWriter(recording))
    async with CockpitApp(session).run_test(size=(120, 40)) as pilot:
        yield pilot, session


def sample_count(session: Session, name: str) -> int:
    return len(session.state.hosts[name].points)


async def test_answers_connect_hosts_and_secrets_are_not_recorded(sshd: Sshd, tmp_path: Path) -> None:
    """Watch a host with an unknown key and a passphrase, and a second host with a password."""
    (tmp_path / "other").mkdir()
    other = await Sshd(tmp_path / "other").start()
    other.client_key.unlink()
    other.password = PASSWORD
    config = other.ssh_config.read_text().replace("Host web", "Host app")
    sshd.ssh_config.write_text(sshd.ssh_config.read_text() + config)
    encrypt_key(sshd)
    sshd.known_hosts.unlink()
    recording = tmp_path / "s.cockpit"
    try:
        async with live_app(sshd, recording, "web", "app") as (pilot, session):
            for _ in range(3):
                question = await open_question(pilot)
                if question.key is not None:
                    answer = "yes"
                else:
                    answer = PASSPHRASE if "passphrase" in question.text else PASSWORD
                await pilot.press(*answer, "enter")
            await until(pilot, lambda: sample_count(session, "web") > 1 and sample_count(session, "app") > 1)
    finally:
        await other.stop()
    assert public(sshd.host_key) in sshd.known_hosts.read_text()
    with Recording(recording) as reader:
        events = list(reader.events())
    assert {event.host for event in events if isinstance(event, HostSample)} == {"web", "app"}
    assert [event.condition for event in events if getattr(event, "condition", "") == "asking"] == ["asking"] * 3
    stored = recording_bytes(tmp_path) + b"".join(encode(event) for event in events)
    assert PASSPHRASE.encode() not in stored
    assert PASSWORD.encode() not in stored


def recording_bytes(directory: Path) -> bytes:
    """Return the contents of all files of the recording."""
    files = list(directory.glob("s.cockpit*"))
    assert files
    return b"".join(file.read_bytes() for file in files)


async def test_password_of_reconnecting_host_is_prompted_on_request(sshd: Sshd, tmp_path: Path) -> None:
    sshd.client_key.unlink()
    sshd.password = PASSWORD
    async with live_app(sshd, tmp_path / "s.cockpit", "web") as (pilot, session):
        await open_question(pilot)
        await pilot.press(*PASSWORD, "enter")
        await until(pilot, lambda: sample_count(session, "web") > 1)
        await sshd.stop()
        await until(pilot, lambda: session.state.hosts["web"].condition == "lost")
        await sshd.start()
        await until(pilot, lambda: session.state.hosts["web"].condition == "asking")
        await until(pilot, lambda: "answer hosts" in screen_text(pilot))
        assert session.controls.question is None
        assert pilot.app.screen is main(pilot.app)
        await pilot.press("k")
        await open_question(pilot)
        await pilot.press(*PASSWORD, "enter")
        await until(pilot, lambda: session.state.hosts["web"].condition == "up")
        assert "answer hosts" not in {action.label for action in session.controls.actions}


async def test_declined_host_is_prompted_again_on_request(sshd: Sshd, tmp_path: Path) -> None:
    encrypt_key(sshd)
    async with live_app(sshd, tmp_path / "s.cockpit", "web") as (pilot, session):
        await open_question(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: session.state.hosts["web"].condition == "refused")
        await until(pilot, lambda: "answer hosts" in screen_text(pilot))
        await pilot.press("k")
        await open_question(pilot)
        await pilot.press(*PASSPHRASE, "enter")
        await until(pilot, lambda: session.state.hosts["web"].condition == "up")
        await sshd.stop()
        await until(pilot, lambda: session.state.hosts["web"].condition == "lost")
        await sshd.start()
        await until(pilot, lambda: session.state.hosts["web"].condition == "up")
        assert pilot.app.screen is main(pilot.app)


def encrypt_key(sshd: Sshd) -> None:
    key = asyncssh.read_private_key(sshd.client_key)
    sshd.client_key.write_bytes(locked(key, PASSPHRASE))
