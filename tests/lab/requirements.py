"""What a machine must have for the lab to run on it."""

import os
import shutil
import subprocess
from pathlib import Path

TABLE = Path(__file__).with_name("packages")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# What every lab does first; run in namespaces of its own, so it leaves nothing.
PROBE = "mount -n -t tmpfs none /mnt && ip link add bridge0 type bridge && ip link add veth0 type veth peer name veth1"


def required_commands() -> list[str]:
    """The commands of the package table that the lab cannot do without."""
    rows = (line.split() for line in TABLE.read_text().splitlines() if line and not line.startswith("#"))
    return [row[0] for row in rows if not row[1].startswith("?")]


def missing() -> list[str]:
    """What keeps the lab from running here, in words; empty when nothing does."""
    if not Path("/etc/debian_version").exists():
        return ["Debian"]
    found = [] if os.geteuid() == 0 else ["root"]
    path = f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}"
    found += [command for command in required_commands() if shutil.which(command, path=path) is None]
    return found or _missing_rights()


def _missing_rights() -> list[str]:
    """A container may have root and the packages, but no leave to make namespaces."""
    unshare = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "sh", "-c", PROBE]
    done = subprocess.run(unshare, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return [] if done.returncode == 0 else [f"the right to make namespaces ({done.stderr.strip()})"]
