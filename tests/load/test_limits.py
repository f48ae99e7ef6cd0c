"""What this machine has to give, and what happens when it gives no more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from cockpit.load import limits
from cockpit.load.files import OWN_FILES
from cockpit.model.load import Stage
from tests.load.servers import SMALL, always, engine_load, load, plan, serving

URL = "http://127.0.0.1/"

# In a network of its own, with four local ports and no way out.
_ALONE = """
import asyncio, json, pathlib, socket, subprocess, sys
from tests.load.servers import engine_load, plan
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("50000 50003")
with socket.socket() as deaf:
    deaf.bind(("127.0.0.1", 8080))
    deaf.listen(100)
    found = []
    for values in json.loads(sys.argv[1]):
        url = values.pop("url", "http://127.0.0.1:8080/")
        address = tuple(values.pop("address", ("127.0.0.1", 8080)))
        values["local_addresses"] = tuple(values.get("local_addresses", ()))
        found.append(asyncio.run(engine_load(plan(url, timeout=0.3, **values), address=address)).errors)
print(json.dumps(found))
"""


def in_a_network_of_its_own(*plans: dict[str, object]) -> list[dict[str, int]]:
    if not (sys.platform == "linux" and os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip")):
        pytest.skip("needs root, unshare and ip")
    command = ["unshare", "-n", sys.executable, "-c", _ALONE, json.dumps(plans)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, int]] = json.loads(done.stdout)
    return found


def test_local_ports_that_run_out_and_networks_out_of_reach_have_their_kinds() -> None:
    found = in_a_network_of_its_own(
        {"requests": 7, "concurrency": 7},
        {"requests": 8, "concurrency": 8, "local_addresses": ["127.0.0.7", "127.0.0.8"]},
        {"requests": 3, "url": "http://192.0.2.1:8080/", "address": ["192.0.2.1", 8080]},
    )
    assert found == [
        {"timeout": 4, "no_local_ports": 3},
        {"timeout": 8},
        {"unreachable": 3},
    ]


def test_open_load_that_runs_out_of_local_ports_counts_each_arrival() -> None:
    assert in_a_network_of_its_own({"rate": 100.0, "requests": 9}) == [{"timeout": 4, "no_local_ports": 5}]


# With so few files that two workers cannot have as many requests in flight as the plan allows.
_POOR = """
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


def test_open_load_keeps_within_the_file_descriptors_there_are_and_says_so() -> None:
    command = ["sh", "-c", 'ulimit -n 200 && exec "$@"', "sh", sys.executable, "-c", _POOR]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    most = 2 * (200 - OWN_FILES)
    assert done.stdout.startswith(f"{most} at most {most} requests in flight, not 8192"), done.stderr


def test_new_connections_at_a_rate_are_held_against_the_local_ports() -> None:
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


async def test_ticks_tell_what_the_generator_used_and_how_long_it_did_not_look() -> None:
    async with serving(always(SMALL)) as server:
        for values in ({}, {"rate": 200.0}):
            outcome = await load(plan(server.url, duration=0.3, **values))
            assert sum(tick.cpu for tick in outcome.ticks) > 0
            assert all(0 <= tick.pause < tick.t - tick.start + 1 for tick in outcome.ticks)
            assert max(tick.pause for tick in outcome.ticks) > 0
            assert (await engine_load(plan(server.url, requests=5))).total("pause") >= 0
