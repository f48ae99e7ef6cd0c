"""Cost of the screen on a real pseudo-terminal: bytes to the terminal, CPU of its process, time to the first frame,
latency of a key under load, and the rate of a generator on its own CPU.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import psutil

from cockpit.demo.servers import DemoServers
from cockpit.model import events as ev
from cockpit.recording.reader import Recording
from tests.bench.servers import nginx
from tests.bench.table import at_least, at_most, report_other_load, show
from tests.cli.terminals import TerminalProcess, on_terminal
from tests.lab.cpus import generator_cpu, server_cpu

COCKPIT = (sys.executable, "-m", "cockpit")
SECONDS, WARM_UP = 20, 5
STARTS, KEYS, ROUNDS, RUN_SECONDS = 7, 15, 5, 6
# Seconds for start and end of a run in addition to its load; timeout of a response.
_MARGIN, _TIMEOUT = 4, 30.0
_CORNER = "┌".encode()


def screen() -> bool:
    """Bytes/s and CPU during a run with one host, for the default and the lite screen."""
    with report_other_load():
        default = asyncio.run(_with_demo((120, 40), []))
        lite = asyncio.run(_with_demo((80, 24), ["--lite"]))
    lines = [
        f"{name:14} {sent:5.2f} kB/s to the terminal, {cpu:4.1f}% of a core"
        for name, (cpu, sent) in (("120x40", default), ("80x24 --lite", lite))
    ]
    bars = [
        at_most("120x40 to the terminal", default[1], 11, " kB/s"),
        at_most("80x24 --lite to the terminal", lite[1], 3, " kB/s"),
        at_most("CPU of the screen's process", default[0], 10, "%"),
    ]
    return show(f"the screen during a run, one host over SSH, {SECONDS - WARM_UP} s each", lines, bars)


def first_frame() -> bool:
    """Time from the start of the process to the first frame."""
    with tempfile.TemporaryDirectory(prefix="cockpit-bench-") as name, nginx() as site, report_other_load(site.pid):
        file, url = Path(name) / "s.cockpit", site.small
        commands = {"run": ["run", url, "-q", "50", "-z", "60s", "--no-record"], "replay": ["replay", str(file)]}
        with on_terminal([*COCKPIT, "run", url, "-n", "200", "--no-tui", "--record", str(file)]) as recorded:
            recorded.end()
        took = {name: [_first(options) for _ in range(STARTS)] for name, options in commands.items()}
    lines = [f"{name:8} {_summary(times)}" for name, times in took.items()]
    bars = [at_most(f"first frame of {name}", median(times), 0.8, " s") for name, times in took.items()]
    return show(f"from the start of the process to the first frame, {STARTS} starts each", lines, bars)


def key_answered() -> bool:
    """Time from a key to its dialog on the terminal, while the generator runs at full rate."""
    title = "a key during a run at full rate, generator on its own CPU"
    with nginx() as site, report_other_load(site.pid):
        options = ["--start", "-c", "20", "-z", "120s", "--cpus", str(generator_cpu()), "--no-record"]
        with on_terminal([*COCKPIT, "run", site.small, *options]) as opened:
            opened.until(b"req/s")
            _off_generator_cpu(opened.process.pid)
            took = [_key_latency(opened) for _ in range(KEYS)]
            opened.type(b"\x03")
            opened.end()
    bars = [at_most("latency of a key, median", 1000 * median(took), 60, " ms")]
    return show(title, [f"? opens help, {KEYS} times: {_summary(took)}"], bars)


def beside_screen() -> bool:
    """Rate of a generator on its own CPU, with and without the screen."""
    title = "rate with the screen open, generator on its own CPU"
    rates: dict[str, list[float]] = {"screen": [], "headless": []}
    with nginx() as site, report_other_load(site.pid), tempfile.TemporaryDirectory(prefix="cockpit-bench-") as folder:
        for at in range(ROUNDS):
            for mode in rates:
                file = Path(folder) / f"{mode}-{at}.cockpit"
                options = ["run", site.small, "-c", "20", "-z", f"{RUN_SECONDS}s", "--cpus", str(generator_cpu())]
                rates[mode].append(_rate(options, file, mode == "screen"))
    ratio = median(screen / headless for screen, headless in zip(rates["screen"], rates["headless"], strict=True))
    lines = [f"{mode:9} {median(found):8,.0f} requests/s" for mode, found in rates.items()]
    return show(title, lines, [at_least("with the screen / headless", ratio, 0.97)])


def _key_latency(opened: TerminalProcess) -> float:
    """Return the time (s) from `?` to the corner of its dialog; close the dialog afterwards."""
    _read_for(opened, 0.7)
    known, begun = len(opened.shown), time.monotonic()
    opened.type(b"?")
    while _CORNER not in opened.shown[known:]:
        opened.read()
        if time.monotonic() - begun > _TIMEOUT:
            raise RuntimeError("timeout: no dialog after the key")
    took = time.monotonic() - begun
    _read_for(opened, 0.7)
    opened.type(b"?")
    return took


async def _with_demo(size: tuple[int, int], options: Sequence[str]) -> tuple[float, float]:
    """Return the CPU of the screen's process (%), and its output (kB/s)."""
    async with DemoServers() as world:
        profile = Path(world.directory) / "bench.toml"
        profile.write_text(world.profile_toml())
        command = [*COCKPIT, "run", "--trust", str(profile), "--ssh-config", str(world.ssh_config)]
        command += ["--start", "-z", f"{SECONDS + 10}s"]
        with on_terminal([*command, "--no-record", *options], size) as opened:
            found = await asyncio.to_thread(_watched, opened)
            opened.type(b"\x03")
            await asyncio.to_thread(opened.end)
            return found


def _watched(opened: TerminalProcess) -> tuple[float, float]:
    process = psutil.Process(opened.process.pid)
    opened.until(b"req/s")
    _read_for(opened, WARM_UP)
    before, then, known = process.cpu_times(), time.monotonic(), len(opened.shown)
    _read_for(opened, SECONDS - WARM_UP)
    after, seconds = process.cpu_times(), time.monotonic() - then
    used = after.user + after.system - before.user - before.system
    return 100 * used / seconds, (len(opened.shown) - known) / seconds / 1000


def _read_for(opened: TerminalProcess, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        opened.read()


def _until_loading(opened: TerminalProcess) -> None:
    """Wait until the worker runs. Raises RuntimeError."""
    deadline = time.monotonic() + _TIMEOUT
    while not any("cockpit.load.worker" in child.cmdline() for child in psutil.Process(opened.process.pid).children()):
        opened.read()
        if time.monotonic() > deadline:
            raise RuntimeError("timeout: no worker")
    _read_for(opened, 0.5)


def _off_generator_cpu(pid: int) -> None:
    """Move all threads of cockpit to the server's CPU; workers that already run stay where they are."""
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
    """Return requests/s from the ticks of the run."""
    flags = ["--record", str(file), "--start" if on_screen else "--no-tui"]
    with on_terminal([*COCKPIT, *options, *flags]) as opened:
        _until_loading(opened)
        _off_generator_cpu(opened.process.pid)
        if on_screen:
            # The screen stays open after the run.
            _read_for(opened, RUN_SECONDS + _MARGIN)
            opened.type(b"q")
        opened.end()
    with Recording(file) as recording:
        ticks = [event for event in recording.events() if isinstance(event, ev.Tick)]
    return sum(tick.completed for tick in ticks) / (max(tick.t for tick in ticks) - min(tick.start for tick in ticks))


def _summary(times: Sequence[float]) -> str:
    return f"median {1000 * median(times):.0f} ms, {1000 * min(times):.0f} to {1000 * max(times):.0f} ms"
