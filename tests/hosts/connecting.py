"""Connections to the SSH server of a test, and a stand-in for OpenSSH's client."""

from __future__ import annotations

import asyncio

import asyncssh
import pytest

from cockpit.hosts.prompts import Keyring, Prompter
from cockpit.hosts.ssh import connect
from cockpit.model.errors import HostError
from cockpit.model.hosts import HostConfig
from tests.hosts.sshd import Sshd

WEB = HostConfig(name="web1", ssh="web")

# `ssh -G -T -F FILE [-l USER] [-p PORT] -- HOST` for files with Host blocks of one name, without Match and %.
SSH_G = r"""#!/bin/sh
file=$4 given=; shift 4
[ "$file" = none ] && exit
while [ "$1" != -- ]; do given="$given $1 $2"; shift 2; done
[ -r "$file" ] || { echo "Can't open user config file $file" >&2; exit 255; }
awk -v host="$2" -v given="$given" '
  function set_option(name, value) {
    if (name == "identityfile" || !(name in known)) print name, value
    known[name] = value
  }
  function read_line(line,   name, file) {
    gsub(/"/, "", line)
    name = tolower(line); sub(/^ */, "", name); sub(/ .*/, "", name)
    sub(/^ *[^ ]* */, "", line)
    if (name == "host") applies = line == host || line == "*"
    else if (name == "include") { file = line; while ((getline line < file) > 0) read_line(line); applies = 1 }
    else if (applies && name != "") set_option(name, line)
  }
  BEGIN { applies = 1; n = split(given, word, " ")
    for (i = 1; i < n; i += 2) set_option(word[i] == "-l" ? "user" : "port", word[i + 1]) }
  { read_line($0) }
  END { set_option("hostname", host); set_option("port", 22); set_option("user", ENVIRON["USER"]) }
' "$file"
"""


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
