"""A host of the lab, entered by a command as a container is, without its sshd."""

from cockpit.model.hosts import HostConfig
from tests.lab.lab import Host


def entered(host: Host) -> HostConfig:
    """As `docker exec -i` enters a container: with a clean environment, and what runs there outlives its client."""
    enter = f"nsenter --target {host.pid} --mount --uts --ipc --net --pid --wd=/ setsid --wait"
    return HostConfig(name=host.name, via=f"{enter} env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin")
