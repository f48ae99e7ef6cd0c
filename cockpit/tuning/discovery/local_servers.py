"""Web servers of known kinds that run on this machine: names, command lines and listening ports of processes.

No program is run, and no connection is made.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cockpit.servers.inventory import Inventory, PortListener, Process
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import KINDS, PROCESSES

if TYPE_CHECKING:
    import psutil

# Maximum number of addresses per server.
_ADDRESSES = 2
# Ports of web servers. A server that listens on such a port listens on others for administration.
_WEB_PORTS = frozenset({80, 443, 3000, 3128, 5000, 6081, 8000, 8080, 8081, 8443, 8888})
_TLS_PORTS = frozenset({443, 8443})
_ANY = ("0.0.0.0", "::", "")
_NETWORK = "/proc/{}/ns/net"


class LocalServer(NamedTuple):
    """A web server of this machine. `processes` is the pattern of its names; `url` is "" if only another user can read
    its sockets. `user` is the owner of its first process."""

    kind: str
    processes: str
    url: str
    user: str = ""


def local_servers() -> list[LocalServer]:
    """Return the running web servers that are reachable from here, one entry per address. Takes about 0.2 s."""
    known = _known_processes()
    users = {process.pid: process.info["username"] or "" for process in known}
    ports, addresses = _listeners(known)
    inventory = Inventory(processes=tuple(map(_described, known)), listening=tuple(ports))
    servers: list[LocalServer] = []
    for kind in KINDS:
        for master in inventory.masters(*kind.processes) if kind.speaks_http else ():
            server = kind.running(master, inventory)
            if server is not None and _is_here(master.pid):
                urls = _urls(server, addresses) or ([""] if _is_hidden(master.pid) else [])
                servers += [LocalServer(kind.name, server.pattern, url, users[master.pid]) for url in urls]
    return list(dict.fromkeys(servers))


def _known_processes() -> list[psutil.Process]:
    """Return the processes with the name of a known kind, parents first."""
    import psutil

    return [
        process
        for process in psutil.process_iter(["pid", "ppid", "name", "username"])
        if any(fnmatchcase(process.info["name"] or "", pattern) for pattern in PROCESSES)
    ]


def _described(process: psutil.Process) -> Process:
    import psutil

    command: list[str] = []
    directory = ""
    with suppress(psutil.Error):
        command = process.cmdline()
        directory = process.cwd()
    return Process(process.pid, process.info["ppid"] or 0, process.info["name"], tuple(command), directory=directory)


def _listeners(known: Sequence[psutil.Process]) -> tuple[list[PortListener], dict[int, str]]:
    """Return the listening ports of the processes in the network of this process, and the address of each port."""
    import psutil

    names = {process.pid: process.info["name"] for process in known}
    listeners: list[PortListener] = []
    addresses: dict[int, str] = {}
    # One pass over all sockets: per process, the kernel would list all of them each time.
    with suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.pid in names:
                ip, port = connection.laddr
                listeners.append(PortListener(names[connection.pid], connection.pid, port))
                addresses[port] = ip if addresses.get(port) not in _ANY else addresses[port]
    return listeners, addresses


def _is_here(pid: int) -> bool:
    """Return whether a process is not known to be in another network, such as that of a container."""
    try:
        return Path(_NETWORK.format(pid)).readlink() == Path(_NETWORK.format("self")).readlink()
    except OSError:
        return True


def _is_hidden(pid: int) -> bool:
    """Return whether this user must not read the sockets of a process."""
    return not os.access(f"/proc/{pid}/fd", os.R_OK)


def _urls(server: RunningServer, addresses: dict[int, str]) -> list[str]:
    ports = [port for port in server.ports if port in _WEB_PORTS] or list(server.ports)
    ports = [port for port in ports if port not in _TLS_PORTS] or ports
    return [_url(addresses[port], port) for port in ports[:_ADDRESSES]]


def _url(ip: str, port: int) -> str:
    scheme, usual = ("https", 443) if port in _TLS_PORTS else ("http", 80)
    host = "127.0.0.1" if ip in _ANY else f"[{ip}]" if ":" in ip else ip
    return f"{scheme}://{host}{'' if port == usual else f':{port}'}/"
