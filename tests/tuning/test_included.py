"""The file of several whose value of a setting is active."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.servers.inventory import Process
from cockpit.servers.kind import CandidateKnob, RunningServer
from cockpit.servers.startup import Startup
from cockpit.tuning.host_inventory import configuration
from cockpit.tuning.included import follow_includes
from tests.tuning.conftest import FaultyShell

MAIN = "[mysqld]\nmax_connections = 100\n"


@pytest.mark.parametrize(
    ("first", "second", "included", "active"),
    [
        (f"{MAIN}!includedir {{0}}/conf.d/\n", "", "[mariadb]\nmax-connections = 500\n", "included"),
        (MAIN, "!includedir {0}/conf.d/\n", "[mariadb]\nmax_connections = 500\n", "included"),
        (MAIN, "[mysqld]\nmax_connections = 7\n!includedir {0}/conf.d/\n", "[mysqld]\n", "second"),
        (MAIN, "[mysqld]\n!includedir {0}/conf.d/\n", "[mysqld]\n", "first"),
        (f"{MAIN}!includedir {{0}}/conf.d/\n", "", "[mariadb-10.11]\nmax_connections = 500\n", "included"),
        (f"{MAIN}!includedir {{0}}/conf.d/\n", "", "[mysqld]\nloose-max_connections = 500\n", "included"),
        ("[client]\n", "!includedir {0}/conf.d/\n", "[mysqld]\n", "included"),
        ("[mysqld]\n", "!includedir {0}/conf.d/\n", "[mysqld]\n", "first"),
    ],
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
