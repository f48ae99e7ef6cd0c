"""CPU time of the generator's machine."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cockpit.load.generator import read_machine
from tests.waiting import wait_until

BUSY = "import time\nwhile time.process_time() < 0.2: pass\ntime.sleep({rest})"


def test_own_time_includes_workers_and_exited_children() -> None:
    """User and system time of process and children are counted in ticks of 10 ms each."""
    before = read_machine(0.0, ())
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    here = read_machine(1.0, ())
    assert here.own - before.own >= 0.15
    with subprocess.Popen([sys.executable, "-c", BUSY.format(rest=0)]) as child:
        child.wait()
    assert read_machine(2.0, (child.pid,)).own - here.own >= 0.15
    with subprocess.Popen([sys.executable, "-c", BUSY.format(rest=600)]) as live:
        try:
            wait_until(lambda: read_machine(3.0, (live.pid,)).own - read_machine(3.0, ()).own >= 0.1)
        finally:
            live.kill()


def test_machine_times_cover_all_cpus() -> None:
    times = read_machine(0.0, ()).times
    total = sum(getattr(times, name) for name in times.__struct_fields__)
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert total == pytest.approx(uptime * (os.cpu_count() or 1), rel=0.1)
