"""Dialogs for questions of hosts: shown, answered, declined, and closed if the host no longer waits."""

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import mkdtemp

import asyncssh
import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from cockpit.hosts.ssh.prompts import HostPrompter, PromptQueue, Question, UnknownHostKey
from cockpit.model.clock import Clock
from cockpit.model.events import HostChanged, HostSample, encode
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from cockpit.tui.app import CockpitApp
from cockpit.tui.dialogs import prompt
from cockpit.tui.dialogs.host_prompt import HostPromptScreen
from tests import waiting
from tests.hosts.sshd import Sshd, locked, public
from tests.tui.driving import main, press, running_app, screen_text, until

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


async def test_keys_for_another_screen_answer_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt, "UNSEEN", math.inf)
    async with running_app(size=(80, 24)) as (pilot, source):
        source.controls.question = question = make_question()
        await open_question(pilot)
        await press(pilot, "enter", "escape", "q")
        await until(pilot, lambda: pilot.app.screen.query_one(Input).value == "")
        assert not question.given.done()


async def test_closed_queue_declines_open_and_later_questions() -> None:
    queue = PromptQueue()
    asking = HostPrompter(queue, lambda *_: None)
    first = asyncio.create_task(asking.trust("web1", KEY))
    await waiting.until(lambda: queue.first)
    quiet = HostPrompter(queue, lambda *_: None)
    quiet.quiet()
    second = asyncio.create_task(quiet.secret("web1", "password"))
    await waiting.until(lambda: queue.awaited)
    queue.close()
    assert await first is False and await second is None
    assert await quiet.trust("web1", KEY) is False, "without a wait for the user"


async def test_questions_are_answered_declined_and_withdrawn() -> None:
    async with running_app(size=(80, 24)) as (pilot, source):
        await pilot.press("question_mark")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 2)
        source.controls.question = question = make_question()
        main(pilot.app).frame()
        assert not isinstance(pilot.app.screen, HostPromptScreen), "it waits for the open dialog"
        await pilot.press("escape")
        await open_question(pilot)
        assert "web1: passphrase of ·[31mkey" in dialog_text(pilot)
        await pilot.press(*"s3cret")
        assert "s3cret" not in pilot.app.export_screenshot()
        assert pilot.app.screen.query_one(Input).password
        await pilot.press("enter")
        assert await question.given == "s3cret"
        source.controls.question = question = make_question(KEY)
        await open_question(pilot)
        for part in (KEY.where, KEY.kind, KEY.fingerprint, str(KEY.file), KEY.line):
            assert part in dialog_text(pilot)
        await pilot.press("y", "enter")
        await pilot.pause()
        assert not question.given.done(), "only the full word accepts a key"
        await pilot.press(*"yes", "enter")
        assert await question.given is True
        source.controls.question = question = make_question(KEY)
        await open_question(pilot)
        await pilot.press("escape")
        assert await question.given is None
        source.controls.question = make_question()
        await open_question(pilot)
        source.controls.question = None
        await until(pilot, lambda: pilot.app.screen is main(pilot.app))


@pytest.fixture
async def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Sshd, Sshd]]:
    """Run a server with an unknown key and an encrypted client key, and a server that accepts a password."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    web, app = [await Sshd(Path(mkdtemp(dir=tmp_path))).start() for _ in range(2)]
    web.client_key.write_bytes(locked(asyncssh.read_private_key(web.client_key), PASSPHRASE))
    web.known_hosts.unlink()
    app.client_key.unlink()
    app.password = PASSWORD
    yield web, app
    for server in (web, app):
        await server.stop()


async def test_hosts_are_answered_at_start_then_only_on_request(servers: tuple[Sshd, Sshd], tmp_path: Path) -> None:
    """Decline the passphrase first; after a lost connection, only the password is needed again."""
    web, app = servers
    config = tmp_path / "config"
    config.write_text(web.ssh_config.read_text() + app.ssh_config.read_text().replace("Host web", "Host app"))
    hosts = tuple(HostConfig(name=name, ssh=name, interval=0.2) for name in ("web", "app"))
    profile = Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/"), hosts=hosts)
    source = LiveSource(profile, Clock(), ssh_config=config, questions=PromptQueue())
    session = Session(source, RecordingWriter(tmp_path / "s.cockpit"))
    async with CockpitApp(session).run_test(size=(120, 40)) as pilot:

        async def answer(passphrase: str = PASSPHRASE) -> None:
            question = await open_question(pilot)
            secret = passphrase if "passphrase" in question.text else PASSWORD
            await pilot.press(*("yes" if question.key else secret), "enter" if secret else "escape")

        async def answer_on_request() -> None:
            await until(pilot, lambda: "answer hosts" in screen_text(pilot))
            assert session.controls.question is None
            assert pilot.app.screen is main(pilot.app)
            await pilot.press("k")
            await answer()
            await conditions("up", "up")
            assert "answer hosts" not in {action.label for action in session.controls.actions}

        async def conditions(*expected: str) -> None:
            await until(pilot, lambda: tuple(host.condition for host in session.state.hosts.values()) == expected)

        for _ in range(3):
            await answer(passphrase="")
        await conditions("refused", "up")
        await answer_on_request()
        assert public(web.host_key) in web.known_hosts.read_text()
        for server in servers:
            await server.stop()
        await conditions("lost", "lost")
        for server in servers:
            await server.start()
        await conditions("up", "asking")
        await answer_on_request()
        await until(pilot, lambda: all(host.points for host in session.state.hosts.values()))
    with Recording(tmp_path / "s.cockpit") as reader:
        events = list(reader.events())
    assert {event.host for event in events if isinstance(event, HostSample)} == {"web", "app"}
    asked = [event.host for event in events if isinstance(event, HostChanged) and event.condition == "asking"]
    assert (asked.count("web"), asked.count("app")) == (3, 2)
    stored = recording_bytes(tmp_path) + b"".join(map(encode, events))
    assert PASSPHRASE.encode() not in stored
    assert PASSWORD.encode() not in stored


def recording_bytes(directory: Path) -> bytes:
    """Return the contents of all files of the recording."""
    files = list(directory.glob("s.cockpit*"))
    assert files
    return b"".join(file.read_bytes() for file in files)
