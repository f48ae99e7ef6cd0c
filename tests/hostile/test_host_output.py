"""Hostile output of a host: the result is a recordable reading or a one-line error; hidden processes are null."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, count, repeat

import asyncssh
import pytest
from msgspec.structs import replace

from cockpit.analysis.thresholds import parse_threshold
from cockpit.export.series import series_csv
from cockpit.hosts.probe import frames
from cockpit.hosts.probe.probe import Probe
from cockpit.hosts.shell import LineReader
from cockpit.hosts.ssh.errors import reason
from cockpit.metrics.results import run_result
from cockpit.metrics.values import metric_value
from cockpit.model.errors import HostError
from cockpit.model.events import RunEnded
from cockpit.model.fold.fold import fold_all
from cockpit.model.host.samples import HostConfig
from cockpit.report.encoding import to_json
from cockpit.report.run import run_text
from cockpit.report.run_json import run_json
from cockpit.servers.inventory import parse_inventory
from cockpit.servers.registry import GRAMMARS
from cockpit.tuning.pending import outcome
from tests.hostile.measuring import SEEDS, THOROUGH, growth_below
from tests.hostile.probe_fuzz import FACTS, RUN, Fuzzer, frame
from tests.model.hosts import START, UP, sample

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


@pytest.mark.parametrize("case", HOSTILE)
async def test_invalid_output_is_one_short_error(case: str) -> None:
    old, new, problem = HOSTILE[case]
    error = await read_error(iter([(FACTS + CLOCKS + b"".join(map(frame, range(1, 9)))).replace(old, new)]))
    assert error.startswith("web1: invalid ") and problem in error
    assert len(error) < 300 and "\n" not in error


DIGITS = "9" * 5000


def test_discovery_skips_invalid_numbers() -> None:
    lines = (
        f"process\t{DIGITS}\t1\tapache2\t/usr/sbin/apache2",
        f"process\t1\t{DIGITS}\tapache2\t/usr/sbin/apache2",
        f'listen\t0.0.0.0:{DIGITS}\tusers:(("nginx",pid=1,fd=6))',
        f'listen\t0.0.0.0:80\tusers:(("nginx",pid={DIGITS},fd=6))',
        "process\t7\t1\tnginx\tnginx: master",
    )
    inventory = parse_inventory("\n".join(lines), ())
    assert [process.pid for process in inventory.processes] == [7]
    assert not inventory.listening


def test_failed_undo_with_huge_exit_status_is_failed() -> None:
    found = outcome(f"test {DIGITS} 1 broken\nreload x 2 broken too\n".encode())
    assert [(word, number) for word, number, _ in found.failed] == [("test", 0), ("reload", 0)]


def test_reason_of_ssh_error_is_bounded() -> None:
    assert len(reason(asyncssh.DisconnectError(2, f"[Errno {DIGITS}] {DIGITS}"))) <= 200
    assert reason(OSError(113, "x")) == "no route to host"


def test_setting_with_thousands_of_digits_is_not_number() -> None:
    assert GRAMMARS["apache"].number(f"MinSpareServers {DIGITS}\n".encode(), "MinSpareServers", None) is None


def test_hidden_processes_are_null_with_reason() -> None:
    start = replace(START, hosts=(HostConfig(name="web1", processes=("*",)),))
    samples = [sample(t, hidden=True) for t in (1.0, 2.0)]
    state = fold_all([start, UP, RUN, *samples, RunEnded(t=3.0, run=1, reason="completed")])
    result = run_result(state, 1)
    assert result is not None
    data = json.loads(to_json(run_json(result)))
    for part in (data, *data["segments"]):
        assert part["missing"] == {"web1": {"processes": "hidepid"}}
        metrics = {name: value for name, value in part["hosts"]["web1"].items() if name.startswith("processes.")}
        assert {"processes.count", "processes.spawned", "processes.rss", "processes.defunct"} < set(metrics)
        assert set(metrics.values()) == {None}
        assert part["hosts"]["web1"]["memory.total"] > 0
    assert "processes are hidden from this user by /proc (hidepid)" in run_text(result)
    assert parse_threshold("web1.processes.count<10") and metric_value(result, "web1.processes.count") is None
    titles, *rows = (line.rstrip().split(",") for line in series_csv(state))
    processes = [column for column, title in enumerate(titles) if ".processes." in title]
    read = [row for row in rows if row[titles.index("web1.memory.total_bytes")]]
    assert processes and read and {row[column] for row in read for column in processes} == {""}
