"""The hosts of the lab. A further host is a further row here, its servers a module of their own."""

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
    """A host: its name, the last number of its address, what it serves (sshd comes with every host), its disks.

    `page` is what comes after its address in the URL of a page of it. `after`: hosts that must answer on port 80
    before it starts its servers, where they are in the same lab.
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
    # squid asks its origin for nothing at first when that did not answer as squid started.
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
    """The hosts of these names, in the order of HOSTS. Raises LabError naming one that there is not."""
    unknown = sorted(set(names) - set(NAMES))
    if unknown or not names:
        raise LabError(f"no such host: {', '.join(unknown) or '(none named)'}; there are {', '.join(NAMES)}")
    return tuple(spec for spec in HOSTS if spec.name in names)
