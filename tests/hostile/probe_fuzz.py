"""Feed mutated output to the real probe: bytes to readings, state and a recording, which is replayed."""

from __future__ import annotations

import math
import random
import tempfile
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.hosts.probe import Probe
from cockpit.hosts.shell import LineReader
from cockpit.model import events as ev
from cockpit.model.errors import HostError
from cockpit.model.fold import fold, fold_all
from cockpit.model.hosts import HostConfig, HostReading
from cockpit.model.load import LoadPlan
from cockpit.model.metrics import run_result
from cockpit.model.state import State
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.report.run_json import run_json
from cockpit.report.summary import summary
from cockpit.session.rounding import rounded
from tests.hostile.streams import FACTS, frame, mutated, split

# Maximum number of inputs that share a recording, and the seconds from one to the next: the recorder packs a page
# every 25 s.
BLOCK = 1250
STEP = 0.1
HOST = HostConfig(name="web1", processes=("apache2",))
RUN = ev.RunStarted(t=0.0, run=1, plan=LoadPlan(url="http://web1/", concurrency=1, duration=10.0))


class Stream:
    """A Channel that delivers mutated frames."""

    def __init__(self, fuzzer: Fuzzer) -> None:
        self._fuzzer = fuzzer
        facts = mutated(FACTS, fuzzer.rng) if fuzzer.rng.random() < 0.05 else FACTS
        self._chunks: deque[bytes] = deque([facts])
        self.readline = LineReader(self._read).readline
        self.stderr = b""

    async def write(self, data: bytes) -> None:
        fuzzer = self._fuzzer
        words = data.split(maxsplit=1)
        if words[0] == b"clock":
            clock = mutated(b"#cockpit clock 1795338000.648449750\n", fuzzer.rng)
            self._chunks.append(clock if fuzzer.rng.random() < 0.1 else b"#cockpit clock 1795338000.6\n")
        elif words[0] != b"loop":
            self._chunks.extend(split(fuzzer.next_frame(int(words[0])), fuzzer.rng))

    async def read(self, size: int) -> bytes:
        raise NotImplementedError

    def close(self) -> None:
        pass

    async def _read(self, size: int) -> bytes:
        return self._chunks.popleft() if self._chunks else b""


class Fuzzer:
    """A Shell that opens such streams, and the outcomes of `count` inputs."""

    def __init__(self, seed: int, count: int) -> None:
        self.rng = random.Random(seed)
        self.inputs = 0
        self.outcomes: Counter[str] = Counter()
        self._count = count
        self._opened = 0
        self._t = 0.0

    def next_frame(self, number: int) -> bytes:
        self.inputs += 1
        intact = frame(number)
        # Some frames must stay valid, or nothing would be folded.
        return intact if self.rng.random() < 0.1 else mutated(intact, self.rng)

    async def open(self, script: bytes) -> Stream:
        self._opened += 1
        assert self._opened <= 2 * self._count, "probes start, but request no frames"
        return Stream(self)

    async def run(self) -> None:
        while self.inputs < self._count:
            events: list[ev.AnyEvent] = [ev.SessionStarted(t=0, wall=1.7e9, version="0", name="x", hosts=(HOST,)), RUN]
            end = min(self.inputs + BLOCK, self._count)
            while self.inputs < end:
                events += await self._probe(end)
            replay([*events, ev.RunEnded(t=self._t, run=1, reason="completed")])

    async def _probe(self, end: int) -> list[ev.AnyEvent]:
        """Events of one probe, from its start to the first error."""
        self._t += STEP
        events: list[ev.AnyEvent] = []
        try:
            probe = await Probe.start(self, HOST)  # type: ignore[arg-type]
            events.append(ev.HostChanged(t=self._t, host="web1", condition="up", facts=probe.facts))
            while self.inputs < end:
                self._t += STEP
                reading = await probe.read()
                check(reading)
                self.outcomes["read"] += 1
                events.append(rounded(ev.HostSample(t=self._t, host="web1", round_trip=0.01, reading=reading)))
        except HostError as error:
            line = str(error)
            assert len(line) < 500 and "\n" not in line, line
            self.outcomes[line.removeprefix("web1: ").partition(":")[0]] += 1
            events.append(ev.HostChanged(t=self._t, host="web1", condition="lost", detail=line))
        return events


def replay(events: list[ev.AnyEvent]) -> State:
    """Record events; check that their replay is the same state, and that the numbers of the run are finite."""
    state = State()
    with tempfile.TemporaryDirectory() as folder:
        recorder = RecordingWriter(Path(folder) / "x.cockpit")
        for event in events:
            state = fold(state, event)
            recorder.record((event,))
            recorder.settle(state)
        recorder.close()
        with Recording(Path(recorder.path)) as recording:
            assert fold_all(recording.events()) == state, "the replay differs from the session"
    result = run_result(state, 1)
    assert result is not None
    summary(result)
    assert all(map(math.isfinite, all_numbers(msgspec.to_builtins(run_json(result)))))
    return state


def check(reading: HostReading) -> None:
    """Raise AssertionError for numbers that cannot be recorded or drawn, and for unbounded sizes."""
    # Cores without a line never ran, and are thousands of references to the same object.
    distinct = replace(reading, cores=tuple(set(reading.cores)))
    found = set(all_numbers(msgspec.to_builtins(distinct)))
    assert all(map(math.isfinite, found)) and max(found) < 2**63 and min(found) > -(2**63), found
    assert len(reading.cores) <= 8192
    assert all(len(device.name) <= 64 for device in (*reading.disks, *reading.nets))
    assert all(len(process.command) <= 4096 and len(process.comm) <= 64 for process in reading.processes)


def all_numbers(value: Any) -> Iterator[float]:
    """Yield all numbers in nested plain data."""
    pending = [value]
    while pending:
        part = pending.pop()
        kind = type(part)
        if kind is int or kind is float:
            yield part
        elif kind is dict:
            pending.extend(part.values())
        elif kind is list or kind is tuple:
            pending.extend(part)
