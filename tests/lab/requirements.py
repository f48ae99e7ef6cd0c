"""Requirements of the lab."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

TABLE = Path(__file__).with_name("packages")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Operations of every lab, tried in new namespaces that leave nothing.
PROBE = "mount -n -t tmpfs none /mnt && ip link add bridge0 type bridge && ip link add veth0 type veth peer name veth1"
# Operations of a host with a disk: create an ext4 file system in a file and mount it.
DISK_PROBE = (
    "mount -n -t tmpfs none /mnt && truncate -s 1M /mnt/image && mkdir /mnt/point && mkfs.ext4 -q -F /mnt/image"
    " && mount -n -t ext4 -o loop /mnt/image /mnt/point"
)


def required() -> list[str]:
    """Return the required commands and files of the package table; a file's path may contain "*"."""
    rows = (line.split() for line in TABLE.read_text().splitlines() if line and not line.startswith("#"))
    return [row[0] for row in rows if not row[1].startswith("?")]


@functools.cache
def missing() -> list[str]:
    """Return the missing requirements; empty if the lab can run here."""
    if not Path("/etc/debian_version").exists():
        return ["Debian"]
    found = [] if os.geteuid() == 0 else ["root"]
    found += [name for name in required() if not _present(name)]
    return found or _missing_rights()


def _present(name: str) -> bool:
    if "/" in name:
        return any(Path("/").glob(name.lstrip("/")))
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}") is not None


def _missing_rights() -> list[str]:
    """Return missing rights: a container may have root and the packages, but no right to create namespaces."""
    for right, probe in (("make namespaces", PROBE), ("mount an ext4 file system over a loop device", DISK_PROBE)):
        unshare = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "sh", "-c", probe]
        done = subprocess.run(
            unshare, capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**os.environ, "PATH": SYSTEM_PATH}
        )
        if done.returncode != 0:
            return [f"the right to {right} ({done.stderr.strip()})"]
    return []
