"""A run on two hosts of the lab: POST requests to web1, whose Apache forwards them through mod_jk to Tomcat on app1.

    python -m tests.lab.two_hosts tests/recordings/two-hosts.cockpit

brings up a lab of the two hosts, records such a run to a new file, and takes the lab down.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.lab.cpus import generator_cpu
from tests.lab.errors import LabError
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Lab

PROFILE = Path(__file__).with_name("two-hosts.toml")
SWITCH_ON = "a2enmod -q jk && service apache2 restart"


def record(lab: Lab, file: Path, *options: str) -> dict[str, Any]:
    """Enable mod_jk, record a run and return its result. `options` are flags of the command, e.g. `-z 5s`.

    Raises LabError with the command's stderr if it fails.
    """
    lab.web1.ssh(SWITCH_ON)
    command = [
        *(sys.executable, "-m", "cockpit", "run", "--trust", str(PROFILE), "--no-tui", "--json", "--record", str(file)),
        *("--ssh-config", str(lab.ssh_config), "--connect-to", f"{lab.web1.address}:80"),
        *("--cpus", str(generator_cpu()), *options),
    ]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=REPOSITORY)
    if done.returncode != 0:
        raise LabError(f"the run ended with {done.returncode}: {done.stderr.strip()}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    with Lab.start("web1", "app1") as lab:
        result = record(lab, Path(sys.argv[1]))
    print(f"{result['completed']} requests, {result['failed']} failed")


if __name__ == "__main__":
    main()
