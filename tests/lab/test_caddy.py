"""A real Caddy whose file was edited: the doctor compares the file with the configuration that runs."""

from __future__ import annotations

import pytest

from cockpit.hosts.ssh import connect
from cockpit.hosts.status.feed import read_page
from cockpit.model.hosts import HostConfig, StatusPage
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.tuning.server_discovery import discover
from tests.lab.kinds.caddy import CASE, PORT, SOCKET
from tests.lab.lab import Lab

pytestmark = pytest.mark.asyncio(loop_scope="module")
SECOND = "/srv/caddy2/Caddyfile"


async def test_the_doctor_reports_an_edited_file_until_the_server_has_it(lab: Lab) -> None:
    lab.web1.run(f"{{ set -e; {CASE.start}\n}} >/tmp/caddy.out 2>&1")
    shell = await connect(HostConfig(name="web1", ssh="web1"), lab.ssh_config)
    try:
        found = await discover(shell, "web1", PORT + 2, answers=True)
        assert found.serving and found.serving.startup and found.serving.startup.file == SECOND
        metrics = await read_page(shell, StatusPage(kind="caddy", url=f"unix:{SOCKET}"))
        resident = lab.web1.run("awk '/^VmRSS/ { print $2 }' /proc/$(cat /run/caddy2.pid)/status").stdout
        assert metrics.values["process_resident_memory_bytes"] == pytest.approx(int(resident) << 10, rel=0.2)
        first = await discover(shell, "web1", PORT, answers=True)
        assert first.chain[0].words == f"Caddy :{PORT} -> Apache (prefork) localhost:80"
        knob = next(one.knob for one in found.offered if one.knob.file == SECOND)

        async def levels() -> list[tuple[str, str]]:
            findings = await diagnose_servers(shell, "web1", PORT + 2, [knob])
            return [(finding.level, finding.text.partition(":")[0]) for finding in findings]

        assert [level for level, _ in await levels()] == ["ok"]
        lab.web1.run(f"sed -i 's/file_server/encode gzip/' {SECOND}")
        assert (await levels())[1:] == [("note", f"{SECOND} was edited after the last reload")]
        # The variable is in the environment of the running server alone.
        lab.web1.run(f"{{ {knob.reload}\n}} >/dev/null 2>&1")
        assert [level for level, _ in await levels()] == ["ok"]
        assert lab.web1.run(f"curl -sS -o /dev/null -w '%{{http_code}}' http://localhost:{PORT + 2}/").stdout == "200"
    finally:
        await shell.close()
        lab.web1.run(f"{{ {CASE.stop}\n}} >/dev/null 2>&1", check=False)
