"""The dialogs for what hosts ask: seen, answered, refused, and gone when the host no longer waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from cockpit.hosts.prompts import OfferedKey, Question, Questions
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
from cockpit.tui.dialogs.asking import AskingScreen
from tests.hosts.sshd import Sshd, locked, public
from tests.tui.driving import driven, main, shown, until

KEY = OfferedKey(
    where="web1:22",
    kind="ssh-ed25519",
    fingerprint="SHA256:7jAhx/wAlSyhWrJd1FH7MD6VVUz2TDjk6KEGqS2qPEQ",
    file=Path("/home/me/.ssh/known_hosts"),
    line="web1 ssh-ed25519 AAAA",
)
PASSPHRASE, PASSWORD = "correct-horse-42", "battery-staple-43"


def asked(key: OfferedKey | None = None) -> Question:
    return Question("web1", "passphrase of \x1b[31mkey", key, asyncio.get_running_loop().create_future())


def dialog(pilot: Pilot[object]) -> str:
    """What the dialog on top says."""
    return "\n".join(str(static.render()) for static in pilot.app.screen.query(Static))


async def opened(pilot: Pilot[object]) -> Question:
    """The question of the dialog that is open, once there is one."""

    def waits() -> bool:
        screen = pilot.app.screen
        return isinstance(screen, AskingScreen) and not screen.question.given.done() and screen.is_mounted

    await until(pilot, waits)
    assert isinstance(pilot.app.screen, AskingScreen)
    return pilot.app.screen.question


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_a_secret_is_typed_unseen(size: tuple[int, int]) -> None:
    async with driven(size=size) as (pilot, source):
        source.controls.question = question = asked()
        await opened(pilot)
        assert "web1: passphrase of ·[31mkey" in dialog(pilot)
        await pilot.press(*"s3cret")
        assert "s3cret" not in pilot.app.export_screenshot()
        assert pilot.app.screen.query_one(Input).password
        await pilot.press("enter")
        assert await question.given == "s3cret"
        source.controls.question = None
        await until(pilot, lambda: pilot.app.screen is main(pilot.app))


async def test_escape_is_no() -> None:
    async with driven() as (pilot, source):
        source.controls.question = question = asked(KEY)
        await opened(pilot)
        await pilot.press("escape")
        assert await question.given is None


async def test_a_host_key_is_shown_and_takes_a_whole_yes() -> None:
    async with driven() as (pilot, source):
        source.controls.question = question = asked(KEY)
        await opened(pilot)
        for part in (KEY.where, KEY.kind, KEY.fingerprint, str(KEY.file), KEY.line):
            assert part in dialog(pilot)
        await pilot.press("y", "enter")
        await pilot.pause()
        assert not question.given.done()
        await pilot.press(*"yes", "enter")
        assert await question.given is True


async def test_no_dialog_opens_upon_another_and_one_goes_when_nobody_waits() -> None:
    async with driven() as (pilot, source):
        await pilot.press("question_mark")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 2)
        source.controls.question = asked()
        main(pilot.app).frame()
        assert not isinstance(pilot.app.screen, AskingScreen)
        await pilot.press("escape")
        await opened(pilot)
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
async def cockpit(sshd: Sshd, recording: Path, *hosts: str) -> AsyncIterator[tuple[Pilot[object], Session]]:
    """The cockpit on a live session that watches these hosts of ssh_config."""
    configs = tuple(HostConfig(name=name, ssh=name, interval=0.2) for name in hosts)
    profile = Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/"), hosts=configs)
    source = LiveSource(profile, Clock(), ssh_config=sshd.ssh_config, questions=Questions())
    session = Session(source, RecordingWriter(recording))
    async with CockpitApp(session).run_test(size=(120, 40)) as pilot:
        yield pilot, session


def points(session: Session, name: str) -> int:
    return len(session.state.hosts[name].points)


async def test_from_first_question_to_samples_and_no_secret_is_kept(sshd: Sshd, tmp_path: Path) -> None:
    """A host whose key is unknown and whose login takes a passphrase, and another that takes a password."""
    (tmp_path / "other").mkdir()
    other = await Sshd(tmp_path / "other").start()
    other.client_key.unlink()
    other.password = PASSWORD
    config = other.ssh_config.read_text().replace("Host web", "Host app")
    sshd.ssh_config.write_text(sshd.ssh_config.read_text() + config)
    lock(sshd)
    sshd.known_hosts.unlink()
    recording = tmp_path / "s.cockpit"
    try:
        async with cockpit(sshd, recording, "web", "app") as (pilot, session):
            for _ in range(3):
                question = await opened(pilot)
                if question.key is not None:
                    answer = "yes"
                else:
                    answer = PASSPHRASE if "passphrase" in question.text else PASSWORD
                await pilot.press(*answer, "enter")
            await until(pilot, lambda: points(session, "web") > 1 and points(session, "app") > 1)
    finally:
        await other.stop()
    assert public(sshd.host_key) in sshd.known_hosts.read_text()
    with Recording(recording) as kept:
        events = list(kept.events())
    assert {event.host for event in events if isinstance(event, HostSample)} == {"web", "app"}
    assert [event.condition for event in events if getattr(event, "condition", "") == "asking"] == ["asking"] * 3
    kept_bytes = contents(tmp_path) + b"".join(encode(event) for event in events)
    assert PASSPHRASE.encode() not in kept_bytes
    assert PASSWORD.encode() not in kept_bytes


def contents(directory: Path) -> bytes:
    """All that the recording consists of, as it lies on the disk."""
    files = list(directory.glob("s.cockpit*"))
    assert files
    return b"".join(file.read_bytes() for file in files)


async def test_a_host_that_is_back_waits_to_be_asked_for_its_password(sshd: Sshd, tmp_path: Path) -> None:
    sshd.client_key.unlink()
    sshd.password = PASSWORD
    async with cockpit(sshd, tmp_path / "s.cockpit", "web") as (pilot, session):
        await opened(pilot)
        await pilot.press(*PASSWORD, "enter")
        await until(pilot, lambda: points(session, "web") > 1)
        await sshd.stop()
        await until(pilot, lambda: session.state.hosts["web"].condition == "lost")
        await sshd.start()
        await until(pilot, lambda: session.state.hosts["web"].condition == "asking")
        await until(pilot, lambda: "answer hosts" in shown(pilot))
        assert session.controls.question is None
        assert pilot.app.screen is main(pilot.app)
        await pilot.press("k")
        await opened(pilot)
        await pilot.press(*PASSWORD, "enter")
        await until(pilot, lambda: session.state.hosts["web"].condition == "up")
        assert "answer hosts" not in {action.label for action in session.controls.actions}


async def test_a_host_left_alone_asks_again_when_it_is_wanted(sshd: Sshd, tmp_path: Path) -> None:
    lock(sshd)
    async with cockpit(sshd, tmp_path / "s.cockpit", "web") as (pilot, session):
        await opened(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: session.state.hosts["web"].condition == "refused")
        await until(pilot, lambda: "answer hosts" in shown(pilot))
        await pilot.press("k")
        await opened(pilot)
        await pilot.press(*PASSPHRASE, "enter")
        await until(pilot, lambda: session.state.hosts["web"].condition == "up")
        await sshd.stop()
        await until(pilot, lambda: session.state.hosts["web"].condition == "lost")
        await sshd.start()
        await until(pilot, lambda: session.state.hosts["web"].condition == "up")
        assert pilot.app.screen is main(pilot.app)


def lock(sshd: Sshd) -> None:
    key = asyncssh.read_private_key(sshd.client_key)
    sshd.client_key.write_bytes(locked(key, PASSPHRASE))
