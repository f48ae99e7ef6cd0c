"""A container that the real lxc client of LXD reaches: `lxc exec`."""

from __future__ import annotations

import shutil
import signal
from collections.abc import AsyncIterator, Iterator

import pytest

from cockpit.hosts import watchdog
from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import HostError
from cockpit.model.hosts import HostConfig
from tests.lab.lxd import LxdContainer, container, daemon
from tests.lab.reached_container import check_change, check_programs_end, check_readings, check_signalled_client


@pytest.fixture(scope="module")
def nginx(lab_allowed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LxdContainer]:
    if not shutil.which("lxd") or not shutil.which("lxc"):
        pytest.skip("lxd is not installed")
    folder = tmp_path_factory.mktemp("conf")
    folder.chmod(0o755)
    with daemon() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LXD_DIR", str(directory))
        with container(folder) as running:
            running.run("echo 5 >/srv/level")
            yield running


@pytest.fixture
def web1(nginx: LxdContainer) -> HostConfig:
    return HostConfig(name="web1", via=f"lxc:{nginx.name}", processes=("nginx",))


@pytest.fixture
async def shell(web1: HostConfig) -> AsyncIterator[Shell]:
    shell = await open_shell(web1)
    yield shell
    await shell.close()


async def test_exit_status_is_that_of_the_program(shell: Shell) -> None:
    binary = bytes(range(256)) * 1000
    assert await shell.run("cat; echo no >&2; exit 3", input=binary) == (3, binary, b"no\n")


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
async def test_program_ends_after_its_client(
    nginx: LxdContainer, shell: Shell, web1: HostConfig, sent: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "IDLE", 2)
    await check_signalled_client(nginx, shell, web1, sent)


async def test_processes_and_status_pages_are_read(nginx: LxdContainer, shell: Shell, web1: HostConfig) -> None:
    await check_readings(nginx, shell, web1)
    # LXD kills sh, so its watchdog is not ended but notices it.
    await check_programs_end(nginx)


async def test_setting_is_changed_and_undone(nginx: LxdContainer, shell: Shell) -> None:
    await check_change(nginx, shell)


async def test_container_that_does_not_exist_is_an_error(nginx: LxdContainer) -> None:
    shell = await open_shell(HostConfig(name="web1", via="lxc:nowhere"))
    with pytest.raises(HostError, match=r"`lxc:nowhere` did not start `sh -s`: .*(?i:not found)"):
        await shell.run("true")
    await shell.close()
