"""The way to a host: over SSH where it has `ssh`, else this machine's own shell."""

from __future__ import annotations

from pathlib import Path

from cockpit.hosts.keyring import Keyring
from cockpit.hosts.local import LocalShell
from cockpit.hosts.prompts import Asker
from cockpit.hosts.shell import Shell
from cockpit.model.hosts import HostConfig


async def open_shell(
    config: HostConfig, ssh_config: Path | None = None, asker: Asker | None = None, keyring: Keyring | None = None
) -> Shell:
    """A shell on the host. Raises HostError and its kinds, UsageError where `ssh` or ssh_config make no sense."""
    if config.ssh is None:
        return LocalShell(config.name)
    # asyncssh takes longer to load than all the rest; watching only this machine does without it.
    from cockpit.hosts import ssh

    return await ssh.connect(config, ssh_config, asker, keyring)
