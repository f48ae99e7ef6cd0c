"""A temporary copy of this machine for one command: copy-on-write, with its own processes.

throwaway.run("sh /srv/given/install", given=Path("folder"))
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.lab import inside
from tests.lab.keeper import DIES_WITH_US, REPOSITORY

NEW_MACHINE = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--net", "--fork", "--kill-child=KILL"]
GIVEN = "srv/given"


def run(script: str, given: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a shell script as root on a temporary copy of this machine, with the folder `given` as /srv/given.

    The copy has no network, and /run, /tmp, /root and /var/log are empty.
    """
    with tempfile.TemporaryDirectory(prefix="cockpit-throwaway-") as stage:
        command = [*DIES_WITH_US, *NEW_MACHINE, sys.executable, "-m", "tests.lab.throwaway", stage, str(given), script]
        return subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=REPOSITORY, timeout=timeout
        )


def main() -> None:
    stage, given, script = sys.argv[1:]
    root = inside.build_root(Path(stage), "cockpit-throwaway")
    shutil.copytree(given, root / GIVEN)
    inside.enter_root(root)
    sys.exit(subprocess.run(["sh", "-c", script], env=inside.ENVIRONMENT).returncode)


if __name__ == "__main__":
    main()
