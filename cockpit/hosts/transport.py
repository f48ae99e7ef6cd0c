"""Opens a host's shell: over SSH if the host has `ssh`, else on this machine, and from there by the command `via`."""

from __future__ import annotations

from pathlib import Path

from cockpit.hosts.command_shell import CommandShell
from cockpit.hosts.local import LocalShell
from cockpit.hosts.shell import Shell
from cockpit.hosts.ssh.prompts import Keyring, Prompter
from cockpit.model.host.samples import HostConfig
from cockpit.model.via import command_of


async def open_shell(
    config: HostConfig, ssh_config: Path | None = None, asker: Prompter | None = None, keyring: Keyring | None = None
) -> Shell:
    """Open a shell on the host. Raises HostError, UsageError for an invalid `ssh`, `via` or ssh_config."""
    command = command_of(config.via) if config.via else ""
    shell = await _outer_shell(config, ssh_config, asker, keyring)
    return CommandShell(config.name, shell, command, config.via) if command else shell


async def _outer_shell(
    config: HostConfig, ssh_config: Path | None, asker: Prompter | None, keyring: Keyring | None
) -> Shell:
    if config.ssh is None:
        return LocalShell(config.name)
    # Slow to import, and not needed to watch this machine.
    from cockpit.hosts.ssh import shell as ssh

    return await ssh.connect(config, ssh_config, asker, keyring)
