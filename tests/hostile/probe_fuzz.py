"""Feed mutated output of a probe to the real one: bytes to readings, state and a recording, which is replayed."""

from __future__ import annotations

import math
import random
import re
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.hosts.probe.probe import Probe
from cockpit.hosts.shell import LineReader
from cockpit.metrics.results import run_result
from cockpit.model import events as ev
from cockpit.model.errors import HostError
from cockpit.model.fold.fold import fold, fold_all
from cockpit.model.host.samples import HostConfig, HostReading
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.report.run import run_text
from cockpit.report.run_json import run_json
from cockpit.session.rounding import rounded
from tests.data import data_of

DATA = data_of(__file__)

FACTS = DATA["facts"].encode()

# A frame of two ticks: @N is its number, @T hundredths of a second, @C a counter that grows.
SYSTEM = DATA["system"].encode()
PROCESSES = DATA["processes"].encode()
END = b"""\
#cockpit there 4444 4445
#cockpit end @N
"""

_NUMBER = re.compile(rb"\d[\d.]*")
_TOKEN = re.compile(rb'[A-Za-z]+|[ \t]+|[<>="/:%]')
NUMBERS = (
    *(b"", *b"0 -0 -1 1 +1 1_0 1.5 1e400 1e-400 nan inf -inf 0x10 ... 1.2.3 . 1e308 -1e308".split()),
    *(str(2**power + step).encode() for power in (15, 31, 32, 53, 63, 64) for step in (-1, 0, 1)),
    *(b"9" * digits for digits in (18, 19, 20, 30, 400, 5000)),
    *("٣".encode(), "²".encode(), b"\x00", b"\xff", b"\x1b[2J", b"8000000", b"253402300799", b"253402300800"),
)
MARKERS = (
    *(b"#cockpit begin " + number for number in (b"0", b"-1", b"9" * 5000)),
    *(b"#cockpit there " + pids for pids in (b"-1", b"7 " * 300, b"9" * 5000)),
    *(b"#cockpit " + text for text in (b"", b"end 0", b"again", b"hidden", b"clock 1e999", b"ready", b"fact hz 0")),
    b"#cockpit disks " + b"x" * 3000,
    *(b"/proc/stat:cpu" + cpu for cpu in (b"8000000 1 2 3 4 5 6 7 8", b"127 1 2 3 4 5 6 7 8", b"-1 1 2 3 4")),
    *(
        b"/proc/" + text
        for text in (b":x", b"x" * 3000 + b":y", b"4446/stat:4446 (x) S", b"9" * 16 + b"/stat:1 (x) S 1")
    ),
    b"/proc/4444/cmdline:" + b"x" * 9000,
    b"/proc/net/dev:" + b"n" * 90 + b": 1 2 3 4 5 6 7 8 9 10 11 12",
    *(b"", b"\x00" * 90),
)
# The highest CPU number that is accepted. Rare, since 8192 CPUs take 50 ms to record and to read.
MAX_CPUS = b"/proc/stat:cpu8191 1 2 3 4 5 6 7 8"


def frame(number: int) -> bytes:
    """The intact frame of a tick; only every second frame has the files of processes."""
    intact = SYSTEM + (PROCESSES if number % 2 else b"") + END
    return (
        intact.replace(b"@N", b"%d" % number)
        .replace(b"@T", b"%d" % (1000 + number))
        .replace(b"@C", b"%d" % (number * 50))
    )


def mutated(data: bytes, rng: random.Random) -> bytes:
    """`data` with one to three mutations that use its structure."""
    lines = data.split(b"\n")
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(_MUTATIONS)(lines, rng)
    return (b"\n" if rng.random() < 0.97 else rng.choice((b"\r\n", b"\r", b" "))).join(lines)


def split(data: bytes, rng: random.Random) -> list[bytes]:
    """The data split at random positions, as a connection may deliver it."""
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.choice((0, 0, 0, 1, 3))))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def _number(lines: list[bytes], rng: random.Random) -> None:
    _replace(_NUMBER, lines, rng, lambda _: rng.choice(NUMBERS))


def _token(lines: list[bytes], rng: random.Random) -> None:
    """Repeat or delete a word, a sign or a blank."""
    _replace(_TOKEN, lines, rng, lambda token: token * rng.choice((0, 2, 50, 2000)))


def _replace(pattern: re.Pattern[bytes], lines: list[bytes], rng: random.Random, new: Callable[[bytes], bytes]) -> None:
    at = rng.randrange(len(lines))
    if found := list(pattern.finditer(lines[at])):
        match = rng.choice(found)
        lines[at] = lines[at][: match.start()] + new(match[0]) + lines[at][match.end() :]


def _marker(lines: list[bytes], rng: random.Random) -> None:
    line = MAX_CPUS if rng.random() < 0.005 else rng.choice(MARKERS)
    lines.insert(rng.randrange(len(lines)), line)


def _drop(lines: list[bytes], rng: random.Random) -> None:
    start = rng.randrange(len(lines))
    if len(lines) > 8:
        del lines[start : start + rng.choice((1, 1, 2, 5))]


def _repeat(lines: list[bytes], rng: random.Random) -> None:
    at = rng.randrange(len(lines))
    lines[at:at] = [lines[at]] * rng.choice((1, 2, 2, 60))


def _swap(lines: list[bytes], rng: random.Random) -> None:
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]


def _cut(lines: list[bytes], rng: random.Random) -> None:
    at = rng.randrange(len(lines))
    lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]


def _join(lines: list[bytes], rng: random.Random) -> None:
    """Remove a newline."""
    at = rng.randrange(len(lines))
    lines[at : at + 2] = [b"".join(lines[at : at + 2])]


def _byte(lines: list[bytes], rng: random.Random) -> None:
    at = rng.randrange(len(lines))
    position = rng.randrange(len(lines[at]) + 1)
    lines[at] = lines[at][:position] + rng.randbytes(rng.choice((1, 1, 4))) + lines[at][position + 1 :]


_MUTATIONS: tuple[Callable[[list[bytes], random.Random], None], ...] = (
    *(_number, _number, _number, _token, _marker, _drop, _repeat, _swap, _cut, _join, _byte),
)


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
    run_text(result)
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
