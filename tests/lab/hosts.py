"""The hosts of the lab. A further host is a further row here, its servers rows in services.py."""

from dataclasses import dataclass

from tests.lab.services import APACHE, Service


@dataclass(frozen=True)
class HostSpec:
    """A host: its name, the last number of its address, what it serves (sshd comes with every host)."""

    name: str
    number: int
    services: tuple[Service, ...]


HOSTS = (HostSpec("web1", 11, (APACHE,)),)
