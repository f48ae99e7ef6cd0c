"""A container that real kubectl reaches: `kubectl exec -i`, over a WebSocket and over SPDY."""

from __future__ import annotations

import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cockpit.hosts import watchdog
from cockpit.hosts.probe import Probe
from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import HostError
from cockpit.model.hosts import HostConfig
from tests.lab.containers import Container, container
from tests.lab.kubernetes import CONTAINER, NAMESPACE, POD, KubernetesApi
from tests.lab.reached_container import (
    check_change,
    check_programs_end,
    check_readings,
    check_signalled_client,
    programs,
)
from tests.tuning.conftest import until

WEB1 = HostConfig(name="web1", via=f"kubectl:{NAMESPACE}/{POD}/{CONTAINER}", processes=("nginx",))


@pytest.fixture(scope="module")
def nginx(lab_allowed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    if not shutil.which("kubectl"):
        pytest.skip("kubectl is not installed")
    folder = tmp_path_factory.mktemp("conf")
    folder.chmod(0o755)
    with container(folder) as running:
        running.run("echo 5 >/srv/level")
        yield running


@pytest.fixture(params=["websocket", "spdy/3.1"])
async def api(
    request: pytest.FixtureRequest, nginx: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[KubernetesApi]:
    """The server; kubectl before 1.29 has SPDY only."""
    monkeypatch.setenv("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", str(request.param == "websocket").lower())
    # Quicker than podman exec.
    enter = f"nsenter -t {nginx.first} -m -u -i -n -p -r -w setsid --wait env -i PATH=/usr/sbin:/usr/bin:/bin"
    api = KubernetesApi((*enter.split(), "HOME=/root"))
    async with api.serving(tmp_path) as config:
        monkeypatch.setenv("KUBECONFIG", str(config))
        monkeypatch.setenv("HOME", str(tmp_path))
        yield api
        assert request.param == "websocket" or set(api.protocols) == {"spdy/3.1"}


@pytest.fixture
async def shell(api: KubernetesApi) -> AsyncIterator[Shell]:
    shell = await open_shell(WEB1)
    yield shell
    await shell.close()


async def test_exit_status_is_that_of_the_program(api: KubernetesApi, shell: Shell) -> None:
    binary = bytes(range(256)) * 1000
    assert await shell.run("cat; echo no >&2; exit 3", input=binary) == (3, binary, b"no\n")
    api.exit_status = 137
    assert (await shell.run("true")).exit_status == 0


async def test_processes_and_status_pages_are_read(nginx: Container, shell: Shell) -> None:
    await check_readings(nginx, shell, WEB1)
    await check_programs_end(nginx)


@pytest.mark.parametrize("api", ["websocket"], indirect=True)
async def test_setting_is_changed_and_undone(nginx: Container, shell: Shell) -> None:
    await check_change(nginx, shell)


async def test_cut_connection_is_an_error_and_ends_the_program(
    nginx: Container, api: KubernetesApi, shell: Shell
) -> None:
    """kubectl then reports the end of a stream, with status 0 or 1."""
    probe = await Probe.start(shell, WEB1)
    await probe.read()
    assert programs(nginx)
    api.cut()
    with pytest.raises(HostError, match="web1: the probe ended"):
        await probe.read()
    probe.close()
    await until(lambda: not programs(nginx))


async def test_program_of_a_stopped_client_ends(
    nginx: Container, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "IDLE", 2)
    await check_signalled_client(nginx, shell, WEB1, signal.SIGSTOP)
