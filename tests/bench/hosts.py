"""What watching costs: the host that is watched, beside the tools an engineer would run there; and the cockpit."""

from __future__ import annotations

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

import psutil

from cockpit.demo.layout import Layout
from cockpit.demo.sshhost import HOST
from cockpit.hosts.feed import HostFeed
from cockpit.hosts.script import SLOW_ROUND, script
from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent, HostSample, SessionStarted
from cockpit.model.fold import fold
from cockpit.model.hosts import HostConfig
from cockpit.model.state import State
from tests.bench.table import Bar, at_least, at_most, neighbours, show

# Processes on the host, those of this machine included; as many of them as must be made are watched.
PROCESSES = 200
WATCHED_AT_LEAST = 100
NAME = "bench-worker"
# Of a process at rest the probe reads some in every third slow round only: so long a period holds all that it does, as
# often as it does it. What comes before is its beginning, in which it reads all of everything.
TICKS = 3 * SLOW_ROUND
START = SLOW_ROUND + 5
BAR_OF_TOP = 0.5
BAR_SHARE = 0.5  # per cent of a core at one tick a second

FLEETS = (10, 25, 50)
MEASURED = 15.0  # seconds
FLEET_WATCHED = 20
BAR_COCKPIT = 40.0  # per cent of a core
BAR_LATE = 1.0  # seconds
DEADLINE = 120.0

Tool = Callable[[int], float]


def probe_cost() -> bool:
    """CPU on the host for a tick, of the probe and of the tools that tell the same."""
    made = max(WATCHED_AT_LEAST, PROCESSES - _processes())
    tools: dict[str, Tool] = {"probe": _probe, "top -b -d 1": _top, "ps aux": _ps, "sar 1": _sar}
    lacking = [name for name in tools if name != "probe" and not shutil.which(name.split()[0])]
    tools = {name: tool for name, tool in tools.items() if name not in lacking}
    with _crowd(made), neighbours():
        title = f"CPU a tick on a host of {_processes()} processes, {made} of them watched, a tick a second"
        print(f"{title} ...")
        costs = {name: cost / TICKS for name, cost in _costs(tools).items()}
    lines = [f"{name:12} {1000 * cost:6.2f} ms" for name, cost in costs.items()]
    lines += [f"{name:12} left out, it is missing" for name in lacking]
    bars = [at_most("share of a core", 100 * costs["probe"], BAR_SHARE, " %")]
    if "top -b -d 1" in costs:
        bars.append(at_most("probe, x top -b -d 1", costs["probe"] / costs["top -b -d 1"], BAR_OF_TOP))
    return show(title, lines, bars)


def _costs(tools: dict[str, Tool]) -> dict[str, float]:
    """CPU seconds for TICKS ticks of each, all at the same time; what it takes to start them is taken off."""
    with ThreadPoolExecutor(len(tools)) as pool:

        def all_of(ticks: int) -> list[float]:
            return list(pool.map(lambda tool: tool(ticks), tools.values()))

        short, long = all_of(START), all_of(START + TICKS)
    return {name: more - less for name, less, more in zip(tools, short, long, strict=True)}


def _processes() -> int:
    return sum(name.isdigit() for name in os.listdir("/proc"))  # noqa: PTH208


@contextmanager
def _crowd(count: int) -> Iterator[None]:
    """Processes called NAME that do nothing."""
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
    """The probe as it runs on a host, asked once a second."""
    shell = subprocess.Popen(["sh", "-s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert shell.stdin and shell.stdout

    def ask(words: bytes, until: bytes) -> None:
        assert shell.stdin and shell.stdout
        shell.stdin.write(words)
        shell.stdin.flush()
        for line in shell.stdout:
            if line.startswith(until):
                return
        raise RuntimeError("the probe ended")

    ask(script((NAME,)).encode(), b"#cockpit ready")
    for number in range(1, ticks + 1):
        ask(b"%d %s\n" % (number, b"all" if number == 1 else b"changes"), b"#cockpit end")
        time.sleep(1)
    shell.stdin.close()
    shell.stdout.read()
    return _spent(shell)


def _top(ticks: int) -> float:
    return _spent(_quiet(["top", "-b", "-d", "1", "-n", str(ticks)]))


def _sar(ticks: int) -> float:
    """sar leaves it to the kernel to take in the sadc that it starts, so both are looked at while they run."""
    sar = _quiet(["sar", "1", "3600"])
    try:
        time.sleep(ticks)
        family = [sar.pid, *(child.pid for child in psutil.Process(sar.pid).children(recursive=True))]
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in family) / 1e9
    finally:
        sar.terminate()
        sar.wait()


def _ps(ticks: int) -> float:
    spent = 0.0
    for _ in range(ticks):
        spent += _spent(_quiet(["ps", "aux"]))
        time.sleep(1)
    return spent


def _quiet(command: list[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "TERM": "dumb", "LC_ALL": "C"}
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment)


def _spent(process: subprocess.Popen[bytes]) -> float:
    """Waits for its end: CPU seconds of it and of all that it waited for."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def hosts_scale() -> bool:
    """CPU of a cockpit that watches many hosts over SSH, and how late their samples are."""
    title = f"a cockpit that watches hosts over SSH once a second, {FLEET_WATCHED} processes each, without a screen"
    print(f"{title} ...")
    lines, bars = [], []
    with _crowd(FLEET_WATCHED), neighbours():
        for count in FLEETS:
            fleet = asyncio.run(_watch_fleet(count))
            lines.append(f"{count:3} hosts {fleet.cpu:6.1f} % of a core, at most {fleet.late:.2f} s late")
            if count == max(FLEETS):
                bars.append(at_most(f"CPU, {count} hosts", fleet.cpu, BAR_COCKPIT, " %"))
            bars += _fleet_bars(fleet)
    return show(title, lines, bars)


def _fleet_bars(fleet: _Fleet) -> list[Bar]:
    return [
        at_most(f"latest sample, {fleet.count} hosts", fleet.late, BAR_LATE, " s"),
        at_least(f"samples of a host, {fleet.count} hosts", fleet.fewest, MEASURED - 1 - BAR_LATE),
    ]


class _Fleet:
    """Takes in what the feeds tell, as a session does; `cpu` in per cent, `late` in seconds, once measured."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.cpu = self.late = 0.0
        self.fewest = 0
        self._settled = asyncio.Event()
        self.names = [f"web{number}" for number in range(count)]
        self.configs = [HostConfig(name=name, ssh=HOST, processes=(NAME,)) for name in self.names]
        self.came: dict[str, list[float]] = {name: [] for name in self.names}
        self.state = fold(State(), SessionStarted(t=0, wall=0, version="0", name="x", hosts=tuple(self.configs)))

    def take(self, event: AnyEvent) -> None:
        self.state = fold(self.state, event)
        if isinstance(event, HostSample):
            self.came[event.host].append(time.monotonic())
            if len(self.came[event.host]) == 3 and min(map(len, self.came.values())) >= 3:
                self._settled.set()

    async def settle(self) -> None:
        """Returns when every host has been read three times."""
        async with asyncio.timeout(DEADLINE):
            await self._settled.wait()

    async def measure(self) -> None:
        begun, used = time.monotonic(), time.process_time()
        await asyncio.sleep(MEASURED)
        ended = time.monotonic()
        self.cpu = 100 * (time.process_time() - used) / (ended - begun)
        during = {name: [at for at in came if begun <= at <= ended] for name, came in self.came.items()}
        self.fewest = min(map(len, during.values()))
        edges = ([begun, *came, ended] for came in during.values())
        self.late = max(later - earlier - 1 for edge in edges for earlier, later in pairwise(edge))


async def _watch_fleet(count: int) -> _Fleet:
    fleet = _Fleet(count)
    with tempfile.TemporaryDirectory() as directory, _ssh_host(Path(directory)) as ssh_config:
        clock = Clock()
        feeds = [HostFeed(config, clock, fleet.take, ssh_config=ssh_config) for config in fleet.configs]
        watching = [asyncio.ensure_future(feed.run()) for feed in feeds]
        try:
            await fleet.settle()
            await fleet.measure()
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
    return fleet


@contextmanager
def _ssh_host(directory: Path) -> Iterator[Path]:
    """An embedded server in a process of its own, which ends with its input; yields the ssh_config that leads to it."""
    command = [sys.executable, "-m", "cockpit.demo.sshhost", str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout
        if not server.stdout.readline().startswith(b"ready"):
            raise RuntimeError("the embedded SSH host did not start")
        yield Layout(directory).ssh_config
