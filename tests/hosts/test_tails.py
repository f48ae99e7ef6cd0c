"""Tails: lines as a terminal has them, no more of them than can be kept, and nothing left on the host."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.hosts import tails
from cockpit.hosts.command_output import LINE_CHARS, OutputBudget, OutputLines
from cockpit.hosts.feed import HostFeed
from cockpit.hosts.tails import HostTail, script
from cockpit.model.clock import Clock
from cockpit.model.events import AccessCounts, AnyEvent, SessionStarted, TailChanged, TailText
from cockpit.model.fold import fold_all
from cockpit.model.host_state import TailPane
from cockpit.model.hosts import HostConfig
from tests.hosts.conftest import DEADLINE, until
from tests.hosts.sshd import Sshd

PLENTY = 10**6


def shown(*pieces: bytes) -> list[str]:
    """The lines on the screen after these pieces."""
    paper, lines = OutputLines(), []
    for piece in pieces:
        printed = paper.take(piece, PLENTY, PLENTY)
        lines = [*(lines[:-1] if printed.continues else lines), *printed.lines]
    rest = paper.rest()
    return [*(lines[:-1] if rest.continues else lines), *rest.lines]


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([b"one\ntwo\n"], ["one", "two"]),
        ([b"one\r\ntwo\r\n"], ["one", "two"]),
        ([b"10 %\r20 %\r100 %"], ["100 %"]),
        ([b"10 %\r", b"20 %\r", b"9\n", b"next\n"], ["90 %", "next"]),
        ([b"a\tb\n"], ["a       b"]),
        ([b"12345678\tb\n"], ["12345678        b"]),
        ([b"abc\b\bX\n"], ["aXc"]),
        ([b"\b\bX\n"], ["X"]),
        ([b"\x1b[1;31mred\x1b[0m plain\n"], ["red plain"]),
        ([b"a long line\r\x1b[Kshort\n"], ["short"]),
        ([b"spl", b"it\n"], ["split"]),
        ([b"caf\xc3", b"\xa9\n"], ["café"]),
        ([b"\x1b[3", b"1mred\n"], ["red"]),
        ([b"caf\xe9 latin\n"], ["caf\ufffd latin"]),
        ([b"\x1b]0;title\x07\n"], ["\x1b]0;title\x07"]),
        ([b"\n\n"], ["", ""]),
        ([b"no end"], ["no end"]),
        ([b"cut \xc3\n"], ["cut \ufffd"]),
    ],
)
def test_lines_are_as_a_terminal_has_them(pieces: list[bytes], lines: list[str]) -> None:
    assert shown(*pieces) == lines


@given(
    st.lists(st.sampled_from([b"ab", b"\n", b"\r", b"\b", b"\t", b"\x1b[31m", b"\x1b[K", "é".encode()]), max_size=40)
)
def test_however_it_comes_in_pieces_it_reads_the_same(pieces: list[bytes]) -> None:
    pieces = [*pieces, b"\n"]
    whole = shown(b"".join(pieces))
    assert shown(*pieces) == whole
    assert shown(*(bytes([byte]) for byte in b"".join(pieces))) == whole


def test_a_very_long_line_is_cut_and_says_so() -> None:
    for line in shown(b"x" * 10**6 + b"\ny\n")[0], shown(*[b"x" * 1000] * 100)[0]:
        assert (len(line), line[-1]) == (LINE_CHARS, "…")
    assert shown(b"x" * 10**6 + b"\rend\n")[0].startswith("end")


def test_more_than_there_is_room_for_is_counted() -> None:
    paper = OutputLines()
    first = paper.take(b"".join(b"%d\n" % number for number in range(100)), 10, PLENTY)
    assert (first.lines, first.skipped) == (tuple(str(number) for number in range(90, 100)), 90)
    second = paper.take(b"a" * 30 + b"\n" + b"b" * 30 + b"\n", 10, 40)
    assert (second.lines, second.skipped) == (("b" * 30,), 1)
    third = paper.take(b"begun", 0, PLENTY)
    assert (third.lines, third.skipped) == ((), 0)
    assert paper.take(b" and done\n", 10, PLENTY).lines == ("begun and done",)


@given(st.lists(st.tuples(st.binary(max_size=60), st.integers(0, 5), st.integers(0, 80)), max_size=20))
def test_every_line_is_shown_or_counted(pieces: list[tuple[bytes, int, int]]) -> None:
    paper, full, skipped = OutputLines(), 0, 0
    for data, lines, chars in pieces:
        printed = paper.take(data + b"|", lines, chars)
        assert len(printed.lines) <= max(lines, 0)
        assert sum(map(len, printed.lines)) <= chars
        full += len(printed.lines) - printed.continues
        skipped += printed.skipped
    ends = b"".join(data for data, _, _ in pieces).count(b"\n")
    assert ends <= full + skipped <= ends + 1


def test_an_allowance_comes_back_with_time() -> None:
    allowance = OutputBudget(10, 2)
    assert allowance.at(0) == 10
    allowance.spend(10)
    assert [allowance.at(0), allowance.at(1), allowance.at(2.5), allowance.at(100)] == [0, 2, 5, 10]


class Tail:
    """A feed with one tail, both running."""

    def __init__(self, command: str, ssh_config: Path | None) -> None:
        self.config = HostConfig(name="web1", ssh="web" if ssh_config else None, interval=0.05, tail=(command,))
        self.events: list[AnyEvent] = []
        clock = Clock()
        self.feed = HostFeed(self.config, clock, self.events.append, ssh_config=ssh_config)
        self.tail = HostTail(self.feed, 0, clock, self.events.append)

    @property
    def texts(self) -> list[TailText]:
        return [event for event in self.events if isinstance(event, TailText)]

    @property
    def counted(self) -> list[AccessCounts]:
        return [event for event in self.events if isinstance(event, AccessCounts)]

    @property
    def changes(self) -> list[TailChanged]:
        return [event for event in self.events if isinstance(event, TailChanged)]

    @property
    def pane(self) -> TailPane:
        begun = SessionStarted(t=0.0, wall=0.0, version="", name="", hosts=(self.config,))
        return fold_all([begun, *self.events]).hosts["web1"].tails[0]

    @property
    def lines(self) -> list[str]:
        return [line.text for line in self.pane.lines]


@asynccontextmanager
async def tailing(command: str, ssh_config: Path | None) -> AsyncIterator[Tail]:
    tail = Tail(command, ssh_config)
    tasks = [asyncio.ensure_future(tail.feed.run()), asyncio.ensure_future(tail.tail.run())]
    try:
        yield tail
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


@pytest.fixture(params=["ssh", "local"])
async def way(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Path | None]:
    """ssh_config of a host, or None for this machine."""
    if request.param == "local":
        yield None
        return
    directory = tmp_path / "sshd"
    directory.mkdir()
    server = await Sshd(directory, noise="echo Welcome; echo '#cockpit tail'").start()
    yield server.ssh_config
    await server.stop()


@pytest.fixture
def mark() -> str:
    """Stands in the command line of what a test has a host run."""
    return uuid.uuid4().hex


def alive(mark: str) -> list[int]:
    """Processes whose command line or environment's shell script holds the mark."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        if mark in " ".join(process.info["cmdline"] or ()) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.info["pid"])
    return found


async def test_requests_of_an_access_log_are_counted_and_few_lines_kept(way: Path | None, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    line = '1.1.1.1 - - [x] "GET / HTTP/1.1" {} 5 "-" "x" 0.010 {}\n'
    log.write_text(line.format(404, "-"))
    async with tailing(f"tail -n 1 -F '{log}'", way) as tail:
        await until(lambda: len(tail.lines) == 1)
        with log.open("a") as file:
            file.write(line.format(200, "HIT") * 900 + line.format(500, "MISS") * 100)
        await until(lambda: sum(event.lines for event in tail.counted) == 1000)
        statuses = sum((Counter(event.statuses) for event in tail.counted), Counter[int]())
        assert statuses == {200: 900, 500: 100}
        assert sum(event.hits for event in tail.counted) == 900
        assert (
            sum(event.latency.count for event in tail.counted) == sum(event.lookups for event in tail.counted) == 1000
        )
        assert len(tail.lines) < 50
        # Silence is a count of 0, not the last rate for ever.
        await until(lambda: bool(tail.pane.counts) and not any(event.lines for event in tail.pane.counts))


async def test_a_log_is_followed(way: Path | None, tmp_path: Path) -> None:
    log = tmp_path / "error log"
    log.write_text("old\n")
    async with tailing(f"tail -n 1 -F '{log}'", way) as tail:
        await until(lambda: tail.lines == ["old"])
        with log.open("a") as file:
            file.write("one\ntwo\thalf")
            file.flush()
            await until(lambda: tail.lines == ["old", "one", "two     half"])
            file.write(" of it\n")
        await until(lambda: tail.lines == ["old", "one", "two     half of it"])
        assert tail.pane.condition == "running"
    assert [change.condition for change in tail.changes][:1] == ["running"]


async def test_error_output_is_shown_and_the_end_said(way: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "FIRST_RETRY", 0.1)
    command = "echo good; echo 'cannot open that' >&2; exit 7"
    async with tailing(command, way) as tail:
        await until(lambda: len(tail.changes) >= 4)
    assert tail.lines[:4] == ["good", "cannot open that"] * 2
    assert tail.changes[1].detail == "exit status 7: cannot open that"
    assert [change.condition for change in tail.changes[:4]] == ["running", "ended"] * 2


async def test_the_environment_is_the_one_that_sar_needs(way: Path | None) -> None:
    async with tailing("echo $LC_ALL $S_COLORS $S_TIME_FORMAT; exec sleep 1000", way) as tail:
        await until(lambda: tail.lines == ["C never ISO"])


async def test_a_flood_is_bounded_and_counted(way: Path | None) -> None:
    async with tailing("yes 'a line of the flood'", way) as tail:
        await until(lambda: len(tail.texts) >= 8)
        texts = tail.texts
    span = texts[-1].t - texts[0].t
    assert sum(text.skipped for text in texts) > 0
    assert tail.pane.skipped == sum(text.skipped for text in texts)
    assert sum(len(text.lines) for text in texts) <= tails.LINES + tails.LINES_PER_SECOND * span + 1
    assert all(later.t - earlier.t >= 0.99 * tails.PACE for earlier, later in itertools.pairwise(texts))


async def test_nothing_is_left_when_the_cockpit_goes(way: Path | None, mark: str) -> None:
    async with tailing(f"sh -c 'echo up; sleep 1000; : {mark}' | cat", way) as tail:
        await until(lambda: tail.lines == ["up"])
        assert alive(mark)
    await until(lambda: not alive(mark))


async def test_nothing_is_left_when_the_connection_is_cut(sshd: Sshd, mark: str) -> None:
    async with tailing(f"sh -c 'echo up; sleep 1000; : {mark}' | cat", sshd.ssh_config) as tail:
        await until(lambda: tail.lines == ["up"])
        first = alive(mark)
        sshd.cut()
        await until(lambda: not set(first) & set(alive(mark)))
        await until(lambda: tail.lines == ["up", "up"])
    await until(lambda: not alive(mark))


async def test_a_login_shell_that_does_not_get_there_is_named(sshd: Sshd) -> None:
    tail = Tail("echo never", sshd.ssh_config)
    feeding = asyncio.ensure_future(tail.feed.run())
    await asyncio.wait_for(tail.feed.up(), DEADLINE)
    sshd.noise = "echo 'no shell for you' >&2; exit 1"
    following = asyncio.ensure_future(tail.tail.run())
    try:
        await until(lambda: tail.changes)
    finally:
        following.cancel()
        feeding.cancel()
        await asyncio.wait([feeding, following])
    assert tail.changes[0].condition == "ended"
    assert "no shell for you" in tail.changes[0].detail


SHELLS = [shell for shell in ("dash", "bash", "busybox sh") if shutil.which(shell.split()[0])]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("leads", [True, False])
def test_every_shell_ends_all_of_it(shell: str, leads: bool, mark: str) -> None:
    """`leads`: the shell leads its process group, as under sshd; where it does not, setsid makes one."""
    line = f"exec {shell} -s" if leads else f"{shell} -s; exit $?"
    host = subprocess.Popen(
        ["/bin/sh", "-c", line],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert host.stdin and host.stdout
    host.stdin.write(script(f"sh -c 'echo up; sleep 1000; : {mark}' | cat").encode())
    host.stdin.flush()
    while host.stdout.readline() != b"up\n":
        assert host.poll() is None
    assert alive(mark)
    host.stdin.close()
    host.stdout.read()
    host.wait(DEADLINE)
    host.stdout.close()
    deadline = time.monotonic() + DEADLINE
    while alive(mark) or in_session(host.pid):
        assert time.monotonic() < deadline, in_session(host.pid)
        time.sleep(0.01)


def in_session(session: int) -> list[str]:
    """Names of the processes of a session that have not ended."""
    names = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                names.append(process.name())
    return names


async def test_counts_of_an_access_log_that_outruns_the_reader_are_late() -> None:
    async with tailing("""yes '1.1.1.1 - - [x] "GET / HTTP/1.1" 200 5'""", None) as tail:
        await until(lambda: any(event.late for event in tail.counted))
