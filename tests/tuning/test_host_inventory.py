"""The configuration files of a running server, as its host prints them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.servers.inventory import Process
from cockpit.servers.kind import RunningServer
from cockpit.servers.startup import Startup
from cockpit.tuning.host_inventory import configuration
from tests.tuning.conftest import Interfering


@pytest.mark.parametrize("separator", [*"\r\v\f\x1c\x85\u2028"])
async def test_a_line_of_a_file_states_no_facts_about_other_files(
    separator: str, tmp_path: Path, shell: Interfering
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
