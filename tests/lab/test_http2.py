"""HTTP/2 against real servers: each request once, as the server's own log has it. nginx and Apache close a connection
with GOAWAY after 1,000 requests; all three allow 50 streams per connection."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.data import data_of
from tests.lab.requirements import SYSTEM_PATH
from tests.load.servers import engine_load, plan
from tests.waiting import free_port, wait_until

pytestmark = pytest.mark.lab

SMALL, LARGE = 92, 1_000_000
REQUESTS = 2500
_CONFIGURATIONS: dict[str, str] = data_of(__file__)
_COMMANDS = {
    "nginx": ["nginx", "-c", "{directory}/nginx", "-e", "{directory}/errors"],
    "apache2": ["apache2", "-f", "{directory}/apache2", "-D", "FOREGROUND"],
    "node": ["node", "{directory}/node"],
    # It writes no log without the frames of each connection.
    "nghttpd": ["nghttpd", "--no-tls", "--address", "127.0.0.1", "-m", "50", "-d", "{directory}/www", "{port}"],
}
LOGGED = ("nginx", "apache2", "node")


class Site(NamedTuple):
    """A running server with /small and /large, and its log."""

    base: str
    log: Path

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()


@contextmanager
def running(name: str) -> Iterator[Site]:
    """Run a server of this name."""
    # The directories of pytest are not open to www-data.
    with tempfile.TemporaryDirectory(prefix="cockpit-http2-") as directory, _started(name, Path(directory)) as site:
        yield site


@contextmanager
def _started(name: str, directory: Path) -> Iterator[Site]:
    port = free_port()
    directory.chmod(0o755)
    (directory / "www").mkdir()
    (directory / "www" / "small").write_bytes(b"x" * SMALL)
    (directory / "www" / "large").write_bytes(b"x" * LARGE)
    values = {"directory": str(directory), "port": str(port), "modules": "/usr/lib/apache2/modules"}
    if name in _CONFIGURATIONS:
        (directory / name).write_text(_CONFIGURATIONS[name].format(**values))
    command = [part.format(**values) for part in _COMMANDS[name]]
    command[0] = shutil.which(command[0], path=SYSTEM_PATH) or command[0]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_until(lambda: _accepts(port))
        yield Site(f"http://127.0.0.1:{port}", directory / "log")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def _accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("streams", [1, 10, 100])
@pytest.mark.parametrize("name", _COMMANDS)
async def test_counts_equal_the_log_of_the_server(name: str, streams: int) -> None:
    with running(name) as site:
        outcome = await engine_load(
            plan(f"{site.base}/small", http="2", requests=REQUESTS, concurrency=2, streams=streams)
        )
        assert outcome.errors == {}
        assert outcome.statuses == {200: REQUESTS}
        assert outcome.total("body_bytes") == REQUESTS * SMALL
        if name in LOGGED:
            wait_until(lambda: len(site.lines()) >= REQUESTS)
            assert site.lines() == [f"200 {SMALL} HTTP/2.0"] * REQUESTS


@pytest.mark.parametrize(
    "values",
    [
        {"path": "/large", "requests": 60, "streams": 10, "size": LARGE},
        {"path": "/small", "requests": 600, "rate": 3000.0, "streams": 20, "size": SMALL},
        {"path": "/small", "requests": 200, "keepalive": False, "size": SMALL},
    ],
    ids=["large bodies", "open load", "a connection each"],
)
@pytest.mark.parametrize("name", LOGGED)
async def test_other_loads(name: str, values: dict[str, Any]) -> None:
    given = dict(values)
    path, size, requests = given.pop("path"), given.pop("size"), given["requests"]
    with running(name) as site:
        outcome = await engine_load(plan(f"{site.base}{path}", http="2", **given))
        assert outcome.errors == {}
        assert outcome.statuses == {200: requests}
        assert outcome.total("body_bytes") == requests * size
        wait_until(lambda: len(site.lines()) >= requests)
        assert site.lines() == [f"200 {size} HTTP/2.0"] * requests


@pytest.mark.parametrize("name", ["apache2", "node"])
async def test_request_bodies(name: str) -> None:
    """The server may respond before it has read the whole body."""
    with running(name) as site:
        load_plan = plan(f"{site.base}/small", http="2", requests=40, streams=5, method="POST", body="b" * 200_000)
        outcome = await engine_load(load_plan)
        assert outcome.errors == {}
        assert sum(outcome.statuses.values()) == 40
        wait_until(lambda: len(site.lines()) >= 40)
        assert len(site.lines()) == 40
