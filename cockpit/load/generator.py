"""CPU readings of this machine, which runs cockpit and its load workers (Linux and macOS)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent
from cockpit.model.generators import CpuTimes, GeneratorSample

# Seconds between readings.
INTERVAL = 1.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return the kernel's boot id; "" on a system that has none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def read_machine(t: float, workers: Iterable[int]) -> GeneratorSample:
    """Return a reading at `t` (session seconds); `workers` are the process ids of the load workers."""
    import psutil

    times = psutil.cpu_times()
    counted = {name: float(getattr(times, name, 0.0)) for name in CpuTimes.__struct_fields__}
    own = os.times()
    used = own.user + own.system + own.children_user + own.children_system
    return GeneratorSample(
        t=t,
        cpus=psutil.cpu_count() or 1,
        times=CpuTimes(**counted),
        own=round(used + sum(map(_cpu_seconds, workers)), 5),
    )


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time (s) of a process; 0 after it has exited, when its time is part of that of the children."""
    import psutil

    with suppress(psutil.Error):
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
    return 0.0


async def watch_machine(clock: Clock, emit: Callable[[AnyEvent], None], workers: Callable[[], Iterable[int]]) -> None:
    """Emit a reading per INTERVAL until cancelled. `workers` returns the process ids of the load workers."""
    # The import takes 20 ms, too long for the event loop.
    await asyncio.to_thread(__import__, "psutil")
    while True:
        emit(read_machine(clock.now(), workers()))
        await asyncio.sleep(INTERVAL)
