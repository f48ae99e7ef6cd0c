"""CPU quotas of lab hosts: one cgroup per host, of whichever version holds this machine's cpu controller.

A host with a quota is a slow machine of its own: the server is the limit, not the generator, and two hosts have twice
the CPU of one. Its cgroup holds one for its servers and one for its logins, as systemd has slices for them: a hundred
busy threads of a server keep no sshd waiting. The generator has a cgroup without a quota; like those of the hosts it
goes before other work. The names of the cgroups hold the network namespace, in which lab numbers are unique.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SHARE = 0.3  # of one CPU; three hosts at work fit on the servers' CPU
# Microseconds. A host that used up its quota waits for the rest of a period: short, so that the wait is no tail.
PERIOD = 10_000
# Most of what there is: other work on the CPU must not take what the quota promises.
V1_SHARES, V2_WEIGHT = 262_144, 10_000
# The cgroups within that of a host.
SERVERS, LOGINS = "servers", "logins"
REMOVAL = 10.0  # seconds for the last processes of a cgroup to be gone


@dataclass(frozen=True)
class Controller:
    """The cpu controller: where its hierarchy is mounted, and of which version of cgroups it is."""

    root: Path
    version: int

    def prefer(self, cgroup: Path) -> None:
        """Put a cgroup ahead of other work. Raises OSError."""
        if self.version == 1:
            (cgroup / "cpu.shares").write_text(str(V1_SHARES))
        else:
            (cgroup / "cpu.weight").write_text(str(V2_WEIGHT))

    def limit(self, cgroup: Path, share: float) -> None:
        """Set a cgroup's quota to `share` of one CPU, ahead of other work. Raises OSError."""
        quota = round(share * PERIOD)
        if self.version == 1:
            (cgroup / "cpu.cfs_period_us").write_text(str(PERIOD))
            (cgroup / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (cgroup / "cpu.max").write_text(f"{quota} {PERIOD}")
        self.prefer(cgroup)

    def create(self, name: str) -> Path:
        """Create a cgroup without a quota; its directory. Raises OSError."""
        cgroup = self.root / name
        if self.version == 2 and "cpu" not in (cgroup.parent / "cgroup.subtree_control").read_text().split():
            (cgroup.parent / "cgroup.subtree_control").write_text("+cpu")
        cgroup.mkdir()
        return cgroup


def controller(mounts: Path = Path("/proc/self/mountinfo")) -> Controller | None:
    """The machine's cpu controller; None if none is mounted."""
    for row in mounts.read_text().splitlines():
        place, _, kind = row.partition(" - ")
        root, words = Path(place.split()[4]), kind.split()
        if words[0] == "cgroup" and "cpu" in words[2].split(","):
            return Controller(root, 1)
        if words[0] == "cgroup2" and "cpu" in _lines(root / "cgroup.controllers").split():
            return Controller(root, 2)
    return None


def obstacle() -> str | None:
    """The reason why this machine grants no CPU quotas; None if it does."""
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


def create_host(number: int, name: str) -> Path:
    """The new cgroup of a host of lab `number`, without a quota, and those within it. Raises OSError."""
    granting = _granting()
    host = granting.create(f"{_prefix()}{number}-{name}")
    granting.create(f"{host.name}/{SERVERS}")
    granting.prefer(granting.create(f"{host.name}/{LOGINS}"))
    return host


def create_generator(number: int) -> Path:
    """The new cgroup of the generator of lab `number`, without a quota, ahead of other work. Raises OSError."""
    granting = _granting()
    generator = granting.create(f"{_prefix()}{number}-generator")
    granting.prefer(generator)
    return generator


def limit(cgroup: Path, share: float) -> None:
    """Set the quota of a host's cgroup. Raises OSError."""
    _granting().limit(cgroup, share)


def _granting() -> Controller:
    found = controller()
    assert found is not None, obstacle()
    return found


def entering(cgroup: Path | None, command: list[str]) -> list[str]:
    """The command, run in a cgroup (None: where it is started); what it starts stays there."""
    if cgroup is None:
        return command
    return ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(cgroup), *command]


def cgroups(number: int) -> list[Path]:
    """The cgroups of lab `number`."""
    return [path for path in _all() if path.name.removeprefix(_prefix()).partition("-")[0] == str(number)]


def numbers() -> set[int]:
    """The numbers of the labs that have a cgroup."""
    named = (path.name.removeprefix(_prefix()).partition("-")[0] for path in _all())
    return {int(number) for number in named if number.isdecimal()}


def remove(number: int) -> None:
    """Remove the cgroups of a lab whose hosts are gone, or about to be; a generator that still runs leaves its own."""
    deadline = time.monotonic() + REMOVAL
    while left := cgroups(number):
        for path in left:
            for each in (path / SERVERS, path / LOGINS, path):
                _evict(each, path.parent)
                with suppress(OSError):  # a process is still in it, or another cleaner was faster
                    each.rmdir()
        if time.monotonic() > deadline:
            return
        time.sleep(0.02)


def _evict(cgroup: Path, root: Path) -> None:
    """Move what is in a cgroup to the root of the hierarchy."""
    for pid in _lines(cgroup / "cgroup.procs").split():
        with suppress(OSError):  # it has ended
            (root / "cgroup.procs").write_text(pid)


def _prefix() -> str:
    return f"cockpit-quota-{Path('/proc/self/ns/net').stat().st_ino}-"


def _all() -> list[Path]:
    found = controller()
    return [] if found is None else sorted(found.root.glob(f"{_prefix()}*"))


def _lines(path: Path) -> str:
    """The text of a file; empty if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""
