"""Opens a host's shell: over SSH if it has `ssh`, else on this machine."""

from __future__ import annotations

from pathlib import Path

from cockpit.hosts.local import LocalShell
from cockpit.hosts.prompts import Asker, Keyring
from cockpit.hosts.shell import Shell
from cockpit.model.hosts import HostConfig


async def open_shell(
    config: HostConfig, ssh_config: Path | None = None, asker: Asker | None = None, keyring: Keyring | None = None
) -> Shell:
    """A shell on the host. Raises HostError, UsageError for an invalid `ssh` or ssh_config."""
    if config.ssh is None:
        return LocalShell(config.name)
    # Slow to import, and not needed to watch this machine.
    from cockpit.hosts import ssh

    return await ssh.connect(config, ssh_config, asker, keyring)
