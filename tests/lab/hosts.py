"""The hosts of the lab: one row in HOSTS per host, one module for its servers."""

from dataclasses import dataclass

from tests.lab import app1, origin1, proxy1, web1
from tests.lab.errors import LabError
from tests.lab.services import Service


@dataclass(frozen=True)
class Disk:
    """An ext4 file system of `megabytes`, mounted at `path` from an image on this machine's disk."""

    path: str
    megabytes: int


@dataclass(frozen=True)
class HostSpec:
    """A host: name, last number of its address, servers (besides sshd), and disks.

    `page` is the rest of the URL of a page, after the address. `after`: hosts that must answer on port 80 before this
    host starts its servers, if they are in the same lab.
    """

    name: str
    number: int
    services: tuple[Service, ...]
    page: str = "/hello.html"
    disks: tuple[Disk, ...] = ()
    after: tuple[str, ...] = ()


HOSTS = (
    HostSpec("web1", 11, (web1.APACHE,), disks=(Disk(web1.ATIME_MOUNT, 16), Disk(web1.CACHE_MOUNT, 512))),
    HostSpec("app1", 12, (app1.TOMCAT, app1.APACHE), ":8080/hello.html"),
    # squid does not use its origin for a while if the origin did not answer when squid started.
    HostSpec(
        "proxy1",
        13,
        (proxy1.SQUID, proxy1.NGINX),
        "/img/00001.jpg",
        (Disk(proxy1.STORE_MOUNT, 400), Disk(proxy1.NGINX_MOUNT, 128)),
        ("origin1",),
    ),
    HostSpec("origin1", 14, (origin1.APACHE,)),
)
NAMES = tuple(spec.name for spec in HOSTS)


def chosen(names: tuple[str, ...]) -> tuple[HostSpec, ...]:
    """Return the named hosts in the order of HOSTS. Raises LabError for an unknown name."""
    unknown = sorted(set(names) - set(NAMES))
    if unknown or not names:
        raise LabError(f"no such host: {', '.join(unknown) or '(none named)'}; there are {', '.join(NAMES)}")
    return tuple(spec for spec in HOSTS if spec.name in names)
