"""A host of the lab that is reached by a command like a container, without its sshd."""

from cockpit.model.hosts import HostConfig
from tests.lab.lab import Host


def by_command(host: Host) -> HostConfig:
    """Reach the host as `docker exec -i` does: a clean environment, and commands that outlive their client."""
    enter = f"nsenter --target {host.pid} --mount --uts --ipc --net --pid setsid --wait"
    return HostConfig(name=host.name, via=f"{enter} env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin")
