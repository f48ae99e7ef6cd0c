"""`make studies`: every shipped study in its short form on a lab, and their tables in the README.

    python -m tests.lab.studies [--readme] [NAME...]

brings the lab up, runs the studies named (all), prints what each came to, and takes the lab down again. With --readme
the tables go into the README, between its marks, with the date, the machine and the command.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cockpit.report.study import DETAILS
from tests.lab.cpus import on_generator_cpu
from tests.lab.hosts import NAMES
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Lab

PROFILES = REPOSITORY / "profiles"
README = REPOSITORY / "README.md"
BEGIN, END = "<!-- studies: written by make studies -->\n", "<!-- end of studies -->\n"
# In the order of the questions, from the oldest.
STUDIES = (
    "spare-servers",
    "jit-warm-up",
    "topologies",
    "restart-memory",
    "mpm",
    "caches",
    "large-file",
    "atime",
)
# Where the lab's outcome differs from what engineers published of such a study, and why.
REMARKS = {
    "spare-servers": "Published: 525.7 req/s before, 683.5 after. Here births fall to a tenth and the tail with them; "
    "after the change the generator's one CPU is the limit and no longer the server, so that the rate is the least.",
    "jit-warm-up": "Published: first runs four times slower, then a steady 681 req/s. The warm-up is the same here; "
    "compiler and server share one CPU, so that it takes some runs more, and -server ends where the generator does.",
    "topologies": "Published: Apache in front costs nothing, two machines hold out longest. All hosts of the lab share "
    "one CPU, so that a second machine brings no second processor; a request is far cheaper than it was then.",
    "restart-memory": "Published: RSS grew from 7 to 27 MB a worker with 20 restarts. Today's server gives back what a "
    "restart leaves behind, so that hardly any of that is seen; free memory did not move then either.",
    "caches": "Published: all within a tenth of each other, the client being the limit at 50 req/s. Here the client is "
    "fast enough to show what a hop, a store and a miss cost.",
    "large-file": "Published: no difference. Here the memory store is memcached: each reply takes 6 MB over a socket, "
    "while the disk cache's file is sent from the page cache as it is.",
}
# Exit codes of a study that came to its end: steady, or not.
ENDED = (0, 4)


def run(lab: Lab, name: str, folder: Path) -> int:
    """Runs a study in its short form into a folder; its exit code. Progress goes to stderr."""
    command = [
        *(sys.executable, "-m", "cockpit", "study", str(PROFILES / f"{name}.toml"), "--short", "--no-tui"),
        *("--ssh-config", str(lab.ssh_config), "-o", str(folder)),
    ]
    return subprocess.run(on_generator_cpu(command), stdin=subprocess.DEVNULL, cwd=REPOSITORY).returncode


def _section(name: str, result: str) -> str:
    """A study's markdown for the README: its runs and looks folded away, and the remark on it."""
    head, found, details = result.partition(DETAILS)
    if found:
        head += f"<details><summary>{DETAILS.rstrip(':')}</summary>{details}\n\n</details>"
    return head.rstrip() + _remark(name)


def _remark(name: str) -> str:
    return f"\n\n{REMARKS[name]}\n\n" if name in REMARKS else "\n\n"


def machine() -> str:
    """The machine in a line."""
    rows = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((row.partition(":")[2].strip() for row in rows if row.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kernel = platform.release().partition("-")[0]
    return f"{os.cpu_count()} x {model}, {memory:.0f} GiB, Linux {kernel}, Python {platform.python_version()}"


def into_readme(results: dict[str, str], seconds: float) -> None:
    """Puts the studies' markdown between the README's marks."""
    text = README.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    when = time.strftime("%Y-%m-%d %H:%M")
    head = f"{when}, {machine()}; `make studies`, {seconds / 60:.0f} min. Servers on one CPU, load on the other:\n"
    head += "a host's `%user`, `%system` and `%idle` are the whole machine's, its `own %cpu` is its servers' alone.\n"
    README.write_text(f"{before}{BEGIN}{head}\n{''.join(results.values())}{END}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.studies", description="The studies on a lab.")
    parser.add_argument("--readme", action="store_true", help="write the tables into the README")
    parser.add_argument("name", nargs="*", help=f"which (all): {', '.join(STUDIES)}")
    words = parser.parse_args()
    unknown = [name for name in words.name if name not in STUDIES]
    if unknown:
        parser.error(f"no such study: {', '.join(unknown)}; there are {', '.join(STUDIES)}")
    begun, results, failed = time.monotonic(), {}, []
    with tempfile.TemporaryDirectory(prefix="studies-") as directory, Lab.start(*NAMES) as lab:
        for name in words.name or STUDIES:
            folder = Path(directory) / name
            if run(lab, name, folder) in ENDED:
                results[name] = _section(name, (folder / "result.md").read_text())
            else:
                failed.append(name)
    if words.readme:
        into_readme(results, time.monotonic() - begun)
    if failed:
        print(f"did not come to their end: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
