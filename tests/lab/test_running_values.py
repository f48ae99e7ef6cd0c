"""Values that a real server shows while it runs: the doctor compares them, a change without a sign is rolled back."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil
import pytest
from msgspec.structs import replace

from cockpit.hosts.local import LocalShell
from cockpit.model.errors import ChangeRolledBack
from cockpit.model.knobs import Knob
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.setup.finding import Finding
from cockpit.tuning.change_options import TIMEOUTS, Timeouts
from cockpit.tuning.server_discovery import discover
from cockpit.tuning.tuner import Tuner
from tests.lab.test_two_masters import free_port
from tests.tuning.conftest import until

LIGHTTPD = """\
server.document-root = "{root}"
server.port = {port}
server.bind = "127.0.0.1"
server.pid-file = "{root}/server.pid"
server.errorlog = "{root}/error.log"
server.max-fds = 512
server.max-keep-alive-requests = 100
"""
HAPROXY = """\
global
    maxconn 50
    stats socket {root}/admin.sock mode 600 level admin
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend web
    bind 127.0.0.1:{port}
    maxconn 40
    http-request return status 204
"""
COMMANDS = {
    "lighttpd": ("lighttpd", "-f", "{root}/server.conf"),
    "haproxy": ("haproxy", "-W", "-D", "-f", "{root}/server.conf", "-p", "{root}/server.pid"),
}
_SOON = Timeouts(effect=5.0)
CONFIGS = {"lighttpd": LIGHTTPD, "haproxy": HAPROXY}


class Running(NamedTuple):
    """A server with its files in `root`."""

    root: Path
    port: int

    @property
    def file(self) -> Path:
        return self.root / "server.conf"

    @property
    def pid(self) -> int:
        return int((self.root / "server.pid").read_text())

    @property
    def processes(self) -> list[int]:
        return sorted(child.pid for child in psutil.Process(self.pid).children())

    def answers(self) -> bool:
        ask = ["curl", "-s", "-o", "/dev/null", "-m", "2", f"http://127.0.0.1:{self.port}/"]
        return subprocess.run(ask, check=False).returncode == 0 and bool((self.root / "server.pid").read_text())

    async def knobs(self, shell: LocalShell) -> dict[str, Knob]:
        found = await discover(shell, "here", self.port, answers=True)
        return {one.knob.name: one.knob for one in found.offered if one.server is found.serving}

    async def findings(self, shell: LocalShell, knob: Knob) -> list[Finding]:
        return await diagnose_servers(shell, "here", self.port, [knob])

    def tuner(self, timeouts: Timeouts = TIMEOUTS) -> Tuner:
        return Tuner(port_on=lambda _: self.port, timeouts=timeouts)

    def edit(self, old: str, new: str) -> None:
        """Edit the file by hand, as long after the start that the times tell."""
        text = self.file.read_text()
        assert old in text
        self.file.write_text(text.replace(old, new))
        os.utime(self.file, (time.time() + 60,) * 2)


@pytest.fixture
async def running(
    request: pytest.FixtureRequest, lab_allowed: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Running]:
    kind: str = request.param
    with TemporaryDirectory(prefix="cockpit-", dir="/srv") as place:
        root, port = Path(place), free_port()
        monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
        (root / "server.conf").write_text(CONFIGS[kind].format(root=root, port=port))
        words = [word.format(root=root) for word in COMMANDS[kind]]
        one = Running(root, port)
        await asyncio.to_thread(subprocess.run, words, check=True, capture_output=True)
        await until(one.answers)
        master = psutil.Process(one.pid)
        try:
            yield one
        finally:
            master.terminate()
            psutil.wait_procs([master], timeout=60)


@pytest.fixture
def shell() -> Iterator[LocalShell]:
    yield LocalShell("here")


def kind_of(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("running", [name], indirect=True)


@kind_of("lighttpd")
async def test_reload_of_lighttpd_is_confirmed_by_its_log(running: Running, shell: LocalShell) -> None:
    knob = (await running.knobs(shell))["server.max-keep-alive-requests"]
    applied = await running.tuner().apply(shell, "here", [(knob, "7")])
    log = running.root / "error.log"
    assert applied.notes == (f"the running server does not show {knob.name}: its reload is in {log}",)
    assert log.read_text().count("server started") == 2
    undone = await running.tuner().undo(shell, applied)
    assert undone.notes == applied.notes and log.read_text().count("server started") == 3


@kind_of("lighttpd")
async def test_reload_that_is_not_logged_is_rolled_back(running: Running, shell: LocalShell) -> None:
    knob, before = (await running.knobs(shell))["server.max-keep-alive-requests"], running.file.read_bytes()
    with pytest.raises(ChangeRolledBack, match=rf"no reload in {running.root}/error.log within 5 s"):
        await running.tuner(_SOON).apply(shell, "here", [(replace(knob, reload="true"), "7")])
    assert running.file.read_bytes() == before


@kind_of("lighttpd")
async def test_without_a_log_the_reload_is_not_confirmed(running: Running, shell: LocalShell) -> None:
    knob = replace((await running.knobs(shell))["server.max-keep-alive-requests"], log="/srv/no-such.log")
    applied = await running.tuner().apply(shell, "here", [(knob, "7")])
    (words,) = applied.notes
    assert "its reload is not confirmed, because its log cannot be read" in words


@kind_of("lighttpd")
async def test_doctor_compares_a_file_with_the_running_lighttpd(running: Running, shell: LocalShell) -> None:
    knobs = await running.knobs(shell)
    limit, requests = knobs["server.max-fds"], knobs["server.max-keep-alive-requests"]
    (fine,) = await running.findings(shell, limit)
    assert fine.level == "ok" and "the server shows the same server.max-fds" in fine.text
    (fine,) = await running.findings(shell, requests)
    assert fine.level == "ok" and "the server does not show server.max-keep-alive-requests" in fine.text
    running.edit("max-fds = 512", "max-fds = 600")
    _, differs, stale = await running.findings(shell, limit)
    assert differs.text.startswith("the running server shows server.max-fds 512 (the limits of its process)")
    assert (differs.level, differs.fix) == ("note", "restart the server")
    assert "was edited after the last reload" in stale.text
    # A reload that is newer than the file.
    os.utime(running.file, (time.time() - 60,) * 2)
    _, differs = await running.findings(shell, limit)
    assert differs.text.startswith("the running server shows server.max-fds 512")
    assert [each.level for each in await running.findings(shell, requests)] == ["ok"]


@kind_of("haproxy")
async def test_maxconn_of_a_frontend_is_set_in_the_running_haproxy(running: Running, shell: LocalShell) -> None:
    knob, before = (await running.knobs(shell))["maxconn-web"], running.file.read_bytes()
    processes = running.processes
    assert knob.effective_cost == "live" and await Tuner().read(shell, knob) == "40"
    applied = await running.tuner().apply(shell, "here", [(knob, "33")])
    assert b"maxconn 33" in running.file.read_bytes() and await Tuner().read(shell, knob) == "33"
    assert [each.level for each in await running.findings(shell, knob)] == ["ok"]
    await running.tuner().undo(shell, applied)
    assert running.file.read_bytes() == before and await Tuner().read(shell, knob) == "40"
    assert running.processes == processes


@kind_of("haproxy")
async def test_doctor_compares_a_file_with_the_running_haproxy(running: Running, shell: LocalShell) -> None:
    knob = (await running.knobs(shell))["maxconn"]
    (fine,) = await running.findings(shell, knob)
    assert fine.level == "ok" and "the server shows the same maxconn" in fine.text
    running.edit("maxconn 50", "maxconn 70")
    _, differs, stale = await running.findings(shell, knob)
    assert differs.text == (
        f"the running server shows maxconn 50 (its stats socket), which differs from the value in {running.file}"
    )
    assert "was edited after the last reload" in stale.text


@kind_of("haproxy")
async def test_a_value_that_stays_in_the_running_server_is_rolled_back(running: Running, shell: LocalShell) -> None:
    """The reload ends well and replaces nothing; without `workers` only the server itself shows that."""
    knob = replace((await running.knobs(shell))["maxconn"], reload="true", workers="")
    with pytest.raises(ChangeRolledBack, match=r"shows maxconn 50 \(its stats socket\), the old value"):
        await running.tuner(_SOON).apply(shell, "here", [(knob, "70")])
    applied = await running.tuner().apply(shell, "here", [((await running.knobs(shell))["maxconn"], "70")])
    assert applied.notes == ("the running server shows maxconn 70 (its stats socket)",)
