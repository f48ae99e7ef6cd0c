"""A log without durations: the change that adds them is found in the configuration, made, kept and undone."""

import asyncio
import os
import pty
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from cockpit.analysis.rounds import RoundsPlan
from cockpit.cli.commands.watch import counted_log, with_timings
from cockpit.cli.log_durations import with_durations
from cockpit.hosts.local import LocalShell
from cockpit.model.errors import ChangeRefused
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.servers import haproxy
from cockpit.session import guard
from cockpit.session.live_session import LiveSession
from cockpit.tuning.discovery.access_logs import LoggingServer, find_access_log
from tests.lab.masters import Master, running_server
from tests.lab.users import users
from tests.session.guarded_site import set_lease
from tests.waiting import free_port, until

SHELL = LocalShell("here")
# Sites whose logs have no durations, on a port of their own where the server has one without a log.
SITES = {
    "apache": 'LogFormat "%h %l %u %t \\"%r\\" %>s %b" short\nCustomLog users.log short\n',
    "nginx": "server {{ listen 127.0.0.1:{port}; access_log users.log; return 204; }}\n",
    "haproxy": "    log {syslog} local0\n",
}


@contextmanager
def site(kind: str, syslog: str = "127.0.0.1:9") -> Iterator[tuple[Master, int]]:
    port = free_port()
    with running_server(kind, more=SITES[kind].format(port=port, syslog=syslog)) as master:
        yield master, port if kind == "nginx" else master.port


async def logged(port: int) -> LoggingServer:
    server = await find_access_log(SHELL, "here", f"http://127.0.0.1:{port}/", here=True)
    assert server is not None
    return server


def files_of(master: Master) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in (master.file, master.root / "conf.d" / "more.conf")}


def profile_of(server: LoggingServer, port: int) -> Profile:
    log = counted_log("here", server, changeable=True)
    profile = Profile(
        name="x",
        plan=LoadPlan(url=f"http://127.0.0.1:{port}/", traffic=(log,)),
        hosts=(HostConfig(name="here"),),
        guard=("errors < 50%",),
    )
    return with_timings(profile, [(log, server.change)])


@pytest.mark.parametrize("kind", ["apache", "nginx", "haproxy"])
async def test_durations_are_counted_until_they_are_undone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HAProxy's lines without durations, `Connect from …`, have no status either, so none of them is counted."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    set_lease(monkeypatch)
    # Until counting has started again.
    monkeypatch.setattr(guard, "BLIND", 60.0)
    file = tmp_path / "haproxy.log"
    monkeypatch.setattr(haproxy, "_LOG", str(file))
    async with syslog(file) as address:
        with site(kind, address) as (master, port):
            before, server = files_of(master), await logged(port)
            file = file if kind == "haproxy" else master.root / "users.log"
            async with users(port, 50), LiveSession(profile_of(server, port)) as live:

                async def counted(run: int, *, durations: bool) -> None:
                    """Wait for 2 s of a run, with some of its requests if any are counted; check their durations."""
                    any_counted = durations or kind != "haproxy"
                    state = await live.session.until(
                        lambda state: bool(
                            state.runs == run
                            and (segment := state.segment)
                            and segment.seconds > 2
                            and (segment.counts.completed > 20 or not any_counted)
                        )
                    )
                    assert state.segment is not None
                    counts = state.segment.counts
                    assert (counts.completed > 0, counts.service.count > 0) == (any_counted, durations)

                # The log exists from the first request on.
                await until(lambda: file.exists() and file.stat().st_size > 0)
                await live.hosts_read()
                await live.knobs_read()
                await live.load.start()
                await counted(1, durations=False)
                (action,) = (action for action in live.source.controls.actions if action.name == "durations")
                assert action.prompt.startswith(
                    f"here: log the durations of requests to {server.log.file}? Enter: test and reload"
                )
                change = asyncio.ensure_future(action.run(""))
                await live.session.until(lambda state: bool(state.changes and state.changes[-1].confirm_by))
                # Counting starts again in the new format, under the limits of the change.
                await counted(2, durations=True)
                live.tuning.confirm()
                await change
                assert live.source.timings.next is None and files_of(master) != before
                with pytest.raises(ChangeRefused, match="the log's format cannot be measured"):
                    await live.tuning.compare_in_rounds({}, RoundsPlan())
                await live.tuning.undo()
                await counted(3, durations=False)
                assert live.source.timings.next is not None
            assert files_of(master) == before


@asynccontextmanager
async def syslog(file: Path) -> AsyncIterator[str]:
    """Write messages to a file as a syslog daemon does, without their priority; yield the address for them."""

    class Daemon(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: object) -> None:
            with file.open("ab") as log:
                log.write(data.partition(b">")[2])

    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Daemon, ("127.0.0.1", 0))
    try:
        yield "127.0.0.1:{}".format(transport.get_extra_info("sockname")[1])
    finally:
        transport.close()


@pytest.mark.parametrize("kind", ["apache", "nginx", "haproxy"])
async def test_watch_asks_before_it_changes_a_log(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with site(kind) as (master, port), terminal(monkeypatch) as typed:
        before, server = files_of(master), await logged(port)
        typed.write("\n")
        assert await with_durations(SHELL, "here", server, "undo") == server and files_of(master) == before
        typed.write("y\n")
        changed = await with_durations(SHELL, "here", server, "undo")
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
