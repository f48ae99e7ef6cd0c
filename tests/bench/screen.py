"""What the screen costs: CPU of the cockpit's process and bytes to the terminal, with a run and one host, in a real
pseudo-terminal of 120x40."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import psutil

from cockpit.demo.world import DemoWorld

SECONDS = 20
WARM_UP = 5
BAR_CPU = 15.0


def main() -> int:
    """Prints the figures; 1 when the CPU bar is broken."""
    return asyncio.run(_measure())


async def _measure() -> int:
    async with DemoWorld() as world:
        profile = Path(world.directory) / "bench.toml"
        profile.write_text(world.profile_toml())
        process, terminal = _open_cockpit(profile, world.ssh_config)
        try:
            cpu, sent = await asyncio.to_thread(_watch, process.pid, terminal)
        finally:
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(_drain, process, terminal)
    verdict = "ok" if cpu < BAR_CPU else "OVER"
    print(f"screen 120x40, a run and one host, {SECONDS - WARM_UP} s:")
    print(f"  {cpu:.1f} % of a core (bar {BAR_CPU:.0f} %: {verdict}), {sent / 1000:.1f} kB/s to the terminal")
    return 0 if cpu < BAR_CPU else 1


def _open_cockpit(profile: Path, ssh_config: Path) -> tuple[subprocess.Popen[bytes], int]:
    terminal, its_end = pty.openpty()
    fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    command = [
        sys.executable,
        "-m",
        "cockpit",
        "run",
        str(profile),
        "--ssh-config",
        str(ssh_config),
        "-z",
        f"{SECONDS}s",
    ]
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    process = subprocess.Popen(
        command, stdin=its_end, stdout=its_end, stderr=its_end, env=environment, start_new_session=True
    )
    os.close(its_end)
    return process, terminal


def _watch(pid: int, terminal: int) -> tuple[float, float]:
    """CPU per cent of the process alone and bytes a second, after the warm-up."""
    process = psutil.Process(pid)
    begin = time.monotonic()
    _read_until(terminal, begin + WARM_UP)
    before, then = process.cpu_times(), time.monotonic()
    sent = _read_until(terminal, begin + SECONDS)
    after, seconds = process.cpu_times(), time.monotonic() - then
    used = after.user + after.system - before.user - before.system
    return 100 * used / seconds, sent / seconds


def _read_until(terminal: int, deadline: float) -> int:
    total = 0
    os.set_blocking(terminal, False)
    while (left := deadline - time.monotonic()) > 0:
        try:
            total += len(os.read(terminal, 65536))
        except BlockingIOError:
            time.sleep(min(left, 0.01))
    return total


def _drain(process: subprocess.Popen[bytes], terminal: int) -> None:
    while process.poll() is None:
        try:
            os.read(terminal, 65536)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            process.wait()
    os.close(terminal)
