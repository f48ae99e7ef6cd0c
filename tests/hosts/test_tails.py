"""Tails: lines as on a terminal, bounded output, no leftover processes on the host."""

import asyncio
import itertools
import os
import subprocess
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.hosts import tails
from cockpit.hosts.command_output import LINE_CHARS, OutputBudget, OutputLines
from cockpit.hosts.tails import HostTail, script
from cockpit.model.events import AccessCounts, TailChanged, TailText
from cockpit.model.host.samples import HostConfig
from cockpit.model.host.state import TailPane
from tests.hosts.sshd import Sshd
from tests.hosts.watching import Watch
from tests.waiting import programs, until, wait_until

PLENTY = 10**6


def screen_lines(*chunks: bytes) -> list[str]:
    """The lines on the screen after these chunks of output."""
    output, lines = OutputLines(), []
    for printed in (*(output.feed(chunk, PLENTY, PLENTY) for chunk in chunks), output.rest()):
        lines = [*(lines[:-1] if printed.continues else lines), *printed.lines]
    return lines


@pytest.mark.parametrize(
    ("chunks", "lines"),
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
def test_control_characters_are_rendered_as_in_terminal(chunks: list[bytes], lines: list[str]) -> None:
    assert screen_lines(*chunks) == lines


@given(
    st.lists(st.sampled_from([b"ab", b"\n", b"\r", b"\b", b"\t", b"\x1b[31m", b"\x1b[K", "é".encode()]), max_size=40)
)
def test_chunking_does_not_change_lines(chunks: list[bytes]) -> None:
    chunks = [*chunks, b"\n"]
    whole = screen_lines(b"".join(chunks))
    assert screen_lines(*chunks) == whole
    assert screen_lines(*(bytes([byte]) for byte in b"".join(chunks))) == whole


def test_long_line_is_truncated_with_ellipsis() -> None:
    for line in screen_lines(b"x" * 10**6 + b"\ny\n")[0], screen_lines(*[b"x" * 1000] * 100)[0]:
        assert (len(line), line[-1]) == (LINE_CHARS, "…")
    assert screen_lines(b"x" * 10**6 + b"\rend\n")[0].startswith("end")


def test_excess_lines_are_counted() -> None:
    output = OutputLines()
    first = output.feed(b"".join(b"%d\n" % number for number in range(100)), 10, PLENTY)
    assert (first.lines, first.skipped) == (tuple(str(number) for number in range(90, 100)), 90)
    second = output.feed(b"a" * 30 + b"\n" + b"b" * 30 + b"\n", 10, 40)
    assert (second.lines, second.skipped) == (("b" * 30,), 1)
    third = output.feed(b"begun", 0, PLENTY)
    assert (third.lines, third.skipped) == ((), 0)
    assert output.feed(b" and done\n", 10, PLENTY).lines == ("begun and done",)


@given(st.lists(st.tuples(st.binary(max_size=60), st.integers(0, 5), st.integers(0, 80)), max_size=20))
def test_every_line_is_shown_or_counted_as_skipped(chunks: list[tuple[bytes, int, int]]) -> None:
    output, shown, skipped = OutputLines(), 0, 0
    for data, lines, chars in chunks:
        printed = output.feed(data + b"|", lines, chars)
        assert len(printed.lines) <= max(lines, 0)
        assert sum(map(len, printed.lines)) <= chars
        shown += len(printed.lines) - printed.continues
        skipped += printed.skipped
    ends = b"".join(data for data, _, _ in chunks).count(b"\n")
    assert ends <= shown + skipped <= ends + 1


def test_output_budget_refills_over_time() -> None:
    allowance = OutputBudget(10, 2)
    assert allowance.at(0) == 10
    allowance.spend(10)
    assert [allowance.at(0), allowance.at(1), allowance.at(2.5), allowance.at(100)] == [0, 2, 5, 10]


class Tail(Watch):
    """A feed with one tail."""

    def __init__(self, command: str, ssh_config: Path | None, via: str = "") -> None:
        ssh = "web" if ssh_config else None
        super().__init__(HostConfig(name="web1", ssh=ssh, via=via, interval=0.05, tail=(command,)), ssh_config, None)
        self.tail = HostTail(self.feed, 0, self.clock, self.events.append)

    @property
    def tail_changes(self) -> list[TailChanged]:
        return self.of(TailChanged)

    @property
    def pane(self) -> TailPane:
        return self.host().tails[0]

    @property
    def lines(self) -> list[str]:
        return [line.text for line in self.pane.lines]


@asynccontextmanager
async def tailing(command: str, ssh_config: Path | None, via: str = "") -> AsyncIterator[Tail]:
    tail = Tail(command, ssh_config, via)
    tasks = [asyncio.ensure_future(tail.feed.run()), asyncio.ensure_future(tail.tail.run())]
    try:
        yield tail
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@pytest.fixture
def marker() -> str:
    """Unique text for command lines, to find the processes of a test."""
    return uuid.uuid4().hex


def processes_with(marker: str) -> list[int]:
    """PIDs of processes with the marker in their command line."""
    return [
        process.info["pid"]
        for process in psutil.process_iter(["pid", "cmdline", "status"])
        if marker in " ".join(process.info["cmdline"] or ()) and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


async def test_access_log_requests_are_counted_few_lines_kept(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    line = '1.1.1.1 - - [x] "GET / HTTP/1.1" {} 5 "-" "x" 0.010 {}\n'
    log.write_text(line.format(404, "-"))
    async with tailing(f"tail -n 1 -F '{log}'", None) as tail:
        await until(lambda: len(tail.lines) == 1)
        with log.open("a") as file:
            file.write(line.format(200, "HIT") * 900 + line.format(500, "MISS") * 100)
        await until(lambda: sum(event.lines for event in tail.of(AccessCounts)) == 1000)
        statuses = sum((Counter(event.statuses) for event in tail.of(AccessCounts)), Counter[int]())
        assert statuses == {200: 900, 500: 100}
        assert sum(event.hits for event in tail.of(AccessCounts)) == 900
        assert (
            sum(event.latency.count for event in tail.of(AccessCounts))
            == sum(event.lookups for event in tail.of(AccessCounts))
            == 1000
        )
        assert len(tail.lines) < 50
        # Without output the count is 0, not the last rate.
        await until(lambda: bool(tail.pane.counts) and not any(event.lines for event in tail.pane.counts))


async def test_log_is_followed(sshd: Sshd, tmp_path: Path) -> None:
    sshd.noise = "echo Welcome; echo '#cockpit tail'"
    log = tmp_path / "error log"
    log.write_text("old\n")
    command = f"echo $LC_ALL $S_COLORS $S_TIME_FORMAT; tail -n 1 -F '{log}'"
    before = ["C never ISO", "old"]
    async with tailing(command, sshd.ssh_config) as tail:
        await until(lambda: tail.lines == before)
        with log.open("a") as file:
            file.write("one\ntwo\thalf")
            file.flush()
            await until(lambda: tail.lines == [*before, "one", "two     half"])
            file.write(" of it\n")
        await until(lambda: tail.lines == [*before, "one", "two     half of it"])
        assert tail.pane.condition == "running"
    assert [change.condition for change in tail.tail_changes][:1] == ["running"]


async def test_stderr_and_exit_status_are_shown(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "FIRST_RETRY", 0.1)
    command = "echo good; echo 'cannot open that' >&2; exit 7"
    async with tailing(command, sshd.ssh_config) as tail:
        await until(lambda: len(tail.tail_changes) >= 4)
    assert tail.lines[:4] == ["good", "cannot open that"] * 2
    assert tail.tail_changes[1].detail == "exit status 7: cannot open that"
    assert [change.condition for change in tail.tail_changes[:4]] == ["running", "ended"] * 2


async def test_unfinished_last_line_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("LINES", "LINES_PER_SECOND"):
        monkeypatch.setattr(tails, limit, 0)
    async with tailing("printf 'first\nlast'", None) as tail:
        await until(lambda: len(tail.tail_changes) >= 2)
    assert tail.lines == ["last"]


async def test_output_flood_is_bounded_and_counted() -> None:
    async with tailing("yes 'a line of the flood'", None) as tail:
        await until(lambda: len(tail.of(TailText)) >= 4)
        texts = tail.of(TailText)
        skipped = tail.pane.skipped
    span = texts[-1].t - texts[0].t
    assert 0 < sum(text.skipped for text in texts) <= skipped
    assert sum(len(text.lines) for text in texts) <= tails.LINES + tails.LINES_PER_SECOND * span + 1
    assert all(later.t - earlier.t >= 0.99 * tails.PACE for earlier, later in itertools.pairwise(texts))


@pytest.mark.parametrize("over_ssh", [True, False])
async def test_cancelled_tail_leaves_no_process(sshd: Sshd, marker: str, over_ssh: bool) -> None:
    command = f"sh -c 'echo up; sleep 1000; : {marker}' | cat"
    async with tailing(command, sshd.ssh_config if over_ssh else None) as tail:
        await until(lambda: tail.lines == ["up"])
        assert processes_with(marker)
    await until(lambda: not processes_with(marker))


async def test_lost_connection_leaves_no_process(sshd: Sshd, marker: str) -> None:
    async with tailing(f"sh -c 'echo up; sleep 1000; : {marker}' | cat", sshd.ssh_config) as tail:
        await until(lambda: tail.lines == ["up"])
        first = processes_with(marker)
        sshd.cut()
        await until(lambda: not set(first) & set(processes_with(marker)))
        await until(lambda: tail.lines == ["up", "up"])
    await until(lambda: not processes_with(marker))


async def test_failed_login_shell_is_reported(sshd: Sshd) -> None:
    tail = Tail("echo never", sshd.ssh_config)
    feeding = asyncio.ensure_future(tail.feed.run())
    await tail.feed.up()
    sshd.noise = "echo 'no shell for you' >&2; exit 1"
    following = asyncio.ensure_future(tail.tail.run())
    try:
        await until(lambda: tail.tail_changes)
    finally:
        following.cancel()
        feeding.cancel()
        await asyncio.wait([feeding, following])
    assert tail.tail_changes[0].condition == "ended"
    assert "no shell for you" in tail.tail_changes[0].detail


SHELLS = programs("sh", "bash", "busybox sh")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("is_leader", [True, False])
def test_all_processes_end_under_every_shell(shell: str, is_leader: bool, marker: str) -> None:
    """`is_leader`: the shell leads its process group, as under sshd; otherwise setsid creates a group."""
    line = f"exec {shell} -s" if is_leader else f"{shell} -s; exit $?"
    host = started(["/bin/sh", "-c", line], script(f"sh -c 'echo up; sleep 1000; : {marker}' | cat"), b"up\n")
    assert processes_with(marker)
    host.communicate()
    wait_until(lambda: not processes_with(marker) and not in_session(host.pid))


def started(command: Sequence[str], program: str, ready: bytes) -> subprocess.Popen[bytes]:
    """Run a program in a shell, and wait for a line that starts with `ready`."""
    host = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert host.stdin and host.stdout
    host.stdin.write(program.encode())
    host.stdin.flush()
    while not host.stdout.readline().startswith(ready):
        assert host.poll() is None
    return host


def in_session(session: int) -> list[str]:
    """Names of the running processes of a session."""
    names = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                names.append(process.name())
    return names


async def test_counts_are_late_if_log_outruns_reader() -> None:
    async with tailing("""yes '1.1.1.1 - - [x] "GET / HTTP/1.1" 200 5'""", None) as tail:
        await until(lambda: any(event.late for event in tail.of(AccessCounts)))
