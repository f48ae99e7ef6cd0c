"""Hostile probe output: the result is a recordable reading or a one-line host error."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain, count, repeat
from pathlib import Path

import pytest

from cockpit.hosts import frames
from cockpit.hosts.probe import Probe
from cockpit.hosts.shell import LineReader
from cockpit.model.clock import Clock
from cockpit.model.errors import HostError
from cockpit.model.fold import fold_all
from cockpit.model.hosts import HostConfig
from cockpit.model.load import LoadPlan
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from tests.hostile.measuring import SEEDS, THOROUGH, growth_below
from tests.hostile.probe_fuzz import Fuzzer
from tests.hostile.streams import FACTS, frame
from tests.hosts.sshd import Sshd

# Inputs per seed; the recorder packs a page after 250.
COUNT = 3750 if THOROUGH else 500
CLOCKS = b"#cockpit clock 1\n" * 3


@pytest.mark.parametrize("seed", SEEDS)
async def test_fuzzed_probe_streams_raise_only_host_errors_and_replay(seed: int) -> None:
    fuzzer = Fuzzer(seed, COUNT)
    with growth_below(130):
        await fuzzer.run()
    # If almost all or none were valid, little would be tested.
    assert COUNT / 4 < fuzzer.outcomes["read"] < COUNT * 3 / 4


class Stream:
    """A Channel, and the Shell that opens it: delivers these chunks."""

    stderr = b""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self.readline = LineReader(self._read).readline

    async def open(self, script: bytes) -> Stream:
        return self

    async def write(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        pass

    async def _read(self, size: int) -> bytes:
        return next(self._chunks, b"")


async def read_error(chunks: Iterator[bytes], readings: int = 1) -> str:
    """The error of a probe with this output; "" if all frames are accepted."""
    try:
        probe = await Probe.start(Stream(chunks), HostConfig(name="web1"))  # type: ignore[arg-type]
        for _ in range(readings):
            await probe.read()
    except HostError as error:
        return str(error)
    return ""


# Endless output after `#cockpit begin 1`, and the error that ends it, with the limits of the test.
ENDLESS = {
    "lines of a file": ("/proc/4444/cmdline:x", "a frame is longer than 4 MiB"),
    "lines of the system": ("/proc/stat:" + "x" * 300, "/proc/stat is longer than 1 MiB"),
    "empty lines": ("", "a frame is longer than 4 MiB"),
    "long lines": ("/proc/4444/cmdline:" + "x" * 60_000, "a frame is longer than 4 MiB"),
    "noise": ("x" * 300, "a frame is longer than 4 MiB"),
    "paths": ("/proc/{0}/statm:1 2 3 4 5 6", "a frame has more than 4000 files"),
    "marks": ("#cockpit disks a b c", "a frame is longer than 4 MiB"),
    "processes that are there": ("#cockpit there {0} {0} {0} {0} {0} {0} {0} {0} {0}", "more than 800 processes"),
    "begins": ("#cockpit begin 1", "a frame is longer than 4 MiB"),
    "disks": ("/proc/diskstats: 8 0 d{0} 1 2 3 4 5 6 7 8 9 10 11", "/proc/diskstats is longer than 1 MiB"),
}


@pytest.mark.parametrize("case", ENDLESS)
async def test_endless_frame_is_refused(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in (("FRAME", 4 << 20), ("SYSTEM_FILE", 1 << 20), ("FILES", 4000), ("PROCESSES", 800)):
        monkeypatch.setattr(frames, f"{name}_LIMIT", limit)
    text, problem = ENDLESS[case]
    lines = map(f"{text}\n".format, count(1)) if "{0}" in text else repeat(f"{text}\n" * 100)
    begin = frame(1).partition(b"#cockpit there")[0]
    error = await read_error(chain((FACTS, CLOCKS, begin), (line.encode() for line in lines)))
    assert error.startswith("web1: invalid reading: ") and problem in error


async def test_largest_accepted_frames_need_bounded_memory() -> None:
    with growth_below(130):
        assert await read_error(chain((FACTS, CLOCKS), _largest()), readings=2) == ""


def _largest() -> Iterator[bytes]:
    """Endless frames with the maximum of processes, devices and CPUs, and long command lines."""
    for number in count(1):
        yield frame(number).partition(b"#cockpit there")[0]
        yield b"".join(b"/proc/stat:cpu%d 9 9 9 9 9 9 9 9 9 9\n" % cpu for cpu in range(1, 8192))
        yield b"".join(b"/proc/net/dev: e%d: 1 2 3 4 5 6 7 8 9 10 11 12\n" % device for device in range(9900))
        for pid in range(10_000, 26_000):
            stat = b"%d (x) S 1 1 1 0 0 0 0 0 0 0 %d 0 0 0 20 0 1 0 5 5 5 5" % (pid, number)
            yield b"/proc/%d/stat:%s\n/proc/%d/statm:9 9 9 9\n/proc/%d/cmdline:%s\n" % (pid, stat, pid, pid, b"x" * 700)
        listed = b" ".join(b"%d" % pid for pid in range(10_000, 26_000))
        yield b"#cockpit there %s\n#cockpit end %d\n" % (listed[:60_000].rpartition(b" ")[0], number)


# Part of the valid output, its replacement, and the error.
HOSTILE = {
    "5000 digits": (b"procs_running 7", b"procs_running " + b"9" * 5000, "/proc/stat: procs_running: '9"),
    "400 digits of btime": (b"btime 1795335718", b"btime " + b"1" * 400, "/proc/stat: btime: '1"),
    "63 bits": (b"stat:processes ", b"stat:processes 9223372036854775808 ", "processes: '9223372036854775808'"),
    "hz 0": (b"fact hz 100", b"fact hz 0", "invalid facts: 0 clock ticks per second"),
    "page 0": (b"fact page 4096", b"fact page 0", "invalid facts: 0 bytes per page"),
    "cpu8000000": (b"cpu0 ", b"cpu8000000 ", "'8000000' is not a number from 0 to 8191"),
    "nan": (b"loadavg:11.25", b"loadavg:nan", "/proc/loadavg: 'nan' is not a number"),
    "negative": (b"uptime:", b"uptime:-", "/proc/uptime: '-1001' is not a number"),
    "not a time": (b"uptime:1001", b"uptime:" + b"9" * 17, "/proc/uptime: '99999999999999999' is not a number"),
    "a short line of a CPU": (b"stat:cpu0 ", b"stat:cpu0 3\n/proc/x:", "a CPU has 1 counters"),
    "a long name": (b" eth0:", b" " + b"e" * 90 + b":", "is longer than 64 bytes"),
    "memory of 2^63": (b"MemTotal:       24683656", b"MemTotal: 9223372036854775807", "'9223372036854775807'"),
}


def hostile_output(case: str) -> bytes:
    old, new, _ = HOSTILE[case]
    return (FACTS + CLOCKS + b"".join(map(frame, range(1, 9)))).replace(old, new)


@pytest.mark.parametrize("case", HOSTILE)
async def test_invalid_output_is_one_short_error(case: str) -> None:
    error = await read_error(iter([hostile_output(case)]))
    assert error.startswith("web1: invalid ") and HOSTILE[case][2] in error
    assert len(error) < 300 and "\n" not in error


# Prints the start marker of the program on stdin, like a shell that runs it.
STARTED = """IFS= read -r mark; mark=${mark#*\\'}; mark=${mark%%\\'*}; echo "$mark"; echo "$mark" >&2"""


async def test_host_with_invalid_output_is_lost_others_continue(sshd: Sshd, tmp_path: Path) -> None:
    """With real shells; the login shell of the hostile host prints the invalid output."""
    (tmp_path / "output").write_bytes(hostile_output("5000 digits"))
    sshd.noise = f"{STARTED}; cat {tmp_path}/output; exec sleep 1000"
    hosts = (HostConfig(name="good", interval=0.1), HostConfig(name="bad", ssh="web", processes=("apache2",)))
    profile = Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/", concurrency=1, duration=1.0), hosts=hosts)
    session = Session(LiveSource(profile, Clock(), ssh_config=sshd.ssh_config), RecordingWriter(tmp_path / "x.cockpit"))
    running = asyncio.create_task(session.run())

    def both_updated(state: State) -> bool:
        good, bad = state.hosts.get("good"), state.hosts.get("bad")
        return good is not None and bad is not None and bad.condition == "lost" and len(good.points) > 1

    state = await session.until(both_updated)
    assert HOSTILE["5000 digits"][2] in state.hosts["bad"].detail
    points = len(state.hosts["good"].points)
    await session.until(lambda state: len(state.hosts["good"].points) > points + 1)
    await session.source.close()
    await running
    with Recording(tmp_path / "x.cockpit") as recording:
        assert fold_all(recording.events()) == session.state
