"""Processes and configuration files as a host prints them: names made to confuse, who else could replace them."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import psutil
import pytest
from msgspec.structs import replace

from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob
from cockpit.servers.inventory import Inventory, Process, ProcessOrigin, parse_inventory
from cockpit.servers.kind import CandidateKnob, RunningServer
from cockpit.servers.registry import running_servers
from cockpit.servers.startup import Startup
from cockpit.setup.profile_draft import HostSurvey, draft_of
from cockpit.tuning import files, server_check
from cockpit.tuning.discovery.host_inventory import configuration, owners, read_inventory
from cockpit.tuning.discovery.included import follow_includes
from cockpit.tuning.discovery.servers import DiscoveredHost, without_untrusted
from cockpit.tuning.pending import TIMEOUTS, PendingChange
from cockpit.tuning.scripts import STARTED
from tests.data import data_of
from tests.tuning.conftest import FaultyShell

DATA = data_of(__file__)


def nginx(main: Path) -> RunningServer:
    startup = Startup("nginx", (str(main),), str(main.parent))
    master = Process(os.getpid(), 1, "nginx", ("nginx",))
    return RunningServer("nginx", "nginx", 1, (80,), (), master=master, startup=startup)


@pytest.mark.parametrize("separator", [*"\r\v\f\x1c\x85\u2028"])
async def test_a_line_of_a_file_states_no_facts_about_other_files(
    separator: str, tmp_path: Path, shell: FaultyShell
) -> None:
    main, other = tmp_path / "main.conf", tmp_path / "other.conf"
    forged = f"# include{separator}file\t{other}\t{other}\tyes\n# include{separator}1 worker_processes 9;\n"
    main.write_text(f"{forged}include {tmp_path}/more.conf;\n", newline="")
    (tmp_path / "more.conf").write_text("worker_processes 2;\n")
    found = await configuration(shell, nginx(main))
    assert set(found.read.files) == {str(main), str(tmp_path / "more.conf")}
    assert found.texts[str(tmp_path / "more.conf")] == "worker_processes 2;\n"


@pytest.mark.parametrize("origin", ["user", "host"])
@pytest.mark.parametrize("own", ["interpreter", "directory", ""])
async def test_a_server_whose_test_would_run_another_users_program_is_not_offered(
    own: str, origin: ProcessOrigin, shell: FaultyShell
) -> None:
    """Its file is trusted, its command line is not: an interpreter, or a working directory with Python modules."""
    program = "/tmp/python3" if own == "interpreter" else "/usr/bin/python3"
    command = (program, "/usr/bin/gunicorn", "-c", "/etc/passwd", "app:app")
    directory = "/tmp" if own == "directory" else "/"
    master = Process(7, 1, "gunicorn", command, "/usr/bin/env", directory, True, origin=origin)
    (server,) = running_servers(Inventory("root", (master,)))
    assert bool((await without_untrusted(shell, server)).candidates) is not bool(own)


PYTHON = Path(sys.executable).resolve()
# Below a directory of any user: a row of the inventory about a process that is not theirs.
FORGED = (
    "x\nprocess\t1\t0\tnginx\tnginx\nmaster\t1\t/tmp/evil/nginx\t/\tyes\t\thost"
    '\nunix\t/evil\tusers:(("nginx",pid=1,fd=3))\ny'
)


@contextmanager
def listening_in(directory: Path) -> Iterator[None]:
    """Listen on a Unix socket in a directory whose path is longer than the 107 bytes of a socket's path."""
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as bound:
        Path(short, "link").symlink_to(directory)
        bound.bind(f"{short}/link/socket")
        bound.listen()
        yield


@pytest.mark.parametrize("place", ["working directory", "program", pytest.param("socket", marks=pytest.mark.lab)])
async def test_names_of_directories_forge_no_rows_of_the_inventory(
    place: str, tmp_path: Path, shell: FaultyShell
) -> None:
    directory, program = tmp_path / FORGED, PYTHON
    directory.mkdir(parents=True)
    with ExitStack() as stack:
        if place == "socket":
            stack.enter_context(listening_in(directory))
        if place == "program":
            program = Path(shutil.copy(program, directory))
        pids = stack.enter_context(named("nginx", program=str(program), cwd=directory))
        found = await read_inventory(shell, "web1")
    assert not {one.program for one in found.processes} & {"/tmp/evil/nginx"}
    assert "/evil" not in {one.path for one in found.sockets}
    assert set(map(int, pids)) <= {one.pid for one in found.processes if one.name == "nginx"}


async def test_queues_that_a_new_limit_does_not_reach_are_noted(
    shell: FaultyShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(*_: object) -> Inventory:
        return parse_inventory('listen\t0.0.0.0:80\tusers:(("nginx",pid=1,fd=6))\t511\n', ())

    monkeypatch.setattr(server_check, "read_inventory", found)
    limit = Knob(name="backlog", host="web1", kind="sysctl", key="net/core/somaxconn")
    (note,) = await server_check.limits_at_listen(shell, "web1", [limit])
    assert note.startswith("accept queues now: port 80 (nginx) 511; restart a server")
    assert await server_check.limits_at_listen(shell, "web1", [replace(limit, key="vm.swappiness")]) == []


async def test_an_included_pipe_or_endless_file_does_not_stop_discovery(tmp_path: Path, shell: FaultyShell) -> None:
    """As a local user can have in the configuration of a server of his own."""
    pipe, endless, more = (tmp_path / name for name in ("pipe.conf", "endless.conf", "more.conf"))
    os.mkfifo(pipe)
    with endless.open("wb") as file:
        file.truncate(1 << 40)
    more.write_text("worker_processes 2;\n")
    main = tmp_path / "main.conf"
    main.write_text("".join(f"include {path};\n" for path in (pipe, endless, "/dev/zero", more)))
    found = await configuration(shell, nginx(main))
    assert set(found.read.files) == {str(main), str(endless), str(more)}
    assert found.texts[str(more)] == "worker_processes 2;\n"


@pytest.mark.parametrize(
    ("first", "second", "included", "active"),
    DATA["the_last_file_that_sets_it_counts"],
    ids=["dashes", "later-include", "later-main", "only-first", "version", "loose", "first-place", "first-of-places"],
)
async def test_the_last_file_that_sets_it_counts(
    first: str, second: str, included: str, active: str, tmp_path: Path, shell: FaultyShell
) -> None:
    files = {"first": tmp_path / "my.cnf", "second": tmp_path / "more.cnf", "included": tmp_path / "conf.d" / "60.cnf"}
    files["included"].parent.mkdir()
    for name, text in (("first", first), ("second", second), ("included", included)):
        files[name].write_text(text.format(tmp_path))
    startup = Startup("mariadb", (str(files["first"]), str(files["second"])), str(tmp_path))
    knob = CandidateKnob("max_connections", "mariadb", startup.file, "mysqld", "max_connections", set="true")
    master = Process(os.getpid(), 1, "mariadbd", ("mariadbd",))
    server = RunningServer("MariaDB", "mariadbd", 1, (), (knob,), master=master, startup=startup)
    read = (await configuration(shell, server)).read
    (found,) = await follow_includes(shell, "web1", server, read)
    assert found.file == str(files[active])


@pytest.mark.parametrize(
    ("kind", "name", "main", "more"),
    [
        ("apache", "KeepAlive", "KeepAlive On\nInclude {0}/x/\n", {"x/k.conf": "KeepAlive Off\n"}),
        (
            *("apache", "KeepAlive", "KeepAlive On\nInclude {0}/a.conf\n"),
            {"a.conf": "Include {0}/b.conf\n", "b.conf": "KeepAlive Off\n"},
        ),
        (
            *("squid", "cache_mem", "cache_mem 1 MB\ninclude {0}/a*.conf {0}/b.conf\n"),
            {"a.conf": "pid_filename none\n", "b.conf": "cache_mem 2 MB\n"},
        ),
    ],
    ids=["directory", "nested", "two"],
)
async def test_every_way_to_include_a_file_is_followed(
    kind: str, name: str, main: str, more: dict[str, str], tmp_path: Path, shell: FaultyShell
) -> None:
    for file, text in {"main.conf": main, **more}.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text.format(tmp_path))
    startup = Startup(kind, (str(tmp_path / "main.conf"),), str(tmp_path))
    knob = CandidateKnob(name, kind, startup.file, directive=name)
    master = Process(os.getpid(), 1, kind, (kind,))
    server = RunningServer(kind, kind, 1, (), (knob,), master=master, startup=startup)
    read = (await configuration(shell, server)).read
    (followed,) = await follow_includes(shell, "web1", server, read)
    assert followed.file == str(tmp_path / [*more][-1])


# PR_SET_NAME is 15. The child has the name too, and its end leaves no zombie.
NAMED = DATA["named"]


@contextmanager
def named(
    name: str, *arguments: str, program: str = sys.executable, cwd: Path | None = None
) -> Iterator[tuple[str, str]]:
    """A process of this name and its child, by their PIDs."""
    command = [program, "-c", NAMED, name, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=cwd) as parent:
        assert parent.stdout is not None
        child = parent.stdout.readline().strip()
        try:
            yield str(parent.pid), child
        finally:
            own = psutil.Process(int(child))
            own.kill()
            own.wait(60)
            parent.kill()


async def test_processes_of_odd_names_hide_no_others(tmp_path: Path, shell: FaultyShell) -> None:
    with ExitStack() as stack:
        odd = [stack.enter_context(named(name))[0] for name in ("cockpit-w\nx", "cockpit-w) S 1", "cockpit-w (")]
        parent, child = stack.enter_context(named("cockpit-w"))
        found = await PendingChange(shell, str(tmp_path), TIMEOUTS).poll("cockpit-w")
        assert (child, parent) in {(one.pid, one.parent) for one in found}
        done = await files.run(shell, STARTED, str(tmp_path), *odd, parent, child)
    assert len(done.stdout.splitlines()) == 5


async def test_command_lines_of_megabytes_do_not_fill_an_inventory(shell: FaultyShell) -> None:
    """Five servers and their children, with 2 MB each."""
    with ExitStack() as stack:
        own = [stack.enter_context(named("gunicorn3", *["x" * 130_000] * 14)) for _ in range(5)]
        found = {process.pid: process for process in (await read_inventory(shell, "web1")).processes}
    for pid in (int(pid) for pids in own for pid in pids):
        assert sum(map(len, found[pid].command)) < 70_000


def test_container_behind_published_port_is_suggested() -> None:
    for listener, advice in {
        "docker-proxy": "also watch the container, as docker:NAME or podman:NAME",
        "conmon": "which forwards requests to a container",
        "mystery": "served by mystery, which is not a known server",
    }.items():
        host = DiscoveredHost("root", (), None, (), (), unknown_listeners=(listener,))
        assert advice in HostSurvey(HostConfig(name="web1"), host).words


async def test_a_program_outside_the_systems_directories_is_shown_with_owner_and_mode(
    tmp_path: Path, shell: FaultyShell
) -> None:
    program = tmp_path / "haproxy"
    program.touch()
    program.chmod(0o4755)
    owner = program.owner()
    assert await owners(shell, [str(program), "/nowhere"]) == (f"{program} ({owner}, -rwsr-xr-x)",)
    command = (str(program), "-f", "/etc/passwd")
    master = Process(7, 1, "haproxy", command, str(program), "/", True, origin="host")
    (server,) = running_servers(Inventory("root", (master,)))
    with patch("cockpit.tuning.discovery.servers.untrusted", return_value=[]):
        shown = await without_untrusted(shell, server)
    # Its directory and configuration file are no programs.
    command = (str(program), "-f", str(tmp_path / "a.cfg"))
    (tmp_path / "a.cfg").touch()
    (server,) = running_servers(Inventory("root", (master._replace(command=command, directory=str(tmp_path)),)))
    with patch("cockpit.tuning.discovery.servers.untrusted", return_value=[]):
        assert (await without_untrusted(shell, server)).programs == shown.programs
    assert shown.programs == (f"{program} ({owner}, -rwsr-xr-x)",)
    survey = HostSurvey(HostConfig(name="web1"), DiscoveredHost("root", (shown,), None, (), (), ()))
    assert f"runs {program} ({owner}, -rwsr-xr-x)" in survey.words
    found = [survey._replace(discovered=DiscoveredHost(user, (), None, (), (), ())) for user in ("root", "www")]
    notes = [draft_of("http://web1/", [one]).notes["web1"][1:] for one in found]
    assert notes == [(), ("if www cannot write the configuration: log in as root, or set sudo = true",)]
