"""Cost of counting an access log on the host."""

import os
import random
import resource
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from cockpit.traffic.log_format import PRESETS
from cockpit.traffic.program import counter
from tests.bench.table import Skipped, at_most, report_other_load, rounds, show

LINES, PER_SECOND = 200_000, 5000
MARK = "\001mark "
# CPU relative to the peer.
BAR = 8.0
# The shortest program with the same statuses: awk splits all fields for it.
PEER = "{ statuses[$9]++ } END { for (status in statuses) print status, statuses[status] }"


def log_cost() -> bool:
    """CPU of mawk, the awk of Debian, for combined format with durations, with a report per second."""
    if not shutil.which("mawk"):
        raise Skipped("mawk is not installed")
    programs = {"cockpit": counter(MARK, PRESETS["apache"]), "peer": PEER}
    with tempfile.NamedTemporaryFile("w") as log, report_other_load():
        log.writelines(_lines())
        log.flush()
        measured = rounds({name: partial(_cpu, program, log.name) for name, program in programs.items()})
    lines = [
        f"{name:8} {1e6 * cpu:.2f} us CPU/line, {100 * PER_SECOND * cpu:.2f}% of a core at {PER_SECOND} lines/s"
        for name, cpu in ((name, median(seconds) / LINES) for name, seconds in measured.items())
    ]
    ratio = median(own / peer for own, peer in zip(*measured.values(), strict=True))
    return show(f"access log, {LINES:,} lines", lines, [at_most("CPU relative to the peer", ratio, BAR)])


def _lines() -> list[str]:
    random_ = random.Random(2)
    lines = []
    for number in range(LINES):
        item, page = random_.randrange(5000), random_.randrange(9)
        path = random_.choice(("/", f"/item/{item}", "/static/app.js", f"/api/v1/users/{item}/orders?page={page}"))
        status, us = random_.choice((200,) * 9 + (404,)), int(random_.lognormvariate(8, 1))
        lines.append(
            f'203.0.113.7 - - [28/Nov/2026:12:00:00 +0000] "GET {path} HTTP/1.1" {status} {item} "https://example.org/"'
            f' "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0" {us}\n'
        )
        if number % PER_SECOND == PER_SECOND - 1:
            lines.append(f"{MARK}{number // PER_SECOND}.00\n")
    return lines


def _cpu(program: str, log: str) -> float:
    """Return user and system time (s) of awk."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with Path(log).open("rb") as file:
        command = ["mawk", "-W", "interactive", program]
        subprocess.run(command, stdin=file, stdout=subprocess.DEVNULL, check=True, env=os.environ | {"LC_ALL": "C"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
