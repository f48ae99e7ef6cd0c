"""Matches the URL of a target with a host and its port."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from socket import AF_INET, AF_INET6, SOCK_DGRAM, gethostname, socket
from urllib.parse import urlsplit

from cockpit.hosts.ssh.settings import Destination, read_settings
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import LoadPlan
from cockpit.model.via import name_of


def port_of(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def port_here(plan: LoadPlan, config: HostConfig, ssh_config: Path | None = None) -> int | None:
    """Return the target's port if the target is on this host; None: it is on another host, or a Unix socket. Raises
    UsageError for an invalid ssh_config."""
    return port_of(plan.url) if not plan.unix and is_on_host(plan.url, config, ssh_config) else None


def is_on_host(url: str, config: HostConfig, ssh_config: Path | None = None) -> bool:
    """Whether a URL is on this host, by their names. Raises UsageError for an invalid ssh_config."""
    name = urlsplit(url).hostname or ""
    if config.via:
        # The port that a machine forwards to a container is unknown.
        return bool(name) and name == name_of(config.via)
    if config.ssh is None:
        return _loopback(name) or _is_own(name)
    address = read_settings(Destination.parse(config.ssh), ssh_config).host
    known = {host.lower() for host in (bare_host(config.ssh), address)}
    return not known.isdisjoint((name, name.partition(".")[0])) or (_loopback(name) and any(map(_loopback, known)))


def _loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _is_own(name: str) -> bool:
    """Whether the name is this machine's name, or an address to which a socket can be bound."""
    own = gethostname().lower()
    if name in (own, own.partition(".")[0]):
        return True
    try:
        family = AF_INET6 if ip_address(name).version == 6 else AF_INET
        with socket(family, SOCK_DGRAM) as bound:
            bound.bind((name, 0))
    except (ValueError, OSError):
        return False
    return True


def bare_host(destination: str) -> str:
    """Return the host of a destination, without user and port."""
    host = destination.rpartition("@")[2]
    return host.partition("]")[0].strip("[") if host.startswith("[") else host.partition(":")[0]
