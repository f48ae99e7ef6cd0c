"""Cost of CPU profiles on the host."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cockpit.hosts.feed import HostFeed
from cockpit.hosts.stacks.profiler import Profiler
from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent
from cockpit.model.host.samples import HostConfig
from cockpit.model.stacks import DEFAULT_HZ, StackSlice
from tests.bench.table import Skipped, at_most, report_other_load, show
from tests.waiting import until

WORKERS, SLICES = 32, 12
NAME = "bench-profiled"
BAR_SHARE = 1.0  # % of a core, without the start
# py-spy reads the memory of each process, which it stops for that.
PYTHON_WORKERS, BAR_SHARE_OF_WORKER = 4, 3.0
_FORKS = f"""import os
for _ in range({PYTHON_WORKERS - 1}):
    if not os.fork(): break
while True: pass"""


def profile_cost() -> bool:
    """CPU of perf and awk while they profile busy workers."""
    if not shutil.which("perf"):
        raise Skipped("perf is not installed")
    slices, lines = _measured("/bin/sh", "while :; do :; done", WORKERS, WORKERS)
    return show(f"CPU profile at {DEFAULT_HZ} Hz", lines, [at_most("share of a core", _share(slices), BAR_SHARE, "%")])


def python_profile_cost() -> bool:
    """CPU of py-spy and awk while they profile busy workers of one master."""
    with _tools_on_path():
        if not shutil.which("py-spy"):
            raise Skipped("py-spy is not installed")
        slices, lines = _measured(sys.executable, _FORKS, 1, PYTHON_WORKERS)
    limit = at_most("share of a core per process", _share(slices) / PYTHON_WORKERS, BAR_SHARE_OF_WORKER, "%")
    return show(f"CPU profile of Python by py-spy at {DEFAULT_HZ} Hz", lines, [limit])


@contextmanager
def _tools_on_path() -> Iterator[None]:
    """Have the tools of this environment on PATH, as on a host where they are installed."""
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


def _measured(program: str, script: str, processes: int, workers: int) -> tuple[list[StackSlice], list[str]]:
    """Profile busy processes; return their slices after the first, and lines that describe them."""
    with tempfile.TemporaryDirectory() as directory, report_other_load():
        link = Path(directory) / NAME
        link.symlink_to(program)
        running = [subprocess.Popen([link, "-c", script], start_new_session=True) for _ in range(processes)]
        try:
            first, *slices = asyncio.run(_profiled())
        finally:
            for process in running:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    seconds = sum(part.t - part.start for part in slices)
    samples = sum(part.samples for part in slices)
    return slices, [
        f"{samples / seconds:.0f} samples/s of {workers} workers",
        f"first slice, with the start: {first.cost:.2f} s",
    ]


def _share(slices: Sequence[StackSlice]) -> float:
    """Return the CPU of the profiler in % of a core."""
    return 100 * sum(part.cost for part in slices) / sum(part.t - part.start for part in slices)


async def _profiled() -> list[StackSlice]:
    events: list[AnyEvent] = []
    clock = Clock()
    feed = HostFeed(HostConfig(name="here", processes=(NAME,), profile=DEFAULT_HZ), clock, events.append)
    profiler = Profiler(feed, clock, events.append)
    tasks = [asyncio.ensure_future(feed.run()), asyncio.ensure_future(profiler.run())]
    try:
        await until(lambda: sum(isinstance(event, StackSlice) for event in events) > SLICES)
    finally:
        await profiler.close()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return [event for event in events if isinstance(event, StackSlice)][: SLICES + 1]
