"""Where labs are recorded, and what is left of one: so that any process can find a lab and take it down."""

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

BASE = Path("/run/cockpit-lab")  # one directory a lab, named by its number
DEADLINE = 180.0  # seconds for a lab to come or go
LABEL = re.compile(r"cockpit-lab-(\d+)\b")


@dataclass(frozen=True)
class HostState:
    """A running host: its address, the machine's pid of its process 1, a URL of it to load, its cgroup (if any)."""

    address: str
    pid: int
    url: str
    cgroup: str | None


@dataclass(frozen=True)
class LabState:
    """A running lab. `stay`: brought up by hand, to be taken down by hand.

    `share`: the quota of each host, of one CPU; None if there is none. `obstacle`: why not, if one was asked for.
    `generator`: the cgroup of the load generator, if hosts have theirs.
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
    """The name that every mount of the lab bears, by which its processes are known."""
    return f"cockpit-lab-{number}"


def write(state: LabState) -> None:
    path = directory(state.number) / "state.json"
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(asdict(state), indent=2))
    draft.replace(path)


def read(number: int) -> LabState | None:
    """The lab's record; None when there is none (yet)."""
    try:
        raw = json.loads((directory(number) / "state.json").read_text())
    except FileNotFoundError:
        return None
    hosts = {name: HostState(**host) for name, host in raw.pop("hosts").items()}
    return LabState(**raw, hosts=hosts)


def is_kept(number: int) -> bool:
    """Whether the lab's keeper lives."""
    mark = network.claim(number)
    if mark is None:
        return True
    mark.close()
    return False


def known() -> list[int]:
    """The numbers of all labs of which anything can be seen on this machine."""
    found = {int(path.name) for path in BASE.glob("[0-9]*")}
    found.update(network.legs())
    found.update(quotas.numbers())
    found.update(number for numbers in _labelled_processes().values() for number in numbers)
    return sorted(found)


def images(number: int) -> list[Path]:
    """Disk images of the lab; they have names for no longer than it takes to mount them."""
    return sorted(Path(DISKS).glob(f"{label(number)}-*"))


def leftovers(number: int) -> list[str]:
    """What is still there of a lab, in words: processes, mounts, its network leg, cgroups, its directory."""
    found = [f"process {pid}" for pid, numbers in _labelled_processes().items() if number in numbers]
    if label(number) in re.findall(r"cockpit-lab-\d+", Path("/proc/self/mountinfo").read_text()):
        found.append(f"mount {label(number)}")
    if number in network.legs():
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
    with suppress(OSError):  # other labs may live there
        BASE.rmdir()


def clear(number: int) -> None:
    """Clears away what is left of a lab whose keeper is dead; raises LabError naming what stays.

    The number is claimed meanwhile; one that a keeper has claimed is a living lab and is not touched.
    """
    mark = network.claim(number)
    if mark is None:
        return
    with mark:
        for pid, numbers in _labelled_processes().items():
            if number in numbers:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        with suppress(LabError):  # gone with its namespace, as a rule
            network.ip("link", "delete", network.interface(number))
        quotas.remove(number)
        remove_files(number)
        if not wait_for(lambda: not leftovers(number)):
            raise LabError(f"still there after {DEADLINE:.0f} s: {', '.join(leftovers(number))}")


def wait_for(condition: Callable[[], bool], seconds: float = DEADLINE) -> bool:
    """Waits for a condition; whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _labelled_processes() -> dict[int, set[int]]:
    """Processes that see the mounts of a lab (those in it), and of which."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/mountinfo"):
        with suppress(OSError):  # it ended meanwhile
            numbers = {int(number) for number in LABEL.findall(path.read_text())}
            if numbers:
                found[int(path.parts[2])] = numbers
    return found
