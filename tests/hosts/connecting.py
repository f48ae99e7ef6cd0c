"""Connections to the SSH server of a test, and a stand-in for OpenSSH's client."""

import asyncio

import asyncssh
import pytest

from cockpit.hosts.ssh.prompts import Keyring, Prompter
from cockpit.hosts.ssh.shell import connect
from cockpit.model.errors import HostError
from cockpit.model.host.samples import HostConfig
from tests.data import data_of
from tests.hosts.sshd import Sshd

DATA = data_of(__file__)

WEB = HostConfig(name="web1", ssh="web")

# `ssh -G -T -F FILE [-l USER] [-p PORT] -- HOST` for files with Host blocks of one name, without Match and %.
SSH_G = DATA["ssh_g"]


def new_key(kind: str = "ssh-ed25519") -> asyncssh.SSHKey:
    return asyncssh.generate_private_key(kind)


async def echo_hello(
    sshd: Sshd, config: HostConfig = WEB, user: Prompter | None = None, keyring: Keyring | None = None
) -> str:
    """Output of `echo hello` on the host."""
    shell = await connect(config, sshd.ssh_config, user, keyring)
    try:
        return (await shell.run("echo hello")).stdout.decode().strip()
    finally:
        await shell.close()


async def refusal(sshd: Sshd, kind: type[HostError], config: HostConfig = WEB, user: Prompter | None = None) -> str:
    """The message of the error, which is of exactly this kind, on one line, and names the host."""
    with pytest.raises(HostError) as caught:
        await echo_hello(sshd, config, user)
    assert caught.type is kind and caught.value.exit_code == 3
    message = str(caught.value)
    assert message.startswith(f"{config.name}") and "\n" not in message
    return message


async def ssh_keygen(*arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        "ssh-keygen", *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0
