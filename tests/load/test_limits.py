"""Limits of the generator's machine: local ports and open files, and their exhaustion."""

import json
import subprocess
import sys
import time
from typing import Any

import pytest

from cockpit.load import limits
from cockpit.load.file_limit import OWN_FILES
from cockpit.load.poller import Poller, best_poller
from cockpit.model.load.plan import Stage, ThinkTime
from tests.data import data_of
from tests.load.servers import POLLERS, SMALL, Outcome, always, begin, engine_load, plan, serving

DATA = data_of(__file__)

URL = "http://127.0.0.1/"

# Runs in a private network namespace with four local ports and no route.
_FEW_PORTS = DATA["few_ports"]


@pytest.mark.lab
def test_port_exhaustion_and_unreachable_network_have_own_kinds() -> None:
    cases: list[tuple[dict[str, object], dict[str, int]]] = [
        ({"requests": 7, "concurrency": 7}, {"timeout": 4, "no_local_ports": 3}),
        ({"requests": 8, "concurrency": 8, "local_addresses": ["127.0.0.7", "127.0.0.8"]}, {"timeout": 8}),
        ({"requests": 3, "url": "http://192.0.2.1:8080/", "address": ["192.0.2.1", 8080]}, {"unreachable": 3}),
        ({"rate": 100.0, "requests": 9, "local_addresses": ["127.0.0.9"]}, {"timeout": 4, "no_local_ports": 5}),
    ]
    command = ["unshare", "-n", sys.executable, "-c", _FEW_PORTS, json.dumps([values for values, _ in cases])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [errors for _, errors in cases]


async def test_open_load_is_limited_by_file_descriptors_with_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda kind: (100, 200))
    outcome, most = Outcome(), 2 * (200 - OWN_FILES)
    run = await begin(plan("http://127.0.0.1:9/", rate=50.0, duration=600.0, workers=2), outcome)
    run.stop()
    await run.wait()
    assert outcome.started.plan.max_in_flight == most
    assert outcome.started.warnings[0].startswith(f"at most {most} requests in flight, not 8192")


PORTS = limits.local_ports()
# Connections per second from all local ports, which are in use for a minute.
RATE = PORTS / 60
USED_UP = f"use up {PORTS} local ports in"
NEW: dict[str, Any] = {"keepalive": False}
MANY: dict[str, Any] = {**NEW, "rate": RATE * 1.2, "duration": 600.0}
LONG: dict[str, Any] = {"requests": 300_000, "concurrency": 10}
TIMED: dict[str, Any] = {"duration": 60.0, "concurrency": 200, "requests_per_connection": 2}


@pytest.mark.parametrize(
    ("values", "warning"),
    [
        ({**NEW, "requests": PORTS}, ""),
        ({**NEW, "requests": PORTS + 1}, f"{PORTS + 1} new connections from {PORTS} local ports"),
        ({**NEW, "duration": 120.0}, f"{RATE:.0f} new connections/s"),
        ({"requests": 10**9}, ""),
        (MANY, USED_UP),
        ({**MANY, "duration": None, "requests": 2 * PORTS}, USED_UP),
        ({**MANY, "duration": None, "stages": (Stage(duration=90.0, rate=RATE * 1.2),)}, USED_UP),
        ({**MANY, "rate": RATE * 0.9}, ""),
        ({**MANY, "keepalive": True}, ""),
        ({**MANY, "duration": 10.0}, ""),
        ({**MANY, "local_addresses": ("127.0.0.1", "127.0.0.2")}, ""),
        ({**MANY, "unix": "/x"}, ""),
        (LONG, ""),
        ({**LONG, "requests_per_connection": 100}, ""),
        ({**LONG, "requests_per_connection": 2}, "150000 new connections"),
        (TIMED, "new connections/s"),
        ({**TIMED, "think_time": ThinkTime(seconds=0.001)}, "new connections/s"),
        ({**TIMED, "think_time": ThinkTime(seconds=5.0)}, ""),
    ],
)
def test_connections_are_checked_against_local_ports(values: dict[str, Any], warning: str) -> None:
    found = limits.warnings(plan(URL, **values))
    assert any(warning in line for line in found) if warning else found == ()


# Seconds.
STALL = 0.3


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
    assert outcome.total("cpu") > 0
    # The engine may have planned to wait until the next tick.
    assert max(tick.pause for tick in outcome.ticks) >= STALL - load_plan.tick
    # Pauses of several ticks do not overlap, and one that counted twice would exceed the run.
    assert sum(tick.pause for tick in outcome.ticks) <= outcome.ticks[-1].t - outcome.ticks[0].start
