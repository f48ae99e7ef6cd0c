"""The lab's network: a free subnet, and a bridge in a namespace of its own with one leg on this machine.

Nothing of it but that leg is visible on the machine, and the leg goes when the namespace goes, which is when the
process that holds it (and every host) has ended, however it ended.
"""

import ipaddress
import json
import socket
import subprocess

from tests.lab.errors import LabError

SUBNETS = tuple(f"{base}.{number}.0/24" for base in ("10.77", "198.18") for number in range(100))
MACHINE_NUMBER = 1  # the machine's own last number in the subnet


def ip(*arguments: str, inside: int | None = None) -> str:
    """Runs ip(8), in the network namespace of process `inside` if given. Raises LabError with its message."""
    prefix = [] if inside is None else ["nsenter", "--target", str(inside), "--net"]
    done = subprocess.run([*prefix, "ip", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise LabError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def interface(number: int) -> str:
    """The name of lab `number`'s leg on this machine."""
    return f"cockpit{number}"


def legs() -> set[int]:
    """The numbers of the labs that have a leg on this machine."""
    names = {name for _, name in socket.if_nameindex()}
    return {number for number in range(len(SUBNETS)) if interface(number) in names}


def address(number: int, host: int) -> str:
    """The address of host `host` of lab `number`."""
    return str(ipaddress.ip_network(SUBNETS[number])[host])


def claim(number: int) -> socket.socket | None:
    """Claims lab number `number` for as long as the socket (or its process) lives; None when another lab has it.

    An abstract Unix socket: the kernel lets go of it with the process, and it leaves no file.
    """
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        mark.bind(f"\0cockpit-lab-{number}")
    except OSError:
        mark.close()
        return None
    return mark


def claim_free() -> tuple[int, socket.socket]:
    """The first lab number that nobody has claimed and whose subnet this machine uses for nothing else."""
    taken = _networks_in_use()
    for number, subnet in enumerate(SUBNETS):
        if any(ipaddress.ip_network(subnet).overlaps(network) for network in taken):
            continue
        mark = claim(number)
        if mark is not None:
            return number, mark
    raise LabError(f"no free subnet for the lab: every one from {SUBNETS[0]} to {SUBNETS[-1]} is in use")


def _networks_in_use() -> list[ipaddress.IPv4Network]:
    """What this machine has addresses in or routes to, apart from the default route."""
    routes = json.loads(ip("-json", "-4", "route", "show", "table", "all"))
    return [ipaddress.IPv4Network(route["dst"], strict=False) for route in routes if route["dst"] != "default"]


def build_switch(number: int, holder: int, machine: int) -> None:
    """A bridge in the namespace of process `holder`, and the leg into that of process `machine`."""
    leg = interface(number)
    ip("link", "add", "lab", "type", "bridge", "forward_delay", "0", inside=holder)
    ip("link", "add", "machine", "type", "veth", "peer", "name", leg, "netns", str(machine), inside=holder)
    ip("link", "set", "machine", "master", "lab", "up", inside=holder)
    ip("link", "set", "lab", "up", inside=holder)
    ip("address", "add", f"{address(number, MACHINE_NUMBER)}/24", "dev", leg)
    ip("link", "set", leg, "up")


def plug(name: str, holder: int, host: int) -> None:
    """Gives process `host`'s namespace an eth0 on the bridge of `holder`."""
    ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(host), inside=holder)
    ip("link", "set", name, "master", "lab", "up", inside=holder)
