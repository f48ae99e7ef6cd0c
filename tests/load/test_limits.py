"""Limits of the generator's machine: local ports and open files, and their exhaustion."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from cockpit.load import limits
from cockpit.load.files import OWN_FILES
from cockpit.load.poller import Poller, best_poller
from cockpit.model.load import Stage
from tests.load.servers import POLLERS, SMALL, always, engine_load, load, plan, serving

URL = "http://127.0.0.1/"

# Runs in a private network namespace with four local ports and no route.
_FEW_PORTS = """
import asyncio, json, pathlib, socket, subprocess, sys
from tests.load.servers import engine_load, plan
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("50000 50003")
with socket.socket() as listener:
    listener.bind(("127.0.0.1", 8080))
    listener.listen(100)
    found = []
    for values in json.loads(sys.argv[1]):
        url = values.pop("url", "http://127.0.0.1:8080/")
        address = tuple(values.pop("address", ("127.0.0.1", 8080)))
        values["local_addresses"] = tuple(values.get("local_addresses", ()))
        found.append(asyncio.run(engine_load(plan(url, timeout=0.3, **values), address=address)).errors)
print(json.dumps(found))
"""


def errors_in_network_namespace(*plans: dict[str, object]) -> list[dict[str, int]]:
    if not (sys.platform == "linux" and os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip")):
        pytest.skip("needs root, unshare and ip")
    command = ["unshare", "-n", sys.executable, "-c", _FEW_PORTS, json.dumps(plans)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, int]] = json.loads(done.stdout)
    return found


def test_port_exhaustion_and_unreachable_network_have_own_kinds() -> None:
    found = errors_in_network_namespace(
        {"requests": 7, "concurrency": 7},
        {"requests": 8, "concurrency": 8, "local_addresses": ["127.0.0.7", "127.0.0.8"]},
        {"requests": 3, "url": "http://192.0.2.1:8080/", "address": ["192.0.2.1", 8080]},
    )
    assert found == [
        {"timeout": 4, "no_local_ports": 3},
        {"timeout": 8},
        {"unreachable": 3},
    ]


def test_open_load_without_local_ports_counts_each_arrival() -> None:
    assert errors_in_network_namespace({"rate": 100.0, "requests": 9}) == [{"timeout": 4, "no_local_ports": 5}]


# Runs with too few open files for the planned requests in flight of two workers.
_FEW_FILES = """
import asyncio
from cockpit.load.pool import launch
from cockpit.model.clock import Clock
from tests.load.servers import Outcome, plan
async def go():
    outcome = Outcome()
    run = await launch(plan("http://127.0.0.1:9/", rate=50.0, duration=600.0, workers=2), 1, Clock(), outcome.emit)
    run.stop()
    await run.wait()
    print(outcome.started.plan.max_in_flight, *outcome.started.warnings)
asyncio.run(go())
"""


def test_open_load_is_limited_by_file_descriptors_with_warning() -> None:
    command = ["sh", "-c", 'ulimit -n 200 && exec "$@"', "sh", sys.executable, "-c", _FEW_FILES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    most = 2 * (200 - OWN_FILES)
    assert done.stdout.startswith(f"{most} at most {most} requests in flight, not 8192"), done.stderr


def test_rate_of_connections_is_checked_against_local_ports() -> None:
    ports = limits.local_ports()
    few, many = ports / 60 * 0.9, ports / 60 * 1.2
    assert limits.warnings(plan(URL, rate=few, duration=600.0, keepalive=False)) == ()
    assert limits.warnings(plan(URL, rate=many, duration=600.0)) == ()
    assert limits.warnings(plan(URL, rate=many, duration=10.0, keepalive=False)) == ()
    for long in ({"duration": 600.0}, {"requests": 2 * ports}, {"stages": (Stage(duration=90.0, rate=many),)}):
        found = limits.warnings(plan(URL, **{"rate": many, "keepalive": False, **long}))
        assert any(f"use up {ports} local ports in" in line for line in found)
    two = ("127.0.0.1", "127.0.0.2")
    assert limits.warnings(plan(URL, rate=many, duration=600.0, keepalive=False, local_addresses=two)) == ()
    assert limits.warnings(plan(URL, rate=many, duration=600.0, keepalive=False, unix="/x")) == ()


async def test_ticks_have_cpu_and_pauses_of_generator() -> None:
    async with serving(always(SMALL)) as server:
        for values in ({}, {"rate": 200.0}):
            outcome = await load(plan(server.url, duration=0.3, **values))
            assert sum(tick.cpu for tick in outcome.ticks) > 0
            assert all(0 <= tick.pause < tick.t - tick.start + 1 for tick in outcome.ticks)
            assert max(tick.pause for tick in outcome.ticks) > 0


# Seconds.
STALL = 0.4


def stalling_poller() -> Poller:
    """Return a poller that stalls once."""
    poller = best_poller()
    poll, stalls = poller.poll, [STALL]

    def poll_and_stall(timeout: float) -> list[tuple[int, int]]:
        found = poll(timeout)
        if stalls:
            time.sleep(stalls.pop())
        return found

    poller.poll = poll_and_stall
    return poller


async def test_stall_of_engine_is_pause_of_a_single_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLLERS, "stalling", stalling_poller)
    async with serving(always(SMALL)) as server:
        load_plan = plan(server.url, duration=2 * STALL, tick=STALL / 20)
        outcome = await engine_load(load_plan, "stalling")
    # The engine may have planned to wait until the next tick.
    assert max(tick.pause for tick in outcome.ticks) >= STALL - load_plan.tick
    # Pauses of several ticks do not overlap, and one that counted twice would exceed the run.
    assert sum(tick.pause for tick in outcome.ticks) <= outcome.ticks[-1].t - outcome.ticks[0].start
