"""Addresses of servers that only ssh_config knows by name."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path


def addresses_of(names: Iterable[str], ssh_config: Path | None) -> dict[str, str]:
    """Return the `HostName` of each name that no resolver knows and ssh_config has."""
    return {name: address for name in names if (address := _address(name, ssh_config))}


def _address(name: str, ssh_config: Path | None) -> str:
    from cockpit.hosts.ssh_settings import Destination, read_settings

    try:
        socket.getaddrinfo(name, None)
        return ""
    except OSError:
        settings = read_settings(Destination(name), ssh_config)
        return "" if settings.host == name else settings.host
