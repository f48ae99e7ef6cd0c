"""Records and remains of labs, by which any process can find a lab and take it down."""

import json
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.lab import network, quotas
from tests.lab.errors import LabError
from tests.lab.inside import DISKS
from tests.waiting import wait_until

BASE = Path("/run/cockpit-lab")  # one directory per lab, named by its number
DEADLINE = 180.0  # s for the start or the end of a lab


@dataclass(frozen=True)
class HostState:
    """A running host: address, PID of its process 1 on the machine, URL of a page, cgroup (if any)."""

    address: str
    pid: int
    url: str
    cgroup: str | None


@dataclass(frozen=True)
class LabState:
    """A running lab. `stay`: brought up and taken down by hand.

    `share`: the quota of each host, of one CPU; None without quotas. `obstacle`: why there are no quotas although
    requested. `generator`: the cgroup of the load generator, if hosts have quotas.
    """

    number: int
    keeper: int
    stay: bool
    share: float | None
    obstacle: str | None
    generator: str | None
    hosts: dict[str, HostState]


def directory(number: int) -> Path:
    return BASE / str(number)


def label(number: int) -> str:
    """Return the source name of the lab's mounts."""
    return f"cockpit-lab-{number}"


def write(state: LabState) -> None:
    path = directory(state.number) / "state.json"
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(asdict(state), indent=2))
    draft.replace(path)


def read(number: int) -> LabState | None:
    """Return the lab's record; None if there is none (yet)."""
    try:
        raw = json.loads((directory(number) / "state.json").read_text())
    except FileNotFoundError:
        return None
    hosts = {name: HostState(**host) for name, host in raw.pop("hosts").items()}
    return LabState(**raw, hosts=hosts)


def is_kept(number: int) -> bool:
    """Return whether the lab's keeper runs."""
    claimed = network.claim(number)
    if claimed is None:
        return True
    claimed.close()
    return False


def known() -> list[int]:
    """Return the numbers of all labs with remains on this machine."""
    directories = {int(path.name) for path in BASE.glob("[0-9]*")}
    return sorted(directories | network.labs_with_interface() | quotas.numbers())


def leftovers(number: int) -> list[str]:
    """List the remains of a lab as text. Its interface exists until its last process has ended."""
    found = [f"network interface {network.interface(number)}"] if number in network.labs_with_interface() else []
    found += [f"cgroup {path}" for path in quotas.cgroups(number)]
    # Disk images are unlinked as soon as they are mounted.
    return found + [f"file {path}" for path in (*_images(number), directory(number)) if path.exists()]


def _images(number: int) -> list[Path]:
    return sorted(Path(DISKS).glob(f"{label(number)}-*"))


def remove_files(number: int) -> None:
    for image in _images(number):
        image.unlink(missing_ok=True)
    shutil.rmtree(directory(number), ignore_errors=True)
    with suppress(OSError):  # other labs may use it
        BASE.rmdir()


def clear(number: int) -> None:
    """Remove the remains of a lab whose keeper is dead. Raises TimeoutError if something stays.

    The number is claimed during the removal; a number claimed by a keeper is a running lab and is not touched.
    """
    claimed = network.claim(number)
    if claimed is None:
        return
    with claimed:
        with suppress(LabError):  # usually it has disappeared with its namespace
            network.ip("link", "delete", network.interface(number))
        quotas.remove(number)
        remove_files(number)
        wait_until(lambda: not leftovers(number), DEADLINE)
