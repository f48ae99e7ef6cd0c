"""Prompts for a passphrase, a password and an unknown host key with OpenSSH's server, client and files."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.hosts.feed import check_host
from cockpit.hosts.ssh.shell import connect
from cockpit.model.errors import HostKeyUnknown
from cockpit.model.host.samples import HostConfig
from tests.hosts.test_asking import PASSPHRASE, PASSWORD, ScriptedUser
from tests.lab.lab import Lab

PID_FILE = "/run/sshd-asking.pid"
OPTIONS = f"-p 2224 -o PasswordAuthentication=yes -o PidFile={PID_FILE}"
WEB1 = HostConfig(name="web1", ssh="web1")


async def test_suggested_command_accepts_unknown_host_key(lab: Lab, tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text(lab.ssh_config.read_text().replace(str(lab.directory / "known_hosts"), str(tmp_path / "known")))
    with pytest.raises(HostKeyUnknown) as caught:
        await check_host(WEB1, config)
    yes = tmp_path / "yes"
    yes.write_text("#!/bin/sh\necho yes\n")
    yes.chmod(0o700)
    process = await asyncio.create_subprocess_shell(
        str(caught.value).rpartition("accept it with: ")[2],
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "SSH_ASKPASS": str(yes), "SSH_ASKPASS_REQUIRE": "force"},
    )
    assert await process.wait() == 0
    assert (await check_host(WEB1, config)).hostname == "web1"


@pytest.fixture
def address(lab: Lab) -> Iterator[str]:
    """Run an sshd on web1 that accepts a user's password and the lab's key of root; yield its address for `ssh`."""
    lab.web1.run("useradd -m -s /bin/sh asked; echo 'asked:" + PASSWORD + "' | chpasswd")
    lab.web1.run(f"/usr/sbin/sshd -E /var/log/sshd.log {OPTIONS}")
    yield "web1:2224"
    lab.web1.run(f"kill $(cat {PID_FILE}); pkill -KILL -u asked; userdel -r -f asked", check=False)


@pytest.fixture
def config(lab: Lab, tmp_path: Path) -> Path:
    """The lab's ssh_config with an encrypted key and an empty known_hosts file."""
    key = tmp_path / "key"
    key.write_text((lab.directory / "key").read_text())
    key.chmod(0o600)
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", PASSPHRASE, "-f", str(key)], check=True, stdin=subprocess.DEVNULL)
    text = lab.ssh_config.read_text().replace(str(lab.directory / "known_hosts"), str(tmp_path / "known_hosts"))
    text = text.replace(str(lab.directory / "key"), str(key)).replace("StrictHostKeyChecking yes", "HashKnownHosts yes")
    config = tmp_path / "ssh_config"
    config.write_text(text)
    return config


async def test_prompts_of_openssh_server(lab: Lab, address: str, config: Path) -> None:
    with pytest.raises(HostKeyUnknown):
        await connect(HostConfig(name="web1", ssh=f"root@{address}"), config)
    person = ScriptedUser(PASSPHRASE, trusts=True)
    shell = await connect(HostConfig(name="web1", ssh=f"root@{address}"), config, person)
    assert (await shell.run("id -un")).stdout == b"root\n"
    await shell.close()
    assert [question.partition("passphrase of ")[2] for question in person.questions] == [str(config.parent / "key")]
    fingerprint = lab.web1.run("ssh-keygen -lf /etc/ssh/lab_host_key").stdout.split()[1]
    assert [key.fingerprint for key in person.keys] == [fingerprint]
    assert (config.parent / "known_hosts").read_text().startswith("|1|")
    person = ScriptedUser("wrong", PASSWORD)
    shell = await connect(HostConfig(name="web1", ssh=f"asked@{address}"), config, person)
    assert (await shell.run("id -un")).stdout == b"asked\n"
    await shell.close()
    assert [question.startswith("web1: password of asked@") for question in person.questions] == [True, True]
    # The real client knows the host key by now, and cannot ask for the passphrase.
    client = ["ssh", "-F", str(config), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-p", "2224", "web1"]
    done = await asyncio.create_subprocess_exec(*client, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert b"Permission denied" in (await done.communicate())[1]
