"""Running web servers of this machine are found by their names and listening ports, without running a program."""

import socket
import subprocess
from pathlib import Path

import pytest

from cockpit.tuning.discovery.local_servers import local_servers
from tests.demo.support import running


def test_server_is_listed_with_its_url_and_no_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as server:
        monkeypatch.setattr(subprocess, "Popen", None)
        monkeypatch.setattr(socket.socket, "connect", None)
        (known,) = (each for each in local_servers() if each.url == f"http://127.0.0.1:{server.port}/")
        assert (known.kind, known.processes) == ("demo", f"demo-http-{server.port}")
    assert not any(each.url == known.url for each in local_servers())
