"""A run on two hosts of the lab: posts to web1, whose Apache hands them over mod_jk to the Tomcat of app1.

    python -m tests.lab.two_hosts tests/recordings/two-hosts.cockpit

brings up a lab of the two, records such a run to a file that must not be there, and takes the lab down again.
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
    """Records a run through mod_jk, which it switches on; its result. `options` are the command's, as in `-z 5s`.

    Raises LabError with what the command said when it fails.
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
