"""An interrupted change is detected when cockpit connects, and undone or finished after a question."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator

import pytest

from cockpit.cli.tune_output import resolve_interrupted
from cockpit.model.clock import Clock
from cockpit.model.errors import UsageError
from cockpit.model.events import Note
from cockpit.model.hosts import HostConfig
from cockpit.model.load import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.session.live import LiveSource
from cockpit.session.live_session import LiveSession
from cockpit.session.loop import Session
from cockpit.tuning.tuner import Tuner
from tests.servers import http_server
from tests.tuning.conftest import ORIGINAL, FaultyShell, Server, server, shell, until
from tests.tuning.test_pending import interrupted_change

__all__ = ["server", "shell"]

FINISHED = (ORIGINAL[0], b"KeepAlive Off")


@pytest.fixture
def url() -> Iterator[str]:
    with http_server() as base:
        yield base


@pytest.mark.parametrize(("answer", "expected"), [("undo", ORIGINAL), ("finish", FINISHED)])
async def test_interrupted_change_is_resolved_on_screen(
    server: Server, shell: FaultyShell, url: str, answer: str, expected: tuple[bytes, bytes]
) -> None:
    change = await interrupted_change(server, shell)
    knobs = (server.keep_alive(),)
    plan = LoadPlan(url=f"{url}/")
    profile = Profile(name="x", plan=plan, hosts=(HostConfig(name="web1"),), knobs=knobs)
    notes: list[str] = []
    source = LiveSource(profile, Clock())
    session = Session(
        source, listen=lambda events: notes.extend(event.text for event in events if isinstance(event, Note))
    )
    running = asyncio.create_task(session.run())
    await until(lambda: source.tuning.unfinished)
    name = change.name.rpartition("-")[2]
    assert any(f"change {name} of " in note and "is incomplete: its new values may be active" in note for note in notes)
    (action,) = [action for action in source.controls.actions if action.name == "unfinished"]
    assert "KeepAlive On → Off" in action.prompt and action.prompt.endswith("undo or finish")
    with pytest.raises(UsageError, match="type undo or finish"):
        await action.run("")
    await action.run(answer)
    assert server.bytes() == expected and not server.locked()
    assert not any(action.name == "unfinished" for action in source.controls.actions)
    await source.close()
    await running


async def ask_about_interrupted(server: Server) -> None:
    """Ask about the interrupted changes in a session without a screen."""
    plan = LoadPlan(url="http://127.0.0.1:9/")
    profile = Profile(name="x", plan=plan, hosts=(HostConfig(name="web1"),), knobs=(server.keep_alive(),))
    async with LiveSession(profile, check_target=False) as live:
        await live.hosts_up(["web1"])
        await resolve_interrupted(live.tuning, ["web1"])


@pytest.mark.parametrize(("answer", "expected"), [("u\n", ORIGINAL), ("finish\n", FINISHED), ("\n", None)])
async def test_interrupted_change_is_resolved_in_terminal(
    server: Server,
    shell: FaultyShell,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    expected: tuple[bytes, bytes] | None,
) -> None:
    await interrupted_change(server, shell)
    terminal, line = os.openpty()
    with os.fdopen(line) as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        os.write(terminal, answer.encode())
        await ask_about_interrupted(server)
    os.close(terminal)
    assert (
        "is incomplete: its new values may be active.\nundo, finish, or Enter to leave it: " in capsys.readouterr().err
    )
    if expected is None:
        (past,) = await Tuner().history(shell, "web1")
        await Tuner().force_undo(shell, "web1", past)
    else:
        assert server.bytes() == expected and not server.locked()


async def test_interrupted_change_is_only_reported_without_terminal(
    server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change = await interrupted_change(server, shell)
    with open(os.devnull) as nothing:  # noqa: ASYNC230, PTH123
        monkeypatch.setattr(sys, "stdin", nothing)
        await ask_about_interrupted(server)
    assert f"`cockpit tune PROFILE undo {change.name.rpartition('-')[2]}` rolls it back" in capsys.readouterr().err
    (past,) = await Tuner().history(shell, "web1")
    await Tuner().force_undo(shell, "web1", past)
