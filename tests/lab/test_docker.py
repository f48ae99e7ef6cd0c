"""A container that the real docker client reaches over Docker's API, which podman serves."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cockpit.hosts import watchdog
from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import HostError
from cockpit.model.hosts import HostConfig
from cockpit.profiles.reader import read_profile
from tests.commands import cockpit
from tests.hosts.sshd import Sshd
from tests.lab.containers import Container, container, docker_api
from tests.lab.reached_container import STATE, check_change, check_programs_end, check_readings, check_signalled_client


@pytest.fixture(scope="module")
def nginx(lab_allowed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    if not shutil.which("docker"):
        pytest.skip("docker is not installed")
    folder = tmp_path_factory.mktemp("conf")
    folder.chmod(0o755)
    # The path of a Unix socket has at most 107 bytes.
    with container(folder) as running, tempfile.TemporaryDirectory() as short, docker_api(Path(short)) as address:
        running.run("echo 5 >/srv/level")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DOCKER_HOST", address)
            yield running


@pytest.fixture
def web1(nginx: Container) -> HostConfig:
    return HostConfig(name="web1", via=f"docker:{nginx.name}", processes=("nginx",))


@pytest.fixture
async def shell(web1: HostConfig) -> AsyncIterator[Shell]:
    shell = await open_shell(web1)
    yield shell
    await shell.close()


async def test_exit_status_is_that_of_the_program(shell: Shell) -> None:
    binary = bytes(range(256)) * 1000
    assert await shell.run("cat; echo no >&2; exit 3", input=binary) == (3, binary, b"no\n")


async def test_processes_and_status_pages_are_read(nginx: Container, shell: Shell, web1: HostConfig) -> None:
    await check_readings(nginx, shell, web1)
    await check_programs_end(nginx)


async def test_setting_is_changed_and_undone(nginx: Container, shell: Shell) -> None:
    await check_change(nginx, shell)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
async def test_program_ends_after_its_client(
    nginx: Container, shell: Shell, web1: HostConfig, sent: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "IDLE", 2)
    await check_signalled_client(nginx, shell, web1, sent)


async def test_container_that_does_not_exist_is_an_error(nginx: Container) -> None:
    shell = await open_shell(HostConfig(name="web1", via="docker:nowhere"))
    with pytest.raises(HostError, match=r"`docker:nowhere` did not start `sh -s`: .*(?i:no such container)"):
        await shell.run("true")
    await shell.close()


async def test_container_behind_ssh_is_tuned_from_the_wizard_to_the_undo(
    nginx: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    profile, before = tmp_path / "web1.toml", nginx.run(STATE)
    sshd = await Sshd(tmp_path).start()

    async def run(*arguments: str | Path) -> str:
        done = await asyncio.to_thread(cockpit, *arguments, "--ssh-config", sshd.ssh_config)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    await run("new", nginx.url, "--host", f"root@web/docker:{nginx.name}", "-o", profile)
    drafted = read_profile(profile)
    (host,) = drafted.hosts
    assert (host.ssh, host.via, host.processes) == ("root@web", f"docker:{nginx.name}", ("nginx",))
    assert {knob.file for knob in drafted.knobs} == {nginx.inside}
    assert "ERROR" not in await run("doctor", profile)
    assert await run("tune", profile, "show", "worker_connections") == "256\n"
    await run("tune", profile, "set", "worker_connections=128")
    assert "worker_connections 128;" in nginx.file.read_text()
    await run("tune", profile, "undo")
    assert nginx.run(STATE) == before
    await sshd.stop()
