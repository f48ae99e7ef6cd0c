"""Keys, known hosts and client configuration of a lab."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Key:
    """A key pair in OpenSSH's text format."""

    private: str
    public: str


def make_key(path: Path) -> Key:
    """Create an ed25519 key pair at `path` and `path`.pub."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "cockpit-lab", "-f", str(path)]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return Key(path.read_text(), path.with_suffix(".pub").read_text())


def make_host_key(directory: Path) -> Key:
    """Return a host's key pair without leaving its files: the private key belongs only on the host."""
    path = directory / "host_key"
    key = make_key(path)
    path.unlink()
    path.with_suffix(".pub").unlink()
    return key


def write_client_config(directory: Path, addresses: dict[str, str], host_keys: dict[str, Key]) -> Path:
    """Write known_hosts and ssh_config for the hosts; the client's key is `key` in the same directory.

    Paths are absolute: `ssh -F` resolves relative paths from ~/.ssh.
    """
    lines = (f"{name},{address} {host_keys[name].public}" for name, address in addresses.items())
    known_hosts = directory / "known_hosts"
    known_hosts.write_text("".join(lines))
    blocks = (
        f"Host {name}\n"
        f"    HostName {address}\n"
        f"    User root\n"
        f"    Port 22\n"
        f"    IdentityFile {directory / 'key'}\n"
        f"    IdentitiesOnly yes\n"
        f"    UserKnownHostsFile {known_hosts}\n"
        f"    GlobalKnownHostsFile /dev/null\n"
        f"    StrictHostKeyChecking yes\n"
        for name, address in addresses.items()
    )
    config = directory / "ssh_config"
    config.write_text("\n".join(blocks))
    return config
