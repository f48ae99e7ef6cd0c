"""Settings of a real gunicorn that its environment overrides: not offered in its file, and refused there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.hosts.local import LocalShell
from cockpit.model.errors import ChangeRefused
from cockpit.model.hosts import HostConfig
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.setup.profile_draft import HostSurvey
from cockpit.tuning.server_discovery import discover
from cockpit.tuning.tuner import Tuner
from tests.lab.test_two_masters import free_port
from tests.tuning.conftest import until

APP = "def application(environ, start):\n    start('200 OK', [])\n    return [b'hello']\n"
NAME = "GUNICORN_CMD_ARGS"


@pytest.fixture
def started(lab_allowed: None, tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """The configuration file and the port of a gunicorn with one worker by its environment."""
    (tmp_path / "app.py").write_text(APP)
    file, port = tmp_path / "gunicorn.conf.py", free_port()
    file.write_text("workers = 2\nthreads = 1\n")
    command = ["/usr/bin/gunicorn", "-b", f"127.0.0.1:{port}", "--keep-alive", "3", "app:application"]
    environment = {"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1", NAME: "--workers=1 --timeout '77'"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as master:
        try:
            yield file, port
        finally:
            master.terminate()


async def test_settings_that_the_environment_overrides_are_not_changed_in_the_file(
    started: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file, port = started
    await until(lambda: subprocess.run(["curl", "-sf", f"http://127.0.0.1:{port}/"], check=False).returncode == 0)
    shell, before = LocalShell("here"), file.read_bytes()
    found = await discover(shell, "here", port, answers=True)
    assert found.serving and found.serving.startup and found.serving.startup.file == str(file)
    knobs = {one.knob.name: one.knob for one in found.offered if one.server is found.serving}
    assert "threads" in knobs and not {"workers", "timeout", "keepalive"} & knobs.keys()
    words = HostSurvey(HostConfig(name="here"), found).words
    assert f"workers set by {NAME} in its environment; timeout set by {NAME} in its environment" in words
    workers = replace(knobs["threads"], name="workers", directive="workers")
    findings = await diagnose_servers(shell, "here", port, [workers, knobs["threads"]])
    assert sorted(finding.level for finding in findings) == ["error", "ok"]
    (error,) = [finding for finding in findings if finding.level == "error"]
    assert error.text.startswith(f"workers: {NAME} in its environment overrides {file}")
    tuner = Tuner(port_on=lambda host: port)
    with pytest.raises(ChangeRefused, match=f"{NAME} in its environment overrides"):
        await tuner.apply(shell, "here", [(workers, "3")])
    assert file.read_bytes() == before
    applied = await tuner.apply(shell, "here", [(knobs["threads"], "2")])
    assert file.read_bytes() == before.replace(b"threads = 1", b"threads = 2")
    await tuner.undo(shell, applied)
    await shell.close()
    assert file.read_bytes() == before
