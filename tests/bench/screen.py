"""What the screen costs and how quick it is, in a real pseudo-terminal: bytes to the terminal, CPU of its process, the
first frame, the answer to a key under load, and the rate that a generator on a CPU of its own keeps beside it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import psutil

from cockpit.demo.world import DemoWorld
from cockpit.model import events as ev
from cockpit.recording.reader import Recording
from tests.bench.servers import lacking_nginx, nginx
from tests.bench.table import at_least, at_most, neighbours, show
from tests.cli.terminals import OnTerminal, on_terminal
from tests.lab.cpus import generator_cpu, server_cpu

COCKPIT = (sys.executable, "-m", "cockpit")
SECONDS, WARM_UP = 20, 5
STARTS, KEYS, ROUNDS, GO = 7, 15, 5, 6
# Seconds for the start and the end of a run beside those of its load; and how long anything may take to come.
_MARGIN, _HURRY = 4, 30.0
_CORNER = "┌".encode()


def screen() -> bool:
    """Bytes a second and CPU during a run with one host, as the screen is and as it is on a slow line."""
    with neighbours():
        default = asyncio.run(_with_demo((120, 40), []))
        lite = asyncio.run(_with_demo((80, 24), ["--lite"]))
    lines = [
        f"{name:14} {sent:5.2f} kB/s to the terminal, {cpu:4.1f} % of a core"
        for name, (cpu, sent) in (("120x40", default), ("80x24 --lite", lite))
    ]
    bars = [
        at_most("120x40 to the terminal", default[1], 12, " kB/s"),
        at_most("80x24 --lite to the terminal", lite[1], 3, " kB/s"),
        at_most("CPU of the screen's process", default[0], 10, " %"),
    ]
    return show(f"the screen during a run, one host over SSH, {SECONDS - WARM_UP} s each", lines, bars)


def first_frame() -> bool:
    """From the start of the process to the first picture."""
    with tempfile.TemporaryDirectory(prefix="cockpit-bench-") as name, neighbours():
        file = Path(name) / "s.cockpit"
        with _own_server() as url:
            goes = {"run": ["run", url, "-q", "50", "-z", "60s", "--no-record"], "replay": ["replay", str(file)]}
            with on_terminal([*COCKPIT, "run", url, "-n", "200", "--no-tui", "--record", str(file)]) as recorded:
                recorded.end()
            took = {name: [_first(options) for _ in range(STARTS)] for name, options in goes.items()}
    lines = [f"{name:8} {_told(times)}" for name, times in took.items()]
    bars = [at_most(f"first frame of {name}", median(times), 0.8, " s") for name, times in took.items()]
    return show(f"from the start of the process to the first frame, {STARTS} starts each", lines, bars)


def key_answered() -> bool:
    """From a key to its dialog on the terminal, while the generator gives all it can."""
    title = "a key during a run at full rate, generator on a CPU of its own"
    if lacking := lacking_nginx():
        return show(f"{title}: left out, {lacking}", [], [])
    with nginx() as site, neighbours(site.pid):
        options = ["run", site.small, "-c", "20", "-z", "120s", "--cpus", str(generator_cpu()), "--no-record"]
        with on_terminal([*COCKPIT, *options]) as opened:
            opened.until(b"req/s")
            _off_generator_cpu(opened.process.pid)
            took = [_answered(opened) for _ in range(KEYS)]
            opened.type(b"\x03")
            opened.end()
    bars = [at_most("a key answered, median", 1000 * median(took), 100, " ms")]
    return show(title, [f"? opens help, {KEYS} times: {_told(took)}"], bars)


def beside_screen() -> bool:
    """The rate of a generator on a CPU of its own, with the screen open and without."""
    title = "rate with the screen open, generator on a CPU of its own"
    if lacking := lacking_nginx():
        return show(f"{title}: left out, {lacking}", [], [])
    rates: dict[str, list[float]] = {"screen": [], "headless": []}
    with nginx() as site, neighbours(site.pid), tempfile.TemporaryDirectory(prefix="cockpit-bench-") as folder:
        for at in range(ROUNDS):
            for way in rates:
                file = Path(folder) / f"{way}-{at}.cockpit"
                options = ["run", site.small, "-c", "20", "-z", f"{GO}s", "--cpus", str(generator_cpu())]
                rates[way].append(_rate(options, file, way == "screen"))
    ratio = median(one / other for one, other in zip(rates["screen"], rates["headless"], strict=True))
    lines = [f"{way:9} {median(found):8,.0f} requests/s" for way, found in rates.items()]
    return show(title, lines, [at_least("with the screen / headless", ratio, 0.97)])


def _answered(opened: OnTerminal) -> float:
    """Seconds from `?` to the corner of its dialog; it is closed again afterwards."""
    _read_for(opened, 0.7)
    known, begun = len(opened.shown), time.monotonic()
    opened.type(b"?")
    while _CORNER not in opened.shown[known:]:
        opened.read()
        if time.monotonic() - begun > _HURRY:
            raise RuntimeError("no answer to a key")
    took = time.monotonic() - begun
    _read_for(opened, 0.7)
    opened.type(b"?")
    return took


async def _with_demo(size: tuple[int, int], options: Sequence[str]) -> tuple[float, float]:
    """CPU per cent of the screen's process alone, and kB a second that it sends."""
    async with DemoWorld() as world:
        profile = Path(world.directory) / "bench.toml"
        profile.write_text(world.profile_toml())
        command = [
            *COCKPIT,
            "run",
            "--trust",
            str(profile),
            "--ssh-config",
            str(world.ssh_config),
            "-z",
            f"{SECONDS + 10}s",
        ]
        with on_terminal([*command, "--no-record", *options], size) as opened:
            found = await asyncio.to_thread(_watched, opened)
            opened.type(b"\x03")
            await asyncio.to_thread(opened.end)
            return found


def _watched(opened: OnTerminal) -> tuple[float, float]:
    process = psutil.Process(opened.process.pid)
    opened.until(b"req/s")
    _read_for(opened, WARM_UP)
    before, then, known = process.cpu_times(), time.monotonic(), len(opened.shown)
    _read_for(opened, SECONDS - WARM_UP)
    after, seconds = process.cpu_times(), time.monotonic() - then
    used = after.user + after.system - before.user - before.system
    return 100 * used / seconds, (len(opened.shown) - known) / seconds / 1000


def _read_for(opened: OnTerminal, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        opened.read()


def _until_loading(opened: OnTerminal) -> None:
    """Until its worker is there. Raises RuntimeError."""
    deadline = time.monotonic() + _HURRY
    while not any("cockpit.load.worker" in one.cmdline() for one in psutil.Process(opened.process.pid).children()):
        opened.read()
        if time.monotonic() > deadline:
            raise RuntimeError("no load came")
    _read_for(opened, 0.5)


def _off_generator_cpu(pid: int) -> None:
    """All threads of a cockpit that has raised its workers already: those stay where they are."""
    subprocess.run(["taskset", "-a", "-p", "-c", str(server_cpu()), str(pid)], check=True, capture_output=True)


def _first(options: Sequence[str]) -> float:
    begun = time.monotonic()
    with on_terminal([*COCKPIT, *options]) as opened:
        opened.until(b"throughput")
        took = time.monotonic() - begun
        opened.type(b"\x03")
        opened.end()
    return took


def _rate(options: Sequence[str], file: Path, on_screen: bool) -> float:
    """Requests a second, from the run's own ticks."""
    way = ["--record", str(file), *([] if on_screen else ["--no-tui"])]
    with on_terminal([*COCKPIT, *options, *way]) as opened:
        _until_loading(opened)
        _off_generator_cpu(opened.process.pid)
        if on_screen:
            # It shows what came of the run until it is left.
            _read_for(opened, GO + _MARGIN)
            opened.type(b"q")
        opened.end()
    with Recording(file) as recording:
        ticks = [event for event in recording.events() if isinstance(event, ev.Tick)]
    return sum(tick.completed for tick in ticks) / (max(tick.t for tick in ticks) - min(tick.start for tick in ticks))


@contextmanager
def _own_server() -> Iterator[str]:
    """Something to load that this process need not serve itself."""
    reading, writing = os.pipe()
    code = "from tests.servers import http_server\nimport os, sys\nwith http_server() as url:\n"
    code += f"    os.write({writing}, url.encode() + b'\\n')\n    sys.stdin.read()\n"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, pass_fds=(writing,))
    os.close(writing)
    try:
        with os.fdopen(reading) as said:
            yield said.readline().strip()
    finally:
        process.communicate()


def _told(times: Sequence[float]) -> str:
    return f"median {1000 * median(times):.0f} ms, {1000 * min(times):.0f} to {1000 * max(times):.0f} ms"
