"""Cost of CPU profiles on the host."""

import asyncio
import shutil
import subprocess
import tempfile
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


def profile_cost() -> bool:
    """CPU of perf and awk while they profile busy workers."""
    if not shutil.which("perf"):
        raise Skipped("perf is not installed")
    with tempfile.TemporaryDirectory() as directory, report_other_load():
        program = Path(directory) / NAME
        program.symlink_to("/bin/sh")
        running = [subprocess.Popen([program, "-c", "while :; do :; done"]) for _ in range(WORKERS)]
        try:
            first, *slices = asyncio.run(_profiled())
        finally:
            for process in running:
                process.kill()
                process.wait()
    seconds = sum(part.t - part.start for part in slices)
    samples = sum(part.samples for part in slices)
    share = 100 * sum(part.cost for part in slices) / seconds
    lines = [
        f"{samples / seconds:.0f} samples/s of {WORKERS} workers",
        f"first slice, with the start: {first.cost:.2f} s",
    ]
    return show(f"CPU profile at {DEFAULT_HZ} Hz", lines, [at_most("share of a core", share, BAR_SHARE, "%")])


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
