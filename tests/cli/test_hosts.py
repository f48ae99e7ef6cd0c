"""Without the screen, a host that cannot be watched ends the run before any load, in one line with exit code 3."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest

from cockpit.cli.run import _check_target_and_hosts
from cockpit.model.errors import AuthRefused, HostKeyChanged
from cockpit.model.hosts import HostConfig
from cockpit.model.load import LoadPlan
from cockpit.profiles.profile import Profile
from tests.commands import cockpit
from tests.hosts.sshd import Sshd, locked


@pytest.fixture
async def sshd(tmp_path: Path) -> AsyncIterator[Sshd]:
    directory = tmp_path / "sshd"
    directory.mkdir()
    server = await Sshd(directory).start()
    yield server
    await server.stop()


async def run(url: str, sshd: Sshd, tmp_path: Path) -> tuple[int, str]:
    """Run a short load that watches the host; return exit code and stderr."""
    profile = tmp_path / "p.toml"
    profile.write_text(f'[target]\nurl = "{url}"\n[load]\nrequests = 50\n[[host]]\nname = "web1"\nssh = "web"\n')
    command = ("run", "--trust", profile, "--no-tui", "--ssh-config", sshd.ssh_config)
    environment = {**os.environ, "HOME": str(tmp_path), "SSH_AUTH_SOCK": ""}
    done = await asyncio.to_thread(cockpit, *command, env=environment)
    assert ("rate" in done.stdout) == (done.returncode == 0)
    return done.returncode, done.stderr


async def test_known_host_is_watched_and_unreachable_or_refusing_host_ends_run(
    url: str, sshd: Sshd, tmp_path: Path
) -> None:
    code, errors = await run(url, sshd, tmp_path)
    assert code == 0, errors
    sshd.client_key.unlink()
    sshd.client_key.touch(0o600)
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(sshd.client_key)
    code, errors = await run(url, sshd, tmp_path)
    assert code == 3 and "cockpit: web1: login as " in errors
    await sshd.stop()
    code, errors = await run(url, sshd, tmp_path)
    assert code == 3 and "cockpit: web1" in errors


@pytest.mark.parametrize("trusted", ["nobody", "another key"])
async def test_host_keys_are_enforced(url: str, sshd: Sshd, tmp_path: Path, trusted: str) -> None:
    sshd.trust(*([asyncssh.generate_private_key("ssh-ed25519")] if trusted == "another key" else []))
    code, errors = await run(url, sshd, tmp_path)
    assert code == 3
    (line,) = [line for line in errors.splitlines() if line.startswith("cockpit: ")]
    assert "web1" in line
    assert ("changed" in line.lower()) == (trusted == "another key"), line
    assert "SHA256:" in line


async def test_interactive_ssh_questions_are_left_to_screen(url: str, sshd: Sshd) -> None:
    host = HostConfig(name="web1", ssh="web")
    profile = Profile(name="x", plan=LoadPlan(url=url, requests=1), hosts=(host,))
    sshd.known_hosts.unlink()
    await _check_target_and_hosts(profile, sshd.ssh_config)
    sshd.trust(asyncssh.generate_private_key("ssh-ed25519"))
    with pytest.raises(HostKeyChanged):
        await _check_target_and_hosts(profile, sshd.ssh_config)
    sshd.trust(sshd.host_key)
    key = asyncssh.read_private_key(sshd.client_key)
    sshd.client_key.write_bytes(locked(key, "secret"))
    await _check_target_and_hosts(profile, sshd.ssh_config)
    sshd.client_key.unlink()
    with pytest.raises(AuthRefused):
        await _check_target_and_hosts(profile, sshd.ssh_config)
