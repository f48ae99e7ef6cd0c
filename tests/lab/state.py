"""Records and remains of labs, by which any process can find a lab and take it down."""

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.lab import network, quotas
from tests.lab.errors import LabError
from tests.lab.inside import DISKS

BASE = Path("/run/cockpit-lab")  # one directory per lab, named by its number
DEADLINE = 180.0  # s for the start or the end of a lab
LABEL = re.compile(r"cockpit-lab-(\d+)\b")


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
    """Return the source name of the lab's mounts, which identifies its processes."""
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
    found = {int(path.name) for path in BASE.glob("[0-9]*")}
    found.update(network.labs_with_interface())
    found.update(quotas.numbers())
    found.update(number for numbers in _labelled_processes().values() for number in numbers)
    return sorted(found)


def images(number: int) -> list[Path]:
    """Return the disk images of the lab, which are unlinked as soon as they are mounted."""
    return sorted(Path(DISKS).glob(f"{label(number)}-*"))


def leftovers(number: int) -> list[str]:
    """List the remains of a lab as text: processes, mounts, network interface, cgroups, images, directory."""
    found = [f"process {pid}" for pid, numbers in _labelled_processes().items() if number in numbers]
    if label(number) in re.findall(r"cockpit-lab-\d+", Path("/proc/self/mountinfo").read_text()):
        found.append(f"mount {label(number)}")
    if number in network.labs_with_interface():
        found.append(f"network interface {network.interface(number)}")
    found += [f"cgroup {path}" for path in quotas.cgroups(number)]
    found += [f"file {path}" for path in images(number)]
    if directory(number).exists():
        found.append(f"directory {directory(number)}")
    return found


def remove_files(number: int) -> None:
    for image in images(number):
        image.unlink(missing_ok=True)
    shutil.rmtree(directory(number), ignore_errors=True)
    with suppress(OSError):  # other labs may use it
        BASE.rmdir()


def clear(number: int) -> None:
    """Remove the remains of a lab whose keeper is dead; raises LabError with the remains that stay.

    The number is claimed during the removal; a number claimed by a keeper is a running lab and is not touched.
    """
    claimed = network.claim(number)
    if claimed is None:
        return
    with claimed:
        for pid, numbers in _labelled_processes().items():
            if number in numbers:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        with suppress(LabError):  # usually it has disappeared with its namespace
            network.ip("link", "delete", network.interface(number))
        quotas.remove(number)
        remove_files(number)
        if not wait_for(lambda: not leftovers(number)):
            raise LabError(f"still there after {DEADLINE:.0f} s: {', '.join(leftovers(number))}")


def wait_for(condition: Callable[[], bool], seconds: float = DEADLINE) -> bool:
    """Wait for a condition; return whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _labelled_processes() -> dict[int, set[int]]:
    """Return the processes that see mounts of a lab, with the numbers of these labs."""
    found = {}
    # Not a glob of files in them, which fails if a process ends.
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            numbers = {int(number) for number in LABEL.findall((process / "mountinfo").read_text())}
            if numbers:
                found[int(process.name)] = numbers
    return found
