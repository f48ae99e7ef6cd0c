"""Cost of watching hosts: CPU on the host vs top, ps and sar, and CPU of cockpit."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from cockpit.demo.layout import DemoFiles
from cockpit.demo.sshhost import HOST
from cockpit.hosts.feed import HostFeed
from cockpit.hosts.probe.script import SLOW_ROUND, script
from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent, HostSample, SessionStarted
from cockpit.model.fold.fold import fold
from cockpit.model.host.samples import HostConfig
from cockpit.model.state import State
from tests.bench.table import at_least, at_most, cpu_of, report_other_load, show
from tests.waiting import until

# Total processes on the host; the processes started for it are watched.
PROCESSES = 200
WATCHED_AT_LEAST = 100
NAME = "bench-worker"
# The probe reads parts of an idle process only in every third slow round: this period covers a whole cycle. START is
# its initial phase, in which it reads everything.
TICKS = 3 * SLOW_ROUND
START = SLOW_ROUND + 5
BAR_VS_TOP = 0.5
BAR_SHARE = 0.5  # % of a core at one tick/s

FLEETS = (10, 25, 50)
MEASURED = 15.0  # seconds
FLEET_WATCHED = 20
BAR_COCKPIT = 40.0  # % of a core
BAR_LATE = 1.0  # seconds

Tool = Callable[[int], float]


def probe_cost() -> bool:
    """CPU/tick on the host, for the probe and for tools that show the same."""
    started = max(WATCHED_AT_LEAST, PROCESSES - _processes())
    tools: dict[str, Tool] = {"probe": _probe, "top -b -d 1": _top, "ps aux": _ps, "sar 1": _sar}
    missing = [name for name in tools if name != "probe" and not shutil.which(name.split()[0])]
    tools = {name: tool for name, tool in tools.items() if name not in missing}
    with _idle_processes(started), report_other_load():
        title = f"CPU/tick on a host with {_processes()} processes, {started} of them watched, one tick/s"
        print(f"{title} ...")
        costs = {name: cost / TICKS for name, cost in _costs(tools).items()}
    lines = [f"{name:12} {1000 * cost:6.2f} ms" for name, cost in costs.items()]
    lines += [f"{name:12} skipped, not installed" for name in missing]
    bars = [at_most("share of a core", 100 * costs["probe"], BAR_SHARE, "%")]
    if "top -b -d 1" in costs:
        bars.append(at_most("probe, x top -b -d 1", costs["probe"] / costs["top -b -d 1"], BAR_VS_TOP))
    return show(title, lines, bars)


def _costs(tools: dict[str, Tool]) -> dict[str, float]:
    """Return the CPU time (s) of each tool for TICKS ticks, run side by side, without their start."""
    with ThreadPoolExecutor(len(tools)) as pool:

        def all_of(ticks: int) -> list[float]:
            return list(pool.map(lambda tool: tool(ticks), tools.values()))

        short, long = all_of(START), all_of(START + TICKS)
    return {name: whole - start for name, start, whole in zip(tools, short, long, strict=True)}


def _processes() -> int:
    return sum(name.isdigit() for name in os.listdir("/proc"))  # noqa: PTH208


@contextmanager
def _idle_processes(count: int) -> Iterator[None]:
    """Run `count` idle processes called NAME."""
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / NAME
        program.symlink_to(str(shutil.which("sleep")))
        running = [subprocess.Popen([program, "3600"]) for _ in range(count)]
        try:
            yield
        finally:
            for process in running:
                process.kill()
            for process in running:
                process.wait()


def _probe(ticks: int) -> float:
    """Run the probe as on a host, with one tick per second; return its CPU time (s)."""
    shell = subprocess.Popen(["sh", "-s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert shell.stdin and shell.stdout

    def send(text: bytes, until: bytes) -> None:
        assert shell.stdin and shell.stdout
        shell.stdin.write(text)
        shell.stdin.flush()
        for line in shell.stdout:
            if line.startswith(until):
                return
        raise RuntimeError("the probe ended")

    send(script((NAME,)).encode(), b"#cockpit ready")
    for number in range(1, ticks + 1):
        send(b"%d %s\n" % (number, b"all" if number == 1 else b"changes"), b"#cockpit end")
        time.sleep(1)
    shell.stdin.close()
    shell.stdout.read()
    return _cpu_at_end(shell)


def _top(ticks: int) -> float:
    return _cpu_at_end(_start("top", "-b", "-d", "1", "-n", str(ticks)))


def _sar(ticks: int) -> float:
    """Read the CPU time of sar and its sadc while they run: sar does not wait for sadc."""
    sar = _start("sar", "1", "3600")
    try:
        time.sleep(ticks)
        return cpu_of(sar.pid)
    finally:
        sar.terminate()
        sar.wait()


def _ps(ticks: int) -> float:
    used = 0.0
    for _ in range(ticks):
        used += _cpu_at_end(_start("ps", "aux"))
        time.sleep(1)
    return used


def _start(*command: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "TERM": "dumb", "LC_ALL": "C"}
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment)


def _cpu_at_end(process: subprocess.Popen[bytes]) -> float:
    """Wait for the end of the process; return the CPU time (s) of it and the children that it waited for."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def hosts_scale() -> bool:
    """CPU of cockpit watching many hosts over SSH, and the delay of their samples."""
    title = f"cockpit watching hosts over SSH once per second, {FLEET_WATCHED} processes each, without the screen"
    print(f"{title} ...")
    lines, bars = [], []
    with _idle_processes(FLEET_WATCHED), report_other_load():
        for count in FLEETS:
            fleet = asyncio.run(_watch_fleet(count))
            lines.append(f"{count:3} hosts {fleet.cpu:6.1f}% of a core, at most {fleet.late:.2f} s late")
            if count == max(FLEETS):
                bars.append(at_most(f"CPU, {count} hosts", fleet.cpu, BAR_COCKPIT, "%"))
            bars.append(at_most(f"latest sample, {count} hosts", fleet.late, BAR_LATE, " s"))
            bars.append(at_least(f"samples per host, {count} hosts", fleet.fewest, MEASURED - 1 - BAR_LATE))
    return show(title, lines, bars)


class _Fleet:
    """A session's state from the feeds of all hosts; `cpu` (%) and `late` (s) are set by `measure`."""

    def __init__(self, count: int) -> None:
        self.cpu = self.late = 0.0
        self.fewest = 0
        self.configs = [HostConfig(name=f"web{n}", ssh=HOST, processes=(NAME,)) for n in range(count)]
        self.arrivals: dict[str, list[float]] = {config.name: [] for config in self.configs}
        self.state = fold(State(), SessionStarted(t=0, wall=0, version="0", name="x", hosts=tuple(self.configs)))

    def take(self, event: AnyEvent) -> None:
        self.state = fold(self.state, event)
        if isinstance(event, HostSample):
            self.arrivals[event.host].append(time.monotonic())

    async def measure(self) -> None:
        """Measure from when every host has three samples."""
        await until(lambda: min(map(len, self.arrivals.values())) >= 3)
        begun, used = time.monotonic(), time.process_time()
        await asyncio.sleep(MEASURED)
        ended = time.monotonic()
        self.cpu = 100 * (time.process_time() - used) / (ended - begun)
        during = {name: [at for at in times if begun <= at <= ended] for name, times in self.arrivals.items()}
        self.fewest = min(map(len, during.values()))
        edges = ([begun, *times, ended] for times in during.values())
        self.late = max(later - earlier - 1 for edge in edges for earlier, later in pairwise(edge))


async def _watch_fleet(count: int) -> _Fleet:
    fleet = _Fleet(count)
    with tempfile.TemporaryDirectory() as directory, _ssh_host(Path(directory)) as ssh_config:
        clock = Clock()
        feeds = [HostFeed(config, clock, fleet.take, ssh_config=ssh_config) for config in fleet.configs]
        watching = [asyncio.ensure_future(feed.run()) for feed in feeds]
        try:
            await fleet.measure()
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
    return fleet


@contextmanager
def _ssh_host(directory: Path) -> Iterator[Path]:
    """Run the embedded SSH host in its own process, which ends with its stdin; yield its ssh_config."""
    command = [sys.executable, "-m", "cockpit.demo.sshhost", str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout
        if not server.stdout.readline().startswith(b"ready"):
            raise RuntimeError("the embedded SSH host did not start")
        yield DemoFiles(directory).ssh_config
