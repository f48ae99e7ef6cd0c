"""Two real servers with one reload command: the one on which it acts is changed, the other one is not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cockpit.hosts.ssh import connect
from cockpit.model.errors import ChangeRefused
from cockpit.model.hosts import HostConfig
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.tuning.server_discovery import discover
from cockpit.tuning.tuner import Tuner
from tests.lab.lab import Host, Lab
from tests.lab.lighttpd import CONFIG

pytestmark = pytest.mark.asyncio(loop_scope="module")
FIRST, SECOND = 8101, 8102
_START = (
    f"PORT={{0}} PID={{1}} lighttpd -f {CONFIG}; until curl -sS --fail localhost:{{0}}/hello.html; do sleep 0.02; done"
)


@pytest.fixture(scope="module")
def two(lab: Lab) -> Iterator[Host]:
    host = lab.web1
    host.run(f"cp {CONFIG} /run/lighttpd.conf.kept; install -d -o www-data /run/lighttpd /var/log/lighttpd")
    host.run(
        f"sed -i 's/^server.port .*/server.port = env.PORT/; s/^server.pid-file .*/server.pid-file = env.PID/' {CONFIG}"
    )
    for port, pid in ((FIRST, "/run/lighttpd.pid"), (SECOND, "/run/lighttpd-2.pid")):
        host.run(f"{{ set -e; {_START.format(port, pid)}\n}} >/tmp/two.out 2>&1")
    yield host
    host.run("kill $(cat /run/lighttpd.pid /run/lighttpd-2.pid); while pgrep lighttpd; do sleep 0.02; done")
    host.run(f"cp /run/lighttpd.conf.kept {CONFIG}")


async def test_only_the_server_of_the_pid_file_is_changed(two: Host) -> None:
    shell = await connect(HostConfig(name="web1", ssh="web1"), two.ssh_config)
    before = two.run(f"cat {CONFIG}").stdout
    pids = two.run("cat /run/lighttpd.pid /run/lighttpd-2.pid").stdout
    found = await discover(shell, "web1", FIRST, answers=True)
    name = "server.max-connections"
    knob = next(one.knob for one in found.offered if one.knob.name == name)
    assert knob.reload == "service lighttpd reload"
    for port, level in ((FIRST, "ok"), (SECOND, "error")):
        assert [each.level for each in await diagnose_servers(shell, "web1", port, [knob])] == [level]
    with pytest.raises(ChangeRefused, match=rf"'service lighttpd reload' signals lighttpd \(PID {pids.split()[0]}\b"):
        await Tuner(port_on=lambda host: SECOND).apply(shell, "web1", [(knob, "99")])
    # Without a PID file the two are not told apart.
    two.run("mv /run/lighttpd.pid /run/lighttpd.kept")
    with pytest.raises(ChangeRefused, match=r"may reload lighttpd .* instead of lighttpd"):
        await Tuner(port_on=lambda host: FIRST).apply(shell, "web1", [(knob, "99")])
    two.run("mv /run/lighttpd.kept /run/lighttpd.pid")
    await shell.close()
    assert two.run(f"cat {CONFIG}").stdout == before
