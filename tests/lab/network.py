"""The lab's network: a free subnet, and a bridge in its own namespace with one interface on this machine.

Only that interface is visible on the machine. It disappears with the namespace: when the process that holds it and all
hosts have ended, for any reason.
"""

import ipaddress
import json
import socket
import subprocess

from tests.lab.errors import LabError

SUBNETS = tuple(f"{base}.{number}.0/24" for base in ("10.77", "198.18") for number in range(100))
MACHINE_NUMBER = 1  # the machine's own last number in the subnet


def ip(*arguments: str, inside: int | None = None) -> str:
    """Run ip(8), in the network namespace of process `inside` if given. Raises LabError with its message."""
    prefix = [] if inside is None else ["nsenter", "--target", str(inside), "--net"]
    done = subprocess.run([*prefix, "ip", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise LabError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def interface(number: int) -> str:
    """Return the name of lab `number`'s interface on this machine."""
    return f"cockpit{number}"


def labs_with_interface() -> set[int]:
    """Return the numbers of the labs with an interface on this machine."""
    names = {name for _, name in socket.if_nameindex()}
    return {number for number in range(len(SUBNETS)) if interface(number) in names}


def address(number: int, host: int) -> str:
    """Return the address of host `host` of lab `number`."""
    return str(ipaddress.ip_network(SUBNETS[number])[host])


def claim(number: int) -> socket.socket | None:
    """Claim lab number `number` until the socket is closed; None if another lab has the number.

    An abstract Unix socket leaves no file, and the kernel closes it with the process.
    """
    claimed = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claimed.bind(f"\0cockpit-lab-{number}")
    except OSError:
        claimed.close()
        return None
    return claimed


def claim_free() -> tuple[int, socket.socket]:
    """Claim the first free lab number whose subnet this machine does not use."""
    taken = _networks_in_use()
    for number, subnet in enumerate(SUBNETS):
        if any(ipaddress.ip_network(subnet).overlaps(network) for network in taken):
            continue
        claimed = claim(number)
        if claimed is not None:
            return number, claimed
    raise LabError(f"no free subnet for the lab: every one from {SUBNETS[0]} to {SUBNETS[-1]} is in use")


def _networks_in_use() -> list[ipaddress.IPv4Network]:
    """Return the networks of this machine's addresses and routes, without the default route."""
    routes = json.loads(ip("-json", "-4", "route", "show", "table", "all"))
    return [ipaddress.IPv4Network(route["dst"], strict=False) for route in routes if route["dst"] != "default"]


def build_switch(number: int, holder: int, machine: int) -> None:
    """Create a bridge in the namespace of process `holder`, with an interface in that of process `machine`."""
    outside = interface(number)
    ip("link", "add", "lab", "type", "bridge", "forward_delay", "0", inside=holder)
    ip("link", "add", "machine", "type", "veth", "peer", "name", outside, "netns", str(machine), inside=holder)
    ip("link", "set", "machine", "master", "lab", "up", inside=holder)
    ip("link", "set", "lab", "up", inside=holder)
    ip("address", "add", f"{address(number, MACHINE_NUMBER)}/24", "dev", outside)
    ip("link", "set", outside, "up")


def plug(name: str, holder: int, host: int) -> None:
    """Give the namespace of process `host` an eth0 on the bridge of `holder`."""
    ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(host), inside=holder)
    ip("link", "set", name, "master", "lab", "up", inside=holder)
