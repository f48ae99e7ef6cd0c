"""A generator that answers with errors of any kind, with nonsense or not at all: it is named, and lost alone."""

import asyncio
import json
import re
from typing import Any

import pytest

from cockpit.cluster import dask_launcher
from cockpit.cluster.clocks import Ping
from cockpit.cluster.dask_launcher import WORKER_ENDED, DaskLauncher
from cockpit.cluster.remote_generator import RemoteGenerator, RemoteWorker, WorkerLine
from cockpit.load.http.protocol import Done, Stop, assignments, encode
from cockpit.load.pool import LoadRun
from cockpit.model.clock import Clock
from cockpit.model.errors import CockpitError, HostError
from cockpit.model.events import AnyEvent, RunEnded
from cockpit.model.generators import GeneratorLost, WorkerLost
from cockpit.model.tick import Tick
from cockpit.session.live_load import LiveLoad
from tests.data import data_of
from tests.load.servers import plan

DATA = data_of(__file__)

ADDRESS = "tls://127.0.0.1:1"
ERRORS = (
    OSError("Unable to contact Actor's worker"),
    OSError(24, "Too many open files"),
    ValueError("nonsense"),
    KeyError("begin"),
)


class Actor:
    """An actor whose methods return `result`, or raise it, and which records its commands."""

    def __init__(self, result: Any) -> None:
        self.result = result
        self.commands: list[Any] = []

    async def begin(self, lines: Any) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    async def moment(self) -> Any:
        return await self.begin(())

    async def send(self, messages: Any) -> None:
        await self.begin(())
        self.commands.extend(messages)

    async def end(self) -> None:
        await self.begin(())


def generator_with(actor: Any) -> RemoteGenerator:
    generator = RemoteGenerator("gen1", ADDRESS)
    generator.actor = actor
    return generator


def launcher_of(*generators: RemoteGenerator) -> tuple[DaskLauncher, list[AnyEvent]]:
    events: list[AnyEvent] = []
    launcher = DaskLauncher(ADDRESS)
    launcher.generators = list(generators)
    LiveLoad(plan("http://127.0.0.1/"), Clock(), events.append, launcher)
    return launcher, events


async def _idle(generator: RemoteGenerator) -> None:
    if generator._sending is not None:
        await asyncio.wait([generator._sending])


@pytest.mark.parametrize("error", ERRORS)
async def test_generator_that_starts_no_load_workers_is_named_and_workers_of_others_are_ended(error: Exception) -> None:
    other = Actor("")
    launcher, _ = launcher_of(generator_with(Actor(error)), generator_with(other))
    with pytest.raises(CockpitError, match=f"^gen1: {re.escape(str(error))}$"):
        await launcher.workers(lambda machines: assignments(plan("http://127.0.0.1/", workers=2, concurrency=2), 1, ()))
    await _idle(launcher.generators[1])
    assert other.commands == [(1, b"")]


@pytest.mark.parametrize("error", ERRORS)
async def test_generator_whose_ping_fails_is_lost(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_launcher, "_PING", 0.0)
    launcher, events = launcher_of(generator_with(Actor(error)))
    await launcher._watch(launcher.generators[0])
    [lost] = events
    reason = WORKER_ENDED if isinstance(error, OSError) and not error.errno else str(error)
    assert isinstance(lost, GeneratorLost) and (lost.machine, lost.detail) == ("gen1", reason)


async def test_hung_generator_is_lost_after_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    actor = Actor(1.0)
    actor.moment = asyncio.Event().wait  # type: ignore[method-assign]
    monkeypatch.setattr(dask_launcher, "_PING", 0.0)
    launcher, events = launcher_of(generator_with(actor))
    launcher.generators[0].timeout = 0.2
    await launcher._watch(launcher.generators[0])
    [lost] = events
    assert isinstance(lost, GeneratorLost) and lost.detail.startswith("no answer for ")


@pytest.mark.parametrize("there", [1.7e308, -1.7e308, -1.0, float("nan"), float("inf"), 5, "5", None])
async def test_implausible_clock_reading_is_refused(there: Any) -> None:
    """Of two such instants, offset and drift would be infinite, and the recording could not be read."""
    with pytest.raises(HostError, match="gen1: invalid clock reading"):
        await generator_with(Actor(there)).ping()


@pytest.mark.parametrize("error", ERRORS)
async def test_commands_are_sent_after_one_that_failed(error: Exception) -> None:
    actor = Actor(error)
    generator = generator_with(actor)
    generator.send(0, b"x")
    await _idle(generator)
    actor.result = ""
    generator.send(0, b"y")
    await _idle(generator)
    assert actor.commands == [(0, b"y")]
    # The next run begins after the last command.
    generator.send(0, b"z")
    await generator.begin(())
    assert actor.commands == [(0, b"y"), (0, b"z")]
    await generator.close()


@pytest.mark.parametrize("message", ["text", None, [1], {"action": 5}])
def test_any_message_to_all_is_no_error(message: Any) -> None:
    launcher, events = launcher_of(generator_with(Actor(1.0)))
    launcher._handle_scheduler_event((0.0, message))
    assert not events


async def test_unread_lines_are_bounded() -> None:
    generator = RemoteGenerator("gen1", ADDRESS)
    generator.expect([RemoteWorker(assignments(plan("http://127.0.0.1/"), 1, ())[0], generator)])
    line = WorkerLine(ADDRESS, 0, 0, bytes(2**20), "")
    with pytest.raises(HostError, match="gen1: sends messages faster than they can be read"):
        for _ in range(100):
            generator.feed(line)


TICK = {"event": "tick", "t": 5e8, "run": 1, "worker": 0, "start": 4.9e8, "sent": 2, "completed": 2}


@pytest.mark.parametrize("changed", DATA["invalid_tick_of_generator_ends_its_worker"])
async def test_invalid_tick_of_generator_ends_its_worker(changed: dict[str, Any]) -> None:
    """A recording would leave the tick out, so that a replay would differ."""
    generator = RemoteGenerator("gen1", ADDRESS)
    events: list[AnyEvent] = []
    load_plan, clock = plan("http://127.0.0.1/"), Clock()
    worker = RemoteWorker(assignments(load_plan, 1, ())[0], generator)
    generator.expect([worker])
    generator.clock.add(Ping(sent=0.0, there=0.0, received=0.0))
    run = LoadRun(load_plan, 1, clock, events.append, [worker], clock.now())
    now = clock.origin + clock.now()
    times = {"t": now, "start": now}
    for line in (TICK | times, TICK | times | changed, TICK | times):
        generator.feed(WorkerLine(ADDRESS, 0, 0, json.dumps(line).encode(), ""))
    generator.feed(WorkerLine(ADDRESS, 0, 0, b"", ""))
    await run.wait()
    assert [type(event) for event in events] == [Tick, WorkerLost, RunEnded]


async def test_stopped_run_kills_no_load_workers_of_next_run() -> None:
    """They have the same numbers on a generator."""
    actor = Actor("")
    generator = generator_with(actor)
    generator.clock.add(Ping(sent=0.0, there=0.0, received=0.0))
    load_plan, clock = plan("http://127.0.0.1/"), Clock()
    worker = RemoteWorker(assignments(load_plan, 1, ())[0], generator)
    generator.expect([worker])
    run = LoadRun(load_plan, 1, clock, lambda event: None, [worker], clock.now())
    run.stop()
    for line in (encode(Done("stopped")), b""):
        generator.feed(WorkerLine(ADDRESS, 0, 0, line, ""))
    await run.wait()
    await generator.begin([worker])
    assert actor.commands == [(0, encode(Stop())), (0, b"")]
    run._kill_stuck()
    await _idle(generator)
    assert len(actor.commands) == 2


class _Scheduler:
    """A client of a scheduler with one worker, on which an actor cannot be made."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def subscribe_topic(self, topic: str, handler: Any) -> None: ...

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        return {"workers": {ADDRESS: {"name": "gen1", "host": "127.0.0.1"}}}

    async def submit(self, *_: Any, **__: Any) -> None:
        raise self._error


@pytest.mark.parametrize("error", [TypeError("__init__() takes 2 positional arguments"), AttributeError("Carrier")])
async def test_worker_with_another_cockpit_is_named(error: Exception) -> None:
    launcher = DaskLauncher(ADDRESS)
    launcher.client = _Scheduler(error)  # type: ignore[assignment]
    with pytest.raises(HostError, match=f"gen1: {error.args[0].split('(')[0]}"):
        await launcher._place()
