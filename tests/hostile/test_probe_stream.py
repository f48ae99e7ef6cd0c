"""Hostile probe output: the result is a recordable reading or a one-line host error."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from itertools import chain, count, repeat
from pathlib import Path

import pytest

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
from tests.hostile.measuring import MAX_MIB, SEEDS, measured, peak_mib
from tests.hostile.streams import FACTS, frame
from tests.hosts.sshd import Sshd

# Inputs per seed: whole recordings of probe_fuzz.
COUNT = 3_750


@pytest.mark.parametrize("seed", SEEDS)
def test_fuzzed_probe_streams_raise_only_host_errors_and_replay(seed: int) -> None:
    result = measured("tests.hostile.probe_fuzz", str(seed), str(COUNT))
    assert result["inputs"] >= COUNT
    assert result["mib"] < MAX_MIB
    # If almost all or none were valid, little would be tested.
    assert COUNT / 4 < result["outcomes"]["read"] < COUNT * 3 / 4


# Endless output after `#cockpit begin 1`, and the error that ends it.
ENDLESS = {
    "lines of a file": ("/proc/4444/cmdline:x", "a frame is longer than 24 MiB"),
    "lines of the system": ("/proc/stat:" + "x" * 300, "/proc/stat is longer than 4 MiB"),
    "empty lines": ("", "a frame is longer than 24 MiB"),
    "long lines": ("/proc/4444/cmdline:" + "x" * 60_000, "a frame is longer than 24 MiB"),
    "noise": ("x" * 300, "a frame is longer than 24 MiB"),
    "paths": ("/proc/{0}/statm:1 2 3 4 5 6", "a frame has more than 81984 files"),
    "processes": (
        "/proc/{0}/stat:{0} (x) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5 5 5",
        "a frame has more than 81984 files",
    ),
    "marks": ("#cockpit disks a b c", "a frame is longer than 24 MiB"),
    "processes that are there": ("#cockpit there {0} {0} {0} {0} {0} {0} {0} {0} {0}", "more than 16384 processes"),
    "begins": ("#cockpit begin 1", "a frame is longer than 24 MiB"),
    "disks": ("/proc/diskstats: 8 0 d{0} 1 2 3 4 5 6 7 8 9 10 11", "/proc/diskstats"),
    "interfaces": ("/proc/net/dev: e{0}: 1 2 3 4 5 6 7 8 9 10 11 12", "/proc/net/dev"),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_endless_frame_is_refused_in_bounded_memory(case: str) -> None:
    result = measured("tests.hostile.test_probe_stream", case)
    assert result["error"].startswith("web1: invalid reading: ")
    assert ENDLESS[case][1] in result["error"]
    assert result["mib"] < MAX_MIB


def test_largest_accepted_frames_need_under_200_mib() -> None:
    result = measured("tests.hostile.test_probe_stream", "largest")
    assert result["error"] == ""
    assert result["mib"] < MAX_MIB


HOSTILE = {
    "5000 digits": (
        b"procs_running 7",
        b"procs_running " + b"9" * 5000,
        "invalid reading: /proc/stat: procs_running: '9",
    ),
    "400 digits of btime": (b"btime 1795335718", b"btime " + b"1" * 400, "invalid reading: /proc/stat: btime: '1"),
    "63 bits": (
        b"stat:processes ",
        b"stat:processes 9223372036854775808 ",
        "/proc/stat: processes: '9223372036854775808'",
    ),
    "hz 0": (b"fact hz 100", b"fact hz 0", "invalid facts: 0 clock ticks per second"),
    "page 0": (b"fact page 4096", b"fact page 0", "invalid facts: 0 bytes per page"),
    "cpu8000000": (b"cpu0 ", b"cpu8000000 ", "'8000000' is not a number from 0 to 8191"),
    "nan": (b"loadavg:11.25", b"loadavg:nan", "/proc/loadavg: 'nan' is not a number"),
    "negative": (b"uptime:", b"uptime:-", "/proc/uptime: '-1001' is not a number"),
    "not a time": (b"uptime:1001", b"uptime:" + b"9" * 17, "/proc/uptime: '99999999999999999' is not a number"),
    "a short line of a CPU": (b"stat:cpu0 ", b"stat:cpu0 3\n/proc/x:", "a CPU has 1 counters"),
    "a long name": (b" eth0:", b" " + b"e" * 90 + b":", "is longer than 64 bytes"),
    "memory of 2^63": (
        b"MemTotal:       24683656",
        b"MemTotal: 9223372036854775807",
        "/proc/meminfo: '9223372036854775807'",
    ),
}


# Prints the start marker of the program on stdin, like a shell that runs it.
STARTED = """IFS= read -r mark; mark=${mark#*\\'}; mark=${mark%%\\'*}; echo "$mark"; echo "$mark" >&2"""


@pytest.mark.parametrize("case", HOSTILE)
async def test_host_with_invalid_output_is_lost_others_continue(case: str, sshd: Sshd, tmp_path: Path) -> None:
    """With real shells; the login shell of the hostile host prints the invalid output."""
    old, new, detail = HOSTILE[case]
    output = (
        FACTS + b"#cockpit clock 1\n#cockpit clock 1\n#cockpit clock 1\n" + b"".join(map(frame, range(1, 9)))
    ).replace(old, new)
    (tmp_path / "output").write_bytes(output)
    sshd.noise = f"{STARTED}; cat {tmp_path}/output; exec sleep 1000"
    hosts = (HostConfig(name="good"), HostConfig(name="bad", ssh="web", processes=("apache2",)))
    profile = Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/", concurrency=1, duration=1.0), hosts=hosts)
    session = Session(LiveSource(profile, Clock(), ssh_config=sshd.ssh_config), RecordingWriter(tmp_path / "x.cockpit"))
    running = asyncio.create_task(session.run())

    def both_updated(state: State) -> bool:
        good, bad = state.hosts.get("good"), state.hosts.get("bad")
        return good is not None and bad is not None and bad.condition == "lost" and len(good.points) > 1

    async with asyncio.timeout(60):
        state = await session.until(both_updated)
    assert detail in state.hosts["bad"].detail
    assert len(state.hosts["bad"].detail) < 300
    points = len(state.hosts["good"].points)
    async with asyncio.timeout(60):
        await session.until(lambda state: len(state.hosts["good"].points) > points + 1)
    await session.source.close()
    await running
    with Recording(tmp_path / "x.cockpit") as recording:
        assert fold_all(recording.events()) == session.state


class _Endless:
    """A Channel, and the Shell that opens it: facts, then these chunks."""

    stderr = b""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chain((FACTS, b"#cockpit clock 1\n" * 3), chunks)
        self.readline = LineReader(self._read).readline

    async def open(self, script: bytes) -> _Endless:
        return self

    async def write(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        pass

    async def _read(self, size: int) -> bytes:
        return next(self._chunks)


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


async def _read_error(case: str) -> str:
    """The error that ends such a stream; "" if its frames are accepted."""
    begin = frame(1).partition(b"#cockpit there")[0]
    if case == "largest":
        chunks = _largest()
    else:
        line = ENDLESS[case][0] + "\n"
        lines = map(line.format, count(1)) if "{0}" in line else repeat(line * 100)
        chunks = chain((begin,), (text.encode() for text in lines))
    try:
        probe = await Probe.start(_Endless(chunks), HostConfig(name="web1"))  # type: ignore[arg-type]
        for _ in range(3):
            await probe.read()
    except HostError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    error = asyncio.run(_read_error(sys.argv[1]))
    print(json.dumps({"error": error, "mib": peak_mib()}))
