"""An interrupted change is detected when cockpit connects, and undone or finished after a question."""

import os
import sys

import pytest
from msgspec.structs import replace

from cockpit.cli.tune_output import resolve_interrupted
from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused, ChangeRolledBack, UsageError
from cockpit.model.events import Note
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.session.live import LiveSource
from cockpit.session.live_session import LiveSession
from cockpit.session.loop import Session
from cockpit.session.recovery import recover, restore
from cockpit.tuning.applied import ChangeFailed, HistoryState
from cockpit.tuning.change_options import ChangeOptions
from cockpit.tuning.pending import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.session.sessions import running
from tests.tuning.conftest import ORIGINAL, FaultyShell, Server, server, shell
from tests.tuning.test_pending import interrupted_change, partial_rollback
from tests.waiting import until

__all__ = ["server", "shell"]

FINISHED = (ORIGINAL[0], b"KeepAlive Off")


@pytest.fixture(autouse=True)
def no_other_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find no servers on this machine: a demo of another test would not read the knob's file."""

    async def read_by(*_: object) -> tuple[()]:
        return ()

    monkeypatch.setattr(Tuner, "_read_by", read_by)


def profile_of(server: Server, url: str) -> Profile:
    hosts, knobs = (HostConfig(name="web1"),), (server.keep_alive(),)
    return Profile(name="x", plan=LoadPlan(url=url), hosts=hosts, knobs=knobs)


@pytest.mark.parametrize(("answer", "expected"), [("undo", ORIGINAL), ("finish", FINISHED)])
async def test_interrupted_change_is_resolved_on_screen(
    server: Server, shell: FaultyShell, url: str, answer: str, expected: tuple[bytes, bytes]
) -> None:
    change = await interrupted_change(server, shell)
    notes: list[str] = []
    source = LiveSource(profile_of(server, url), Clock())
    async with running(
        Session(source, listen=lambda events: notes.extend(event.text for event in events if isinstance(event, Note)))
    ):
        name = change.name.rpartition("-")[2]
        incomplete = "is incomplete: its new values may be active"
        await until(lambda: any(f"change {name} of " in note and incomplete in note for note in notes))
        (action,) = [action for action in source.controls.actions if action.name == "unfinished"]
        assert "KeepAlive On → Off" in action.prompt and action.prompt.endswith("undo or finish")
        with pytest.raises(UsageError, match="type undo or finish"):
            await action.run("")
        ((_, past),) = source.tuning.interrupted.changes
        await action.run(answer)
        assert server.bytes() == expected and not server.locked()
        assert not any(action.name == "unfinished" for action in source.controls.actions)
        # As if others had resolved it. That on another host is unknown.
        source.tuning.interrupted.changes = [("web1", past), ("web2", past)]
        await source.tuning.interrupted.find("web1")
        assert source.tuning.interrupted.changes == [("web2", past)]


@pytest.mark.parametrize(
    ("answer", "expected"), [("u\n", ORIGINAL), ("finish\n", FINISHED), ("\n", None), (None, None)]
)
async def test_interrupted_change_is_resolved_in_terminal(
    server: Server,
    shell: FaultyShell,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str | None,
    expected: tuple[bytes, bytes] | None,
) -> None:
    """Without a terminal (None) it is only reported."""
    change = await interrupted_change(server, shell)
    terminal, line = os.openpty()
    if answer is None:
        with open(os.devnull) as nothing:  # noqa: ASYNC230, PTH123
            os.dup2(nothing.fileno(), line)
    with os.fdopen(line) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(terminal, (answer or "").encode())
        async with LiveSession(profile_of(server, "http://127.0.0.1:9/"), check_target=False) as live:
            await live.hosts_up(["web1"])
            await resolve_interrupted(live.tuning, ["web1"])
    os.close(terminal)
    prompt = "is incomplete: its new values may be active.\nundo or finish, or Enter to decide later: "
    undo = f"`cockpit tune PROFILE undo {change.name.rpartition('-')[2]}` rolls it back"
    assert (undo if answer is None else prompt) in capsys.readouterr().err
    if expected is None:
        (past,) = await Tuner().history(shell, "web1")
        await Tuner().force_undo(shell, "web1", past)
    else:
        assert server.bytes() == expected and not server.locked()


async def test_change_that_cannot_be_applied_again_is_rolled_back(server: Server, shell: FaultyShell, url: str) -> None:
    await interrupted_change(server, shell, test=f"[ -e '{server.root}/accepted' ]")
    async with LiveSession(profile_of(server, url)) as live:
        await live.hosts_up(["web1"])
        await live.tuning.interrupted.find("web1")
        ((host, past),) = live.tuning.interrupted.changes
        knob = server.keep_alive(test="false")
        live.tuning.interrupted._knobs = {knob.name: knob}
        with pytest.raises(ChangeRolledBack, match=f"false failed.*; change {past.name} is rolled back"):
            await live.tuning.interrupted.finish(host, past)
        assert live.tuning.interrupted.changes == [] and server.bytes() == ORIGINAL


async def test_restore_does_not_depend_on_the_target(server: Server, url: str) -> None:
    async def failing() -> str:
        return f"{url} answers 503"

    async with LiveSession(profile_of(server, url)) as live:
        await live.hosts_up(["web1"])
        await live.tuning.apply({"KeepAlive": "Off"})
        live.tuning._changes._tuner._options = ChangeOptions(probe=failing, timeouts=Timeouts(effect=0.5))
        assert await restore(live, live.profile.knobs, (), {"KeepAlive": "On"}, 0.0) == {}
        assert server.bytes() == ORIGINAL


async def test_values_are_restored_once_every_rollback_is_complete(
    server: Server, shell: FaultyShell, url: str
) -> None:
    """The file has its original value, and the running server has not."""
    past = await partial_rollback(server, shell)
    async with LiveSession(profile_of(server, url)) as live:
        await live.hosts_up(["web1"])
        original = (live.profile.knobs, (), {"KeepAlive": "On"})
        failed = await restore(live, *original, 0.0)
        assert isinstance(failed["web1"], ChangeFailed) and "boom" in str(failed["web1"])
        with pytest.raises(ChangeFailed, match="boom"):
            await recover(live, ["KeepAlive"], 0.0, 0.0)
        assert await restore(live, *original, past.facts.when + 1) == {}, "it is older"
        (server.root / "cause").unlink()
        reloads = server.reloads
        assert await restore(live, *original, 0.0) == {} and server.reloads > reloads
        assert (await live.tuning.history("web1"))[0].state == "rolled back"


async def test_partial_rollback_is_left_on_screen(server: Server, shell: FaultyShell, url: str) -> None:
    await partial_rollback(server, shell)
    source = LiveSource(profile_of(server, url), Clock())
    async with running(Session(source)):
        await until(lambda: source.tuning.interrupted.changes)
        (action,) = [action for action in source.controls.actions if action.name == "unfinished"]
        assert "the reload with the original files failed: undo, finish or leave" in action.prompt
        ((_, past),) = source.tuning.interrupted.changes
        interrupted = replace(past, state=HistoryState.INTERRUPTED)
        source.tuning.interrupted.changes = [("web2", interrupted)]
        await source.tuning.interrupted.find("web1")
        assert source.tuning.interrupted.changes == [("web2", interrupted), ("web1", past)]
        # Another rollback that leaves something is noticed, so that it can be left.
        source.tuning.interrupted.changes = [("web1", interrupted)]
        with pytest.raises(ChangeFailed, match="boom"):
            await action.run("undo")
        assert source.tuning.interrupted.changes == [("web1", past)]
        await action.run("leave")
        await source.tuning.interrupted.find("web1")
        assert source.tuning.interrupted.changes == []
        assert [past.state for past in await source.tuning.history("web1")] == ["left as it is"]


async def test_partial_rollback_that_a_newer_change_ended_is_not_offered(
    server: Server, shell: FaultyShell, url: str
) -> None:
    past = await partial_rollback(server, shell)
    async with LiveSession(profile_of(server, url)) as live:
        await live.hosts_up(["web1"])
        await live.tuning.interrupted.find("web1")
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
        for end in (live.tuning.interrupted.undo, live.tuning.interrupted.finish):
            live.tuning.interrupted.changes = [("web1", past)]
            with pytest.raises(ChangeRefused, match="changed KeepAlive since"):
                await end("web1", past)
            assert live.tuning.interrupted.changes == []
    assert server.bytes() == FINISHED
