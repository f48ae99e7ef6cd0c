"""CPU profiles: samples folded on the host by a real awk, a stand-in for perf over a real SSH server, failures."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import pytest

from cockpit.hosts.stacks import profiler
from cockpit.hosts.stacks import script as script_module
from cockpit.hosts.stacks.parse import HostSlice, SliceReader
from cockpit.hosts.stacks.profiler import Profiler
from cockpit.hosts.stacks.script import script
from cockpit.model.host.samples import HostConfig
from cockpit.model.stacks import MAX_DEPTH, MAX_STACK, MAX_STACKS, MAX_TEXT, ProfilerChanged, StackSlice
from tests.data import data_of
from tests.hosts.sshd import Sshd
from tests.hosts.test_tails import processes_with
from tests.hosts.watching import Watch
from tests.waiting import DEADLINE, programs, until

DATA = data_of(__file__)

FOLDER = (files("cockpit.hosts.stacks") / "fold.awk").read_text()
# A perf that prints the samples of the file PERF_SAMPLES as `perf script`, and otherwise behaves like perf.
PERF = DATA["perf"]
# A py-spy that prints the lines of the file SPY_STACKS, and otherwise behaves like py-spy.
PY_SPY = DATA["py_spy"]
SPIED = 'process 1:"/usr/bin/python3 -c \'a; b\' --key=secret";process 2:"x";main (app.py);render (app.py) 3\n'


def sample(t: float, *frames: str, name: str = "web", pid: int = 4_194_300) -> str:
    """A sample as `perf script` prints it; frames are `ADDRESS FUNCTION (MODULE)`, the innermost first."""
    lines = [f"{name:>16} {pid} {t:.6f}: ", *(f"\t{frame}" for frame in frames), ""]
    return "\n".join(lines) + "\n"


def folded(samples: str, awk: str = "awk", status: int = 0, **settings: str) -> list[HostSlice]:
    """The slices of samples, folded by this awk, which ends with this exit status."""
    values = {
        "source": "cpu-clock",
        "clock_ticks": "100",
        "parent": str(os.getpid()),
        "everywhere": "",
        "seconds": "5",
        "most_stacks": str(MAX_STACKS),
        "most_text": str(MAX_TEXT),
        "most_length": "4000",
        "most_frames": "120",
        "patterns": "web",
        "regex": "",
        "roots": "",
    }
    environment = {**os.environ, "LC_ALL": "C", **values, **settings}
    done = subprocess.run([*awk.split(), FOLDER], input=samples.encode(), env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (status, b"")
    reader = SliceReader()
    parts = [part for line in done.stdout.splitlines(keepends=True) if (part := reader.feed(line))]
    for part in parts:
        part.event("web1", 49, 1000.0)
    return parts


@pytest.mark.parametrize("awk", programs("awk", "mawk", "gawk", "busybox awk"))
def test_samples_are_folded_from_outermost_to_innermost(awk: str) -> None:
    kernel = "ffffffff821f39e5 copy_page ([kernel.kallsyms])"
    samples = [
        sample(100.0, kernel, "  1812 fork (/usr/lib/x86_64-linux-gnu/libc.so.6)", "55d0 main (/usr/sbin/web)"),
        sample(100.1, kernel, "  1812 fork (/usr/lib/x86_64-linux-gnu/libc.so.6)", "55d0 main (/usr/sbin/web)"),
        sample(
            101.0, "18a8 [unknown] (/usr/lib/libz.so.1 (deleted))", "1 [unknown] ([unknown])", "2 [unknown] ([unknown])"
        ),
        sample(102.0, "18a8 std::foo(int, char const*) (/a b/x.so)", "1 (anonymous namespace)::f (/x)", name="a b"),
        sample(103.0),
        sample(104.0, "18a8 a;b\x1b[2Jc\x07é (/x)"),
        sample(106.0, "18a8 next (/x)"),
        sample(107.5, "18a8 next (/x)"),
    ]
    first, second = folded("".join(samples), awk)
    assert first.stacks == {
        "web;main;fork;copy_page_[k]": 2,
        "web;[unknown];[libz.so.1]": 1,
        "a b;(anonymous namespace)::f;std::foo(int, char const*)": 1,
        "web": 1,
        "web;a:b?[2Jc???": 1,
    }
    assert (first.start, first.end, first.samples, first.other) == (100.0, 105.0, 6, 0)
    assert (second.start, second.end, second.stacks) == (105.0, 107.5, {"web;next": 2})


@pytest.mark.parametrize("awk", programs("awk", "mawk", "busybox awk"))
def test_a_slice_is_bounded_and_its_counts_add_up(awk: str) -> None:
    many = [sample(100 + at / 4000, f"1 f{at} (/x)") for at in range(3_000)]
    often = [sample(101.0, "1 often (/x)")] * 50
    deep = [sample(102.0, *(f"{at:x} frame{at} (/x)" for at in range(500)))]
    long = [sample(103.0, f"1 {'x' * 50_000} (/x)", *(f"1 {'y' * 300}{at} (/x)" for at in range(60)))]
    part, _ = folded("".join([*many, *often, *deep, *long, sample(106.0), sample(108.0)]), awk)
    assert len(part.stacks) == MAX_STACKS
    assert part.stacks["web;often"] == 50
    assert part.samples == 3_052 == sum(part.stacks.values()) + part.other
    assert max(map(len, part.stacks)) <= MAX_STACK
    assert max(stack.count(";") for stack in part.stacks) < MAX_DEPTH
    (small,) = folded("".join([*many, sample(103.0)]), awk, most_text="2000")
    assert sum(map(len, small.stacks)) <= 2000
    assert small.samples == 3_001 == sum(small.stacks.values()) + small.other


def test_samples_of_other_processes_are_left_out() -> None:
    own = Path("/proc/self/stat").read_text().split("(")[1].split(")")[0]
    samples = "".join(
        [
            sample(100.0, "1 a (/x)"),
            # A thread with another name counts by the name of its process.
            sample(100.1, "1 b (/x)", name="thread", pid=os.getpid()),
            sample(100.2, "1 c (/x)", name="web-2", pid=4_194_298),
            sample(100.3, "1 d (/x)", name="database", pid=4_194_299),
            sample(101.5, "1 e (/x)", name="swapper", pid=0),
        ]
    )
    (part,) = folded(samples, everywhere="y", patterns=f"web\n{own}", regex="^web-.$")
    assert part.stacks == {"web;a": 1, "thread;b": 1, "web-2;c": 1}
    (part,) = folded(samples, everywhere="y", patterns=own, roots=str(os.getppid()))
    assert part.stacks == {"thread;b": 1}
    (part,) = folded(samples, everywhere="y", patterns=own, roots="4194301")
    assert part.stacks == {}


def test_a_pause_is_no_row_of_empty_slices() -> None:
    parts = folded("".join(sample(t, "1 a (/x)") for t in (100.0, 112.0, 9000.0, 9006.0)))
    assert [part.samples for part in parts] == [1, 0, 2, 1]


@pytest.mark.parametrize("awk", programs("awk", "mawk", "gawk", "busybox awk"))
def test_stacks_of_profilers_of_a_language_are_bounded_and_neutralised(awk: str, tmp_path: Path) -> None:
    lines = [
        *("py-spy> Sampling process 5\n", SPIED, SPIED, "\x1b[2J;a\x07é 2\n", " 1\n", "no count\n", "many 1234567\n"),
        *(
            "Main.run_[j];Main.f_[i];[vdso]_[0];do_sys_open_[k] 4\n",
            f"{'deep;' * 2000}leaf 1\n",
            f"{'x' * 200_000} 1\n",
        ),
        *(f"f{at} 1\n" for at in range(6 * MAX_STACKS)),
    ]
    (tmp_path / "lines").write_text("".join(lines))
    # The second run fails, and the program ends.
    command = f"[ -e {tmp_path}/lines ] && cat {tmp_path}/lines && rm {tmp_path}/lines && sleep 1.1 && echo +ended"
    with subprocess.Popen(["sleep", "1000"]) as watcher:
        settings = {"stacks": command, "name": "a;b", "expected": "1", "watcher": str(watcher.pid), "source": "py-spy"}
        (part,) = folded("", awk, status=1, **settings)
    assert watcher.returncode == -signal.SIGTERM
    assert part.source == "py-spy"
    assert part.samples == 15 + 6 * MAX_STACKS == sum(part.stacks.values()) + part.other
    frequent = {stack: count for stack, count in part.stacks.items() if count > 1}
    assert frequent == {
        "a:b;main (app.py);render (app.py)": 6,
        "a:b;?[2J;a???": 2,
        "a:b;Main.run;Main.f;[vdso];do_sys_open_[k]": 4,
    }
    assert max(map(len, part.stacks)) <= MAX_STACK
    assert max(stack.count(";") for stack in part.stacks) < MAX_DEPTH


def test_samples_of_a_short_run_come_with_its_time(tmp_path: Path) -> None:
    """Otherwise a slice has more samples than its processes can have had."""
    times = tmp_path / "times"
    times.write_text("0.6\n1.1\n")
    command = f"time=$(head -n 1 {times}); sed -i 1d {times}; [ $time ] && sleep $time && echo 'f 3' && echo +ended"
    with subprocess.Popen(["sleep", "1000"]) as watcher:
        settings = {"stacks": command, "name": "a", "expected": "1", "watcher": str(watcher.pid), "source": "py-spy"}
        parts = folded("", status=1, **settings)
    assert sum(part.samples for part in parts) == 6
    # On a busy machine the first run is long enough for a slice of its own.
    assert all(part.end - part.start > {3: 0.55, 6: 1.6}[part.samples] for part in parts)


@pytest.mark.parametrize(
    "lines",
    [
        b"#cockpit slice 1 2 3\n",
        b"#cockpit slice 1 2 3 magic 1 0 0\n",
        b"#cockpit slice a 2 3 cycles 1 0 0\n",
        b"#cockpit slice 1 2 3 cycles 1 0 0\nfew a;b\n",
        b"#cockpit slice 1 2 3 cycles 2 0 0\n1 a;b\n#cockpit end\n",
        b"#cockpit slice 1 2 3 cycles 1 0 nan\n1 a;b\n#cockpit end\n",
        b"#cockpit slice 1 inf 3 cycles 1 0 0\n1 a;b\n#cockpit end\n",
        b"#cockpit slice 2 1 3 cycles 1 0 0\n1 a;b\n#cockpit end\n",
        b"#cockpit slice 1 2 3 cycles 0 0 0\n-1 a;b\n1 c\n#cockpit end\n",
        b"#cockpit slice 1 2 3 cycles 9 0 0\n" + b"1 a\n" * (MAX_STACKS + 1),
    ],
)
def test_invalid_slices_of_a_host_are_refused(lines: bytes) -> None:
    reader = SliceReader()
    with pytest.raises(ValueError, match=r"."):
        for line in lines.splitlines(keepends=True):
            if part := reader.feed(line):
                part.event("web1", 49, 100.0)


def test_escape_sequences_of_a_host_are_neutralised() -> None:
    reader = SliceReader()
    for line in (
        b"noise\n",
        b"#cockpit end\n",
        b"#cockpit slice 1 2 3 cycles 3 0 0.5\n",
        b"2 a;\x1b[2J\n",
        b"1 a;\x07[2J\n",
    ):
        assert reader.feed(line) is None
    part = reader.feed(b"#cockpit end\n")
    assert part is not None
    assert part.event("web1", 49, 100.0).stacks == {"a;·[2J": 3}


class Profiled(Watch):
    """A host with a running profiler."""

    def __init__(self, config: HostConfig, ssh_config: Path | None) -> None:
        super().__init__(config, ssh_config, None)
        self.profiler = Profiler(self.feed, self.clock, self.events.append)

    @property
    def reports(self) -> list[tuple[str, str]]:
        return [(event.condition, event.detail) for event in self.of(ProfilerChanged)]

    @property
    def slices(self) -> list[StackSlice]:
        return self.of(StackSlice)


@pytest.fixture
def environment(tmp_path: Path, sshd: Sshd) -> Mapping[str, str]:
    """The environment of the host, with the stand-in for perf."""
    programs_of_host = tmp_path / "bin"
    programs_of_host.mkdir()
    for name, text in {"perf": PERF, "py-spy": PY_SPY}.items():
        (programs_of_host / name).write_text(text)
        (programs_of_host / name).chmod(0o755)
    (tmp_path / "stacks").write_text(SPIED)
    uptime = float(Path("/proc/uptime").read_text().split()[0]) if sys.platform == "linux" else 0.0
    times = (uptime - 12 + at for at in range(12))
    server = linked(tmp_path, "web", "/bin/sh")
    (tmp_path / "samples").write_text("".join(sample(t, "1 work (/x)", name=server.name) for t in times))
    sshd.environment["SERVER"] = str(server)
    sshd.environment |= {"PATH": f"{programs_of_host}:{os.environ['PATH']}", "PERF_SAMPLES": str(tmp_path / "samples")}
    sshd.environment["SPY_STACKS"] = str(tmp_path / "stacks")
    return sshd.environment


def linked(folder: Path, name: str, program: str) -> Path:
    """A program with a name that no process outside of this test has."""
    link = folder / f"{name}-{os.getpid()}"
    link.symlink_to(Path(program).resolve())
    return link


def native(sshd: Sshd) -> Sequence[str]:
    """The command of a server that is no program of a language with its own profiler."""
    return (sshd.environment["SERVER"], "-c", "read line")


@asynccontextmanager
async def profiling(sshd: Sshd, hz: int = 49, command: Sequence[str] = (), also: str = "") -> AsyncIterator[Profiled]:
    """A host with this command as its server (default: `native`), beside other processes with the name `also`."""
    command = command or native(sshd)
    process = subprocess.Popen(command, stdin=subprocess.PIPE)  # noqa: ASYNC220
    names = (Path(command[0]).name, *([also] if also else []))
    config = HostConfig(name="web1", ssh="web", interval=0.05, processes=names, profile=hz)
    watch = Profiled(config, sshd.ssh_config)
    # Slices of a time before the session are left out.
    watch.clock.origin -= 100
    tasks = [asyncio.ensure_future(watch.feed.run()), asyncio.ensure_future(watch.profiler.run())]
    try:
        yield watch
        assert not any(task.done() for task in tasks)
    finally:
        await watch.profiler.close()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        process.kill()
        process.communicate()


async def test_slices_arrive_until_profiling_is_switched_off(
    sshd: Sshd, environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiler, "LAST_SLICE", DEADLINE)
    async with profiling(sshd) as watch:
        await until(lambda: len(watch.slices) == 2)
        watch.profiler.switch(active=False)
        await until(lambda: watch.reports == [("running", ""), ("stopped", "")])
        last = watch.slices[-1]
        assert not processes_with(environment["PERF_SAMPLES"])
    assert [part.samples for part in watch.slices] == [5, 5, 2]
    name = Path(environment["SERVER"]).name
    assert all(part.stacks == {f"{name};work": part.samples} and part.hz == 49 for part in watch.slices)
    assert last.t <= watch.clock.now()
    assert abs(last.t - watch.clock.now()) < 60
    assert watch.host().slices == tuple(watch.slices)


async def test_profiling_can_be_switched_on_later(sshd: Sshd, environment: Mapping[str, str]) -> None:
    async with profiling(sshd, hz=0) as watch:
        await watch.sampled(3)
        assert watch.reports == []
        watch.profiler.switch(active=True)
        await until(lambda: watch.slices)


@pytest.mark.parametrize(
    ("settings", "detail"),
    [
        ({"PERF_ERROR": "Error:\nNo permission: check /proc/sys/kernel/perf_event_paranoid\n"}, "sysctl kernel.perf_"),
        ({"PERF_ERROR": "event syntax \x1b[2J error"}, "perf ended: event syntax ·[2J error"),
        ({"PERF_ENDS": "y"}, "perf ended"),
    ],
)
async def test_failures_name_the_cause(
    sshd: Sshd, environment: dict[str, str], settings: dict[str, str], detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiler, "PAUSES", 1)
    environment |= settings
    async with profiling(sshd) as watch:
        await until(lambda: len(watch.reports) >= 4)
    assert [condition for condition, _ in watch.reports[:4]] == ["running", "failed"] * 2
    assert detail in watch.reports[1][1]


async def test_missing_perf_names_the_package(
    sshd: Sshd, environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        profiler,
        "script",
        lambda *known: script(*known).replace("PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin", "PATH=/missing"),
    )
    async with profiling(sshd) as watch:
        await until(lambda: watch.reports)
    assert watch.reports[0][0] == "failed"
    assert "apt install linux-perf" in watch.reports[0][1]


async def test_a_lost_connection_leaves_no_process(sshd: Sshd, environment: Mapping[str, str]) -> None:
    async with profiling(sshd) as watch:
        await until(lambda: watch.slices)
        first = processes_with(str(Path(environment["PERF_SAMPLES"]).parent / "bin"))
        assert first
        sshd.cut()
        await until(lambda: not set(first) & set(processes_with("perf")))
        # How many slices arrived before the cut is not known; the second program starts after a pause.
        await until(lambda: len(watch.reports) > 1)
        before = len(watch.slices)
        await until(lambda: len(watch.slices) > before)
        assert [condition for condition, _ in watch.reports] == ["running", "failed", "running"]


@pytest.fixture
def python(tmp_path: Path) -> Sequence[str]:
    """The command of a Python server with a name that no other process has."""
    return (str(linked(tmp_path, "app", sys.executable)), "-c", "input()")


async def test_python_is_profiled_by_py_spy(
    sshd: Sshd, environment: Mapping[str, str], python: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_module, "SLICE_SECONDS", 1.0)
    async with profiling(sshd, command=python) as watch:
        await until(lambda: len(watch.slices) >= 2)
        watch.profiler.switch(active=False)
        await until(lambda: watch.reports == [("running", ""), ("stopped", "")])
        await until(lambda: not processes_with(str(Path(environment["SPY_STACKS"]).parent / "bin")))
    for part in watch.slices:
        name = Path(python[0]).name
        assert (part.source, part.stacks) == ("py-spy", {f"{name};main (app.py);render (app.py)": 3})
        assert 0.9 < part.t - part.start < 60


@pytest.mark.parametrize(
    ("settings", "also", "detail"),
    [
        ({"SPY_ERROR": "Permission Denied: Try running again\nmore"}, "", "not permitted: log in as root, set sudo"),
        ({"SPY_ERROR": "Error: no name\nCaused by:\nPermission denied (os error 13)"}, "", "py-spy is not permitted"),
        ({"SPY_ERROR": "Error: \x1b[2J"}, "", "py-spy cannot be used: Error: ·[2J"),
        ({}, "native", "add a [[host]] for the others"),
    ],
)
async def test_native_frames_name_the_cause(
    sshd: Sshd,
    environment: dict[str, str],
    python: Sequence[str],
    settings: dict[str, str],
    also: str,
    detail: str,
) -> None:
    environment |= settings
    also = also and Path(environment["SERVER"]).name
    with subprocess.Popen(native(sshd), stdin=subprocess.PIPE) as other:  # noqa: ASYNC220
        try:
            async with profiling(sshd, command=python, also=also) as watch:
                await until(lambda: watch.slices)
        finally:
            other.kill()
    assert {part.source for part in watch.slices} == {"cpu-clock"}
    ((_, text),) = {report for report in watch.reports if report[0] == "running"}
    assert text.startswith("no functions of Python: py-spy ")
    assert detail in text
    assert watch.reports[-1] == ("stopped", text), "known in reports"


async def test_py_spy_that_is_missing_is_named(sshd: Sshd, environment: dict[str, str], python: Sequence[str]) -> None:
    (Path(environment["SPY_STACKS"]).parent / "bin" / "py-spy").unlink()
    async with profiling(sshd, command=python) as watch:
        await until(lambda: watch.slices)
    assert watch.slices[0].source == "cpu-clock"
    assert watch.reports[0][1] == "no functions of Python: py-spy is not on the PATH there: pip install py-spy"


async def test_a_killed_py_spy_is_started_again(
    sshd: Sshd, environment: dict[str, str], python: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiler, "PAUSES", 1)
    environment["SPY_ENDS"] = "y"
    async with profiling(sshd, command=python) as watch:
        await until(lambda: len(watch.reports) >= 4)
    assert [condition for condition, _ in watch.reports[:4]] == ["running", "failed"] * 2
    assert watch.reports[1][1].startswith("py-spy ended")


async def test_a_restarted_server_is_profiled_again(
    sshd: Sshd, environment: Mapping[str, str], python: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a failure, and the profiler of a language reads the new process."""
    stacks = Path(environment["SPY_STACKS"])
    monkeypatch.setattr(script_module, "SLICE_SECONDS", 1.0)
    async with profiling(sshd, command=python) as watch:
        await until(lambda: watch.slices)
        (before,) = watch.host().processes
        stacks.unlink()  # noqa: ASYNC240
        os.kill(before.process.pid, signal.SIGKILL)
        with subprocess.Popen(python, stdin=subprocess.PIPE) as process:  # noqa: ASYNC220
            stacks.write_text("new (app.py) 1\n")  # noqa: ASYNC240
            await until(lambda: any("new (app.py)" in stack for stack in watch.slices[-1].stacks))
            process.kill()
    assert [condition for condition, _ in watch.reports] == ["running", "stopped"]
