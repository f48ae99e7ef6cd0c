"""Values that a real server shows while it runs: the doctor compares them, a change without a sign is rolled back."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from cockpit.hosts.local import LocalShell
from cockpit.hosts.ssh.shell import connect
from cockpit.hosts.status.feed import read_page
from cockpit.model.errors import ChangeRolledBack
from cockpit.model.host.samples import HostConfig, StatusPage
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.tuning.discovery.servers import discover
from cockpit.tuning.tuner import Tuner
from tests.lab.kinds.caddy import CASE, PORT, SOCKET
from tests.lab.lab import Lab
from tests.lab.masters import Master, running_server

REQUESTS = "server.max-keep-alive-requests"


@pytest.fixture
def running(request: pytest.FixtureRequest) -> Iterator[Master]:
    with running_server(request.param) as master:
        yield master


@pytest.mark.parametrize("running", ["lighttpd"], indirect=True)
async def test_reload_of_lighttpd_is_confirmed_by_its_log(running: Master) -> None:
    shell, log, before = LocalShell("here"), running.root / "error.log", running.file.read_bytes()
    knob = (await running.knobs(shell))[REQUESTS]
    applied = await running.tuner().apply(shell, "here", [(knob, "7")])
    assert applied.notes == (f"written and reloaded; its reload is in {log} (this server does not report {knob.name})",)
    assert log.read_text().count("server started") == 2
    undone = await running.tuner().undo(shell, applied)
    assert undone.notes == applied.notes and log.read_text().count("server started") == 3
    with pytest.raises(ChangeRolledBack, match=rf"no reload in {log} within 2 s"):
        await running.tuner(effect=2.0).apply(shell, "here", [(replace(knob, reload="true"), "7")])
    assert running.file.read_bytes() == before
    (words,) = (await running.tuner().apply(shell, "here", [(replace(knob, log="/srv/no-such.log"), "7")])).notes
    assert "its reload is not confirmed, because its log cannot be read" in words


@pytest.mark.parametrize("running", ["lighttpd"], indirect=True)
async def test_doctor_compares_a_file_with_the_running_lighttpd(running: Master) -> None:
    shell = LocalShell("here")
    knobs = await running.knobs(shell)
    limit, requests = knobs["server.max-fds"], knobs[REQUESTS]
    (fine,) = await running.findings(shell, limit)
    assert fine.level == "ok" and "the server shows the same server.max-fds" in fine.text
    (fine,) = await running.findings(shell, requests)
    assert fine.level == "ok" and f"the server does not show {REQUESTS}" in fine.text
    running.edit("max-fds = 512", "max-fds = 600")
    _, differs, stale = await running.findings(shell, limit)
    assert differs.text.startswith("the running server shows server.max-fds 512 (the limits of its process)")
    assert (differs.level, differs.fix) == ("note", "restart the server")
    assert "was edited after the last reload" in stale.text
    # A reload that is newer than the file.
    running.set_age(3600)
    _, differs = await running.findings(shell, limit)
    assert differs.text.startswith("the running server shows server.max-fds 512")
    assert [each.level for each in await running.findings(shell, requests)] == ["ok"]


@pytest.mark.parametrize("running", ["haproxy-socket"], indirect=True)
async def test_haproxy_shows_its_limits_on_its_socket(running: Master) -> None:
    shell, before, workers = LocalShell("here"), running.file.read_bytes(), running.workers
    knobs = await running.knobs(shell)
    live, knob = knobs["maxconn-web"], knobs["maxconn"]
    assert live.effective_cost == "live" and await Tuner().read(shell, live) == "40"
    applied = await running.tuner().apply(shell, "here", [(live, "33")])
    assert b"maxconn 33" in running.file.read_bytes() and await Tuner().read(shell, live) == "33"
    assert [each.level for each in await running.findings(shell, live)] == ["ok"]
    await running.tuner().undo(shell, applied)
    assert running.file.read_bytes() == before and await Tuner().read(shell, live) == "40"
    assert running.workers == workers

    # The reload succeeds and replaces nothing; without `workers` only the server itself shows that.
    lost = replace(knob, reload="true", workers="")
    with pytest.raises(ChangeRolledBack, match=r"shows maxconn 50 \(its stats socket\), the old value"):
        await running.tuner(effect=2.0).apply(shell, "here", [(lost, "70")])
    (fine,) = await running.findings(shell, knob)
    assert fine.level == "ok" and "the server shows the same maxconn" in fine.text
    running.edit("maxconn 50", "maxconn 70")
    _, differs, stale = await running.findings(shell, knob)
    assert differs.text == (
        f"the running server shows maxconn 50 (its stats socket), which differs from the value in {running.file}"
    )
    assert "was edited after the last reload" in stale.text
    applied = await running.tuner().apply(shell, "here", [(knob, "60")])
    assert applied.notes == ("the running server shows maxconn 60 (its stats socket)",)


async def test_doctor_compares_a_file_with_the_running_caddy(lab: Lab) -> None:
    """The second instance: its admin endpoint is a socket, and its port is known to the running server alone."""
    lab.web1.run(f"{{ set -e; {CASE.start}\n}} >/tmp/caddy.out 2>&1")
    shell = await connect(HostConfig(name="web1", ssh="web1"), lab.ssh_config)
    try:
        first = await discover(shell, "web1", PORT, answers=True)
        assert first.chain[0].words == f"Caddy :{PORT} -> Apache (prefork) localhost:80"
        found = await discover(shell, "web1", PORT + 2, answers=True)
        assert found.serving and found.serving.startup
        file = found.serving.startup.file
        knob = next(one.knob for one in found.suggested if one.knob.file == file)
        metrics = await read_page(shell, StatusPage(kind="caddy", url=f"unix:{SOCKET}"))
        resident = lab.web1.run("awk '/^VmRSS/ { print $2 }' /proc/$(cat /run/caddy2.pid)/status").stdout
        assert metrics.values["process_resident_memory_bytes"] == pytest.approx(int(resident) << 10, rel=0.2)

        async def levels() -> list[tuple[str, str]]:
            findings = await diagnose_servers(shell, "web1", PORT + 2, [knob])
            return [(finding.level, finding.text.partition(":")[0]) for finding in findings]

        assert [level for level, _ in await levels()] == ["ok"]
        lab.web1.run(f"sed -i 's/file_server/encode gzip/' {file}")
        assert (await levels())[1:] == [("note", f"{file} was edited after the last reload")]
        lab.web1.run(f"{{ {knob.reload}\n}} >/dev/null 2>&1")
        assert [level for level, _ in await levels()] == ["ok"]
        assert lab.web1.run(f"curl -sS -o /dev/null -w '%{{http_code}}' http://localhost:{PORT + 2}/").stdout == "200"
    finally:
        await shell.close()
        lab.web1.run(f"{{ {CASE.stop}\n}} >/dev/null 2>&1", check=False)
