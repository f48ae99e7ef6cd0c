"""A log without durations: the change that adds them is found in the configuration, made, kept and undone."""

import asyncio
import os
import pty
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from cockpit.cli.commands.watch import with_timings
from cockpit.cli.log_durations import with_durations
from cockpit.hosts.local import LocalShell
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import AccessLog, LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.session.live_session import LiveSession
from cockpit.tuning.discovery.access_logs import LoggingServer, find_access_log
from tests.lab.masters import Master, running_server
from tests.lab.users import users
from tests.waiting import free_port, until

SHELL = LocalShell("here")
# Sites whose logs have no durations, on a port of their own where the server has one without a log.
SITES = {
    "apache": 'LogFormat "%h %l %u %t \\"%r\\" %>s %b" short\nCustomLog users.log short\n',
    "nginx": "server {{ listen 127.0.0.1:{port}; access_log users.log; return 204; }}\n",
    "haproxy": "    log 127.0.0.1:9 local0\n",
}


@contextmanager
def site(kind: str) -> Iterator[tuple[Master, int]]:
    port = free_port()
    with running_server(kind, more=SITES[kind].format(port=port)) as master:
        yield master, port if kind == "nginx" else master.port


async def logged(port: int) -> LoggingServer:
    server = await find_access_log(SHELL, "here", f"http://127.0.0.1:{port}/", here=True)
    assert server is not None
    return server


def files_of(master: Master) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in (master.file, master.root / "conf.d" / "more.conf")}


@pytest.mark.parametrize("kind", ["apache", "nginx"])
async def test_durations_are_counted_until_they_are_undone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with site(kind) as (master, port):
        before, server = files_of(master), await logged(port)
        log = AccessLog(host="here", file=server.log.file, format=server.log.format)
        profile = Profile(
            name="x",
            plan=LoadPlan(url=f"http://127.0.0.1:{port}/", traffic=(log,)),
            hosts=(HostConfig(name="here"),),
            guard=("errors < 50%",),
        )
        profile = with_timings(profile, [(log, server.change)])
        async with users(port, 50), LiveSession(profile) as live:

            async def counted(run: int) -> int:
                """Return the number of durations once a run has counted some requests."""
                state = await live.session.until(
                    lambda state: bool(state.runs == run and state.segment and state.segment.counts.completed > 20)
                )
                assert state.segment is not None
                return state.segment.counts.service.count

            # The log exists from the first request on.
            await until(lambda: (master.root / "users.log").exists() and (master.root / "users.log").stat().st_size > 0)
            await live.hosts_read()
            await live.knobs_read()
            await live.load.start()
            assert await counted(1) == 0
            (action,) = (action for action in live.source.controls.actions if action.name == "durations")
            assert action.prompt.startswith(
                f"here: log the durations of requests to {log.file}? Enter: test and reload"
            )
            change = asyncio.ensure_future(action.run(""))
            await live.session.until(lambda state: bool(state.changes and state.changes[-1].confirm_by))
            live.tuning.confirm()
            await change
            assert await counted(2) > 20
            assert live.source.timings.next is None and files_of(master) != before
            await live.tuning.undo()
            assert await counted(3) == 0
            assert live.source.timings.next is not None
        assert files_of(master) == before


@pytest.mark.parametrize("kind", ["apache", "nginx", "haproxy"])
async def test_watch_asks_before_it_changes_a_log(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with site(kind) as (master, port), terminal(monkeypatch) as typed:
        before, server = files_of(master), await logged(port)
        typed.write("\n")
        assert await with_durations(SHELL, "here", server) == server and files_of(master) == before
        typed.write("y\n")
        changed = await with_durations(SHELL, "here", server)
        assert changed.change is None and changed.log == (await logged(port)).log != server.log
        added = {"apache": " %D", "nginx": " $request_time", "haproxy": "option httplog"}[kind]
        assert added in "".join(data.decode() for data in files_of(master).values())


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[TextIO]:
    """Make stdin and stderr a terminal; yield the end at which its user types."""
    own, other = pty.openpty()
    with os.fdopen(own, "w", buffering=1) as typed, os.fdopen(other) as stdin, os.fdopen(os.dup(other), "w") as stderr:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stderr", stderr)
        yield typed
