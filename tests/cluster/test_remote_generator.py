"""A generator that answers with errors of any kind, or with nonsense: it is named, and lost alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from cockpit.cluster.clocks import Ping
from cockpit.cluster.dask_launcher import DaskLauncher
from cockpit.cluster.remote_generator import RemoteGenerator, RemoteWorker, WorkerLine
from cockpit.load.pool import LoadRun
from cockpit.load.protocol import assignments
from cockpit.model.clock import Clock
from cockpit.model.errors import CockpitError, HostError
from cockpit.model.events import AnyEvent, RunEnded, Tick
from cockpit.model.generators import GeneratorLost, WorkerLost
from tests.load.servers import plan

ERRORS = (OSError("Unable to contact Actor's worker"), ValueError("nonsense"), KeyError("begin"))


class Failing:
    """A carrier whose methods fail."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def begin(self, lines: Any) -> str:
        raise self._error

    async def moment(self) -> float:
        raise self._error

    async def send(self, messages: Any) -> None:
        raise self._error

    async def end(self) -> None:
        raise self._error


class Telling(Failing):
    """A carrier with this clock."""

    def __init__(self, there: Any) -> None:
        self._there = there

    async def moment(self) -> Any:
        return self._there


def machine_with(carrier: Failing) -> RemoteGenerator:
    machine = RemoteGenerator("gen1", "tls://127.0.0.1:1")
    machine.actor = carrier
    return machine


def launcher_of(machine: RemoteGenerator, events: list[AnyEvent]) -> DaskLauncher:
    launcher = DaskLauncher("tls://127.0.0.1:1")
    launcher.generators = [machine]
    launcher.attach(Clock(), events.append)
    return launcher


@pytest.mark.parametrize("error", ERRORS)
async def test_load_workers_that_cannot_be_started_are_one_line(error: Exception) -> None:
    launcher = launcher_of(machine_with(Failing(error)), [])
    with pytest.raises(CockpitError, match="gen1: "):
        await launcher.workers(lambda machines: assignments(plan("http://127.0.0.1/"), 1, ()))


async def test_if_one_generator_starts_no_load_workers_those_of_others_are_ended() -> None:
    told: list[Any] = []

    class Willing(Telling):
        async def begin(self, lines: Any) -> str:
            return ""

        async def send(self, messages: Any) -> None:
            told.extend(messages)

    launcher = launcher_of(machine_with(Failing(ERRORS[0])), [])
    launcher.generators.append(machine_with(Willing(1.0)))
    with pytest.raises(CockpitError, match="gen1: Unable to contact"):
        await launcher.workers(lambda machines: assignments(plan("http://127.0.0.1/", workers=2, concurrency=2), 1, ()))
    await _idle(launcher.generators[1])
    assert told == [(1, b"")]


@pytest.mark.parametrize("error", ERRORS)
async def test_a_generator_whose_ping_fails_is_lost(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.cluster.dask_launcher._PING", 0.0)
    events: list[AnyEvent] = []
    launcher = launcher_of(machine_with(Failing(error)), events)
    async with asyncio.timeout(30):
        await launcher._watch(launcher.generators[0])
    assert isinstance(events[0], GeneratorLost) and events[0].machine == "gen1"


@pytest.mark.parametrize("there", [1.7e308, -1.7e308, -1.0, float("nan"), float("inf"), 5, "5", None])
async def test_an_instant_that_no_clock_shows_is_refused(there: Any) -> None:
    """Of two such instants, offset and drift would be infinite, and the recording could not be read."""
    with pytest.raises(HostError, match="gen1: invalid clock reading"):
        await machine_with(Telling(there)).ping()


async def _idle(machine: RemoteGenerator) -> None:
    if machine._sending is not None:
        await asyncio.wait([machine._sending])


@pytest.mark.parametrize("error", ERRORS)
async def test_commands_are_sent_after_one_that_failed(error: Exception) -> None:
    machine = machine_with(Failing(error))
    machine.send(0, b"x")
    await _idle(machine)
    sent: list[Any] = []
    machine.actor.send = lambda messages: asyncio.sleep(0, sent.append(messages))
    machine.send(0, b"y")
    await _idle(machine)
    assert sent == [[(0, b"y")]]
    await machine.close()


@pytest.mark.parametrize("message", ["text", None, [1], {"action": 5}])
def test_any_message_to_all_is_no_error(message: Any) -> None:
    events: list[AnyEvent] = []
    launcher_of(machine_with(Telling(1.0)), events)._take_scheduler_event((0.0, message))
    assert not events


TICK = {"event": "tick", "t": 5e8, "run": 1, "worker": 0, "start": 4.9e8, "sent": 2, "completed": 2}


@pytest.mark.parametrize(
    "changed",
    [
        {"service": [3, 1, 2, 10**30, 1]},
        {"service": [3, 1, 2, 10**17, 1]},
        {"service": [3, 1, 2, 5, -1]},
        {"service": ["x", 1, 2, 5, 1]},
        {"stage": -5},
        {"statuses": {"9" * 20: 1}},
        {"errors": {"timeout": 10**40}},
    ],
)
async def test_invalid_tick_of_generator_ends_its_worker(changed: dict[str, Any]) -> None:
    """A recording would leave the tick out, so that a replay would differ."""
    machine = RemoteGenerator("gen1", "tls://127.0.0.1:1")
    events: list[AnyEvent] = []
    load_plan, clock = plan("http://127.0.0.1/"), Clock()
    worker = RemoteWorker(assignments(load_plan, 1, ())[0], machine)
    machine.expect([worker])
    machine.clock.take(Ping(sent=0.0, there=0.0, received=0.0))
    run = LoadRun(load_plan, 1, clock, events.append, [worker], clock.now())
    now = clock.origin + clock.now()
    times = {"t": now, "start": now}
    for line in (TICK | times, TICK | times | changed, TICK | times):
        machine.take(WorkerLine("tls://127.0.0.1:1", 0, 0, json.dumps(line).encode(), ""))
    machine.take(WorkerLine("tls://127.0.0.1:1", 0, 0, b"", ""))
    await run.wait()
    assert [type(event) for event in events] == [Tick, WorkerLost, RunEnded]


class _Scheduler:
    """A client of a scheduler with one worker, on which a carrier cannot be made."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def subscribe_topic(self, topic: str, handler: Any) -> None: ...

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        return {"workers": {"tls://127.0.0.1:1": {"name": "gen1", "host": "127.0.0.1"}}}

    async def submit(self, *_: Any, **__: Any) -> None:
        raise self._error


@pytest.mark.parametrize("error", [TypeError("__init__() takes 2 positional arguments"), AttributeError("Carrier")])
async def test_another_cockpit_on_a_worker_of_a_cluster_is_named(error: Exception) -> None:
    launcher = DaskLauncher("tls://127.0.0.1:1")
    launcher.client = _Scheduler(error)  # type: ignore[assignment]
    with pytest.raises(HostError, match=f"gen1: {error.args[0].split('(')[0]}"):
        await launcher._place()
