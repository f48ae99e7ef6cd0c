"""A setting of one of two nginx behind HAProxy, compared with the other one while users are served."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from cockpit.analysis.rounds import RoundsPlan
from cockpit.analysis.verdicts.outcome import Outcome
from cockpit.analysis.words.verdicts import verdict_line
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob
from cockpit.model.load.plan import AccessLog, LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.session.live_session import LiveSession
from tests.lab.masters import Master, running_server
from tests.lab.users import users
from tests.waiting import free_port

HOSTS = ("web1", "web2")
FORMAT = '$remote_addr [$time_local] "$request" $status $request_time'
# Bytes of the page of each server. After each part of 10 kB nginx waits for as long as the limited rate needs, so that
# the second server is slower, and half of the rate takes twice as long.
SIZES = (40_000, 50_000)
SITE = """
log_format users '{format}';
server {{
    listen 127.0.0.1:{port};
    root pages;
    access_log users.log users;
    sendfile on;
    sendfile_max_chunk 10k;
    limit_rate 400k;
}}
"""
BALANCER = """
frontend users
    bind 127.0.0.1:{}
    default_backend both
backend both
    balance roundrobin
    server web1 127.0.0.1:{}
    server web2 127.0.0.1:{}
"""


def knob(host: str, server: Master) -> Knob:
    command = f"/usr/sbin/nginx -q -p {server.root} -c server.conf"
    return Knob(
        name=f"rate-{host}",
        host=host,
        kind="nginx",
        file=str(server.root / "conf.d" / "more.conf"),
        section="server {",
        directive="limit_rate",
        test=f"{command} -t",
        reload=f"{command} -s reload",
    )


async def test_setting_is_compared_with_the_sibling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    ports, front = [free_port(), free_port()], free_port()
    with ExitStack() as stack:
        servers = [
            stack.enter_context(running_server("nginx", more=SITE.format(format=FORMAT, port=port))) for port in ports
        ]
        stack.enter_context(running_server("haproxy", more=BALANCER.format(front, *ports)))
        for server, size in zip(servers, SIZES, strict=True):
            server.root.chmod(0o755)
            (server.root / "pages").mkdir()
            (server.root / "pages" / "index.html").write_text(size * "x")
        profile = Profile(
            name="x",
            plan=LoadPlan(
                url=f"http://127.0.0.1:{front}/",
                traffic=tuple(
                    AccessLog(host=host, file=str(server.root / "users.log"), format=FORMAT)
                    for host, server in zip(HOSTS, servers, strict=True)
                ),
            ),
            hosts=tuple(HostConfig(name=host) for host in HOSTS),
            knobs=tuple(map(knob, HOSTS, servers)),
            guard=("errors < 50%",),
        )
        files = [Path(knob.file) for knob in profile.knobs]
        before = [file.read_text() for file in files]
        async with users(front, 30), LiveSession(profile) as live:
            await live.hosts_read()
            await live.knobs_read()
            await live.load.start()
            await live.session.until(
                lambda state: bool(
                    state.segment and len(state.segment.logs) == 2 and state.segment.counts.completed > 50
                )
            )
            proven = await live.tuning.compare_in_rounds({"rate-web1": "200k"}, RoundsPlan(4, 5.0))
            state = live.state
        assert [file.read_text() for file in files] == before
    verdict = proven.verdict
    assert verdict is not None and verdict.headline is not None and verdict.headline.change is not None
    assert verdict.outcome is Outcome.WORSE and verdict.headline.change > 0.3, verdict_line(verdict)
    assert verdict.values == (4, 4) and proven.active == "before"
    assert {effect.name for effect in verdict.effects} >= {"p50", "p99", "server.memory.used"}
    by_host = {change.host for change in state.changes}
    assert by_host == {*HOSTS} and {change.outcome for change in state.changes} == {"rolled back"}
