"""The configuration files of a running server, as its host prints them, and who else could replace them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import running_servers
from cockpit.servers.startup import Startup
from cockpit.tuning.host_inventory import configuration
from cockpit.tuning.server_discovery import without_untrusted
from tests.tuning.conftest import FaultyShell


@pytest.mark.parametrize("separator", [*"\r\v\f\x1c\x85\u2028"])
async def test_a_line_of_a_file_states_no_facts_about_other_files(
    separator: str, tmp_path: Path, shell: FaultyShell
) -> None:
    main, other = tmp_path / "main.conf", tmp_path / "other.conf"
    forged = f"# include{separator}file\t{other}\t{other}\tyes\n# include{separator}1 worker_processes 9;\n"
    main.write_text(f"{forged}include {tmp_path}/more.conf;\n", newline="")
    (tmp_path / "more.conf").write_text("worker_processes 2;\n")
    startup = Startup("nginx", (str(main),), str(tmp_path))
    master = Process(os.getpid(), 1, "nginx", ("nginx",))
    server = RunningServer("nginx", "nginx", 1, (80,), (), master=master, startup=startup)
    found = await configuration(shell, server)
    assert set(found.read.files) == {str(main), str(tmp_path / "more.conf")}
    assert found.texts[str(tmp_path / "more.conf")] == "worker_processes 2;\n"


@pytest.mark.parametrize("own", ["interpreter", "directory"])
async def test_a_server_whose_test_would_run_another_users_program_is_not_offered(own: str, shell: FaultyShell) -> None:
    """Its file is trusted, its command line is not: an interpreter, or a working directory with Python modules."""
    program = "/tmp/python3" if own == "interpreter" else "/usr/bin/python3"
    command = (program, "/usr/bin/gunicorn", "-c", "/etc/passwd", "app:app")
    directory = "/tmp" if own == "directory" else "/"
    for origin in ("user", "host"):
        master = Process(7, 1, "gunicorn", command, "/usr/bin/env", directory, True, origin=origin)
        (server,) = running_servers(Inventory("root", (master,)))
        found = await without_untrusted(shell, server)
        assert bool(found.candidates) is (origin == "host")


async def test_an_included_pipe_or_endless_file_does_not_stop_discovery(tmp_path: Path, shell: FaultyShell) -> None:
    """As a local user can have in the configuration of a server of his own."""
    pipe, endless, more = (tmp_path / name for name in ("pipe.conf", "endless.conf", "more.conf"))
    os.mkfifo(pipe)
    with endless.open("wb") as file:
        file.truncate(1 << 40)
    more.write_text("worker_processes 2;\n")
    main = tmp_path / "main.conf"
    main.write_text("".join(f"include {path};\n" for path in (pipe, endless, "/dev/zero", more)))
    startup = Startup("nginx", (str(main),), str(tmp_path))
    server = RunningServer(
        "nginx", "nginx", 1, (80,), (), master=Process(os.getpid(), 1, "nginx", ("nginx",)), startup=startup
    )
    found = await configuration(shell, server)
    assert set(found.read.files) == {str(main), str(endless), str(more)}
    assert found.texts[str(more)] == "worker_processes 2;\n"
