"""Reloads of real servers that two servers share, and settings that an environment overrides."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from msgspec.structs import replace

from cockpit.hosts.local import LocalShell
from cockpit.hosts.ssh.shell import connect
from cockpit.model.errors import ChangeRefused
from cockpit.model.host.samples import HostConfig
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.setup.profile_draft import HostSurvey
from cockpit.tuning.discovery.servers import discover
from cockpit.tuning.tuner import Tuner
from tests.lab.lab import Host, Lab
from tests.lab.lighttpd import CONFIG
from tests.waiting import free_port, until

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
    knob = next(one.knob for one in found.suggested if one.knob.name == name)
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


APP = "def application(environ, start):\n    start('200 OK', [])\n    return [b'hello']\n"
VARIABLE = "GUNICORN_CMD_ARGS"


@pytest.fixture
def started() -> Iterator[tuple[Path, int]]:
    """The configuration file and the port of a gunicorn with one worker by its environment."""
    command = ["/usr/bin/gunicorn", "-b", f"127.0.0.1:{(port := free_port())}", "--keep-alive", "3", "app:application"]
    environment = {"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1", VARIABLE: "--workers=1 --timeout '77'"}
    with TemporaryDirectory(dir="/run", prefix="cockpit-test-") as folder:
        file = Path(folder, "gunicorn.conf.py")
        file.write_text("workers = 2\nthreads = 1\n")
        file.with_name("app.py").write_text(APP)
        with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL) as master:
            try:
                yield file, port
            finally:
                master.terminate()


async def test_settings_that_the_environment_overrides_are_not_changed_in_the_file(started: tuple[Path, int]) -> None:
    file, port = started
    await until(lambda: subprocess.run(["curl", "-sf", f"http://127.0.0.1:{port}/"], check=False).returncode == 0)
    shell, before = LocalShell("here"), file.read_bytes()
    found = await discover(shell, "here", port, answers=True)
    assert found.serving and found.serving.startup and found.serving.startup.file == str(file)
    knobs = {one.knob.name: one.knob for one in found.suggested if one.server is found.serving}
    assert "threads" in knobs and not {"workers", "timeout", "keepalive"} & knobs.keys()
    words = HostSurvey(HostConfig(name="here"), found).words
    assert f"workers set by {VARIABLE} in its environment; timeout set by {VARIABLE} in its environment" in words
    workers = replace(knobs["threads"], name="workers", directive="workers")
    findings = await diagnose_servers(shell, "here", port, [workers, knobs["threads"]])
    assert sorted(finding.level for finding in findings) == ["error", "ok"]
    (error,) = [finding for finding in findings if finding.level == "error"]
    assert error.text.startswith(f"workers: {VARIABLE} in its environment overrides {file}")
    tuner = Tuner(port_on=lambda host: port)
    with pytest.raises(ChangeRefused, match=f"{VARIABLE} in its environment overrides"):
        await tuner.apply(shell, "here", [(workers, "3")])
    assert file.read_bytes() == before
    applied = await tuner.apply(shell, "here", [(knobs["threads"], "2")])
    assert file.read_bytes() == before.replace(b"threads = 1", b"threads = 2")
    await tuner.undo(shell, applied)
    await shell.close()
    assert file.read_bytes() == before
