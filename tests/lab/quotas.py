"""CPU quotas of lab hosts: one cgroup per host, in the version that has this machine's cpu controller.

A host with a quota is like a slow machine: the server is the bottleneck, not the generator, and two hosts have twice
the CPU of one. Its cgroup contains one for servers and one for logins, like systemd's slices: a hundred busy threads of
a server do not delay sshd. The generator has a cgroup without a quota. All these cgroups have priority over other load.
Their names contain the network namespace, in which lab numbers are unique.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SHARE = 0.3  # of one CPU: three busy hosts fit on the servers' CPU
# µs. A host without remaining quota waits until the end of the period: short, to keep the wait out of the tail.
PERIOD = 10_000
# Child cgroups of a host.
SERVERS, LOGINS = "servers", "logins"
REMOVAL = 10.0  # s until the last processes of a cgroup have ended


@dataclass(frozen=True)
class Controller:
    """The cpu controller: mount point of its hierarchy, and version of cgroups. Its methods raise OSError."""

    root: Path
    version: int

    def create(self, name: str) -> Path:
        """Create a cgroup without a quota; return its directory."""
        cgroup = self.root / name
        if self.version == 2 and "cpu" not in (cgroup.parent / "cgroup.subtree_control").read_text().split():
            (cgroup.parent / "cgroup.subtree_control").write_text("+cpu")
        cgroup.mkdir()
        return cgroup

    def prefer(self, cgroup: Path) -> None:
        """Give a cgroup priority over other load: other load must not take the CPU that a quota grants."""
        name, most = ("cpu.shares", "262144") if self.version == 1 else ("cpu.weight", "10000")
        (cgroup / name).write_text(most)

    def limit(self, cgroup: Path, share: float) -> None:
        """Set a cgroup's quota to `share` of one CPU, with priority over other load."""
        quota = round(share * PERIOD)
        if self.version == 1:
            (cgroup / "cpu.cfs_period_us").write_text(str(PERIOD))
            (cgroup / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (cgroup / "cpu.max").write_text(f"{quota} {PERIOD}")
        self.prefer(cgroup)


def controller() -> Controller | None:
    """Return the machine's cpu controller; None if none is mounted."""
    for row in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, kind = row.partition(" - ")
        root, fields = Path(mount.split()[4]), kind.split()
        if fields[0] == "cgroup" and "cpu" in fields[2].split(","):
            return Controller(root, 1)
        if fields[0] == "cgroup2" and "cpu" in (root / "cgroup.controllers").read_text().split():
            return Controller(root, 2)
    return None


def obstacle() -> str | None:
    """Return the reason why this machine has no CPU quotas; None if it has."""
    found = controller()
    if found is None:
        return "no cgroup hierarchy with a cpu controller is mounted"
    try:
        trial = found.create(f"{_prefix()}trial-{os.getpid()}")
    except OSError as error:
        return f"no cgroup can be made: {error}"
    try:
        found.limit(trial, SHARE)
    except OSError as error:
        return f"no quota can be set: {error}"
    finally:
        trial.rmdir()
    return None


def granting() -> Controller:
    """Return the controller of a machine without an obstacle."""
    found = controller()
    assert found is not None
    return found


def create_host(number: int, name: str) -> Path:
    """Create the cgroup of a host of lab `number` and its child cgroups, without a quota. Raises OSError."""
    host = granting().create(f"{_prefix()}{number}-{name}")
    granting().create(f"{host.name}/{SERVERS}")
    granting().prefer(granting().create(f"{host.name}/{LOGINS}"))
    return host


def create_generator(number: int) -> Path:
    """Create the generator's cgroup of lab `number`, without a quota, with priority. Raises OSError."""
    generator = granting().create(f"{_prefix()}{number}-generator")
    granting().prefer(generator)
    return generator


def entering(cgroup: Path | None, command: list[str]) -> list[str]:
    """Return a command that runs with its children in a cgroup; None: the cgroup of its parent."""
    if cgroup is None:
        return command
    return ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(cgroup), *command]


def cgroups(number: int) -> list[Path]:
    """Return the cgroups of lab `number`."""
    return [path for path in _all() if _number(path) == str(number)]


def numbers() -> set[int]:
    """Return the numbers of the labs with a cgroup."""
    return {int(_number(path)) for path in _all() if _number(path).isdecimal()}


def remove(number: int) -> None:
    """Remove the cgroups of a lab whose hosts have ended or are about to; move a running generator out of its own."""
    deadline = time.monotonic() + REMOVAL
    while (left := cgroups(number)) and time.monotonic() < deadline:
        for path in left:
            for each in (path / SERVERS, path / LOGINS, path):
                with suppress(OSError):  # a process has ended or is still in it, or another cleaner was faster
                    for pid in (each / "cgroup.procs").read_text().split():
                        (path.parent / "cgroup.procs").write_text(pid)
                with suppress(OSError):
                    each.rmdir()
        time.sleep(0.02)


def _prefix() -> str:
    return f"cockpit-quota-{Path('/proc/self/ns/net').stat().st_ino}-"


def _all() -> list[Path]:
    found = controller()
    return [] if found is None else sorted(found.root.glob(f"{_prefix()}*"))


def _number(cgroup: Path) -> str:
    return cgroup.name.removeprefix(_prefix()).partition("-")[0]
