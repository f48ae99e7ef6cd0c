"""HTTP/2 against real servers, with TLS and without: each request once, as the server's own log has it.

nginx and Apache close a connection with GOAWAY after 1,000 requests; all but Caddy allow 50 streams per connection.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cockpit.model.load.plan import LoadPlan
from tests.data import data_of
from tests.lab.requirements import SYSTEM_PATH
from tests.load.certificates import certificate, trusting
from tests.load.servers import engine_load, plan
from tests.waiting import free_port, wait_until

pytestmark = pytest.mark.lab

SMALL, LARGE = 92, 1_000_000
REQUESTS = 1200
_CONFIGURATIONS: dict[str, str] = data_of(__file__)


class Program(NamedTuple):
    """A server; `status` and `size`: patterns of the status and of the bytes of each response in its log. `arguments`:
    those with TLS and without, in place of `{end}`."""

    command: str
    status: str = r"(?m)^(\d+) \d+ HTTP/2.0$"
    size: str = r"(?m)^\d+ (\d+) HTTP/2.0$"
    arguments: tuple[str, str] = ("", "")


PROGRAMS = {
    "nginx": Program("nginx -c {directory}/nginx -e {directory}/errors"),
    "apache2": Program("apache2 -f {directory}/apache2 -D FOREGROUND"),
    "node": Program("node {directory}/node"),
    "caddy": Program(
        "caddy run --adapter caddyfile --config {directory}/caddy",
        r'"HTTP/2.0".*"status":(\d+)',
        r'"HTTP/2.0".*"size":(\d+)',
    ),
    "haproxy": Program("haproxy -db -f {directory}/haproxy"),
    # Its log is the frames of each connection.
    "nghttpd": Program(
        "nghttpd -v --address 127.0.0.1 -m 50 -d {directory}/www {end}",
        r":status: (\d+)",
        r"send DATA frame <length=(\d+)",
        ("{port} {key} {cert}", "--no-tls {port}"),
    ),
}
# Words of the configurations with TLS and without.
_WORDS = {
    "scheme": ("https", "http"),
    "ssl": ("ssl", ""),
    "engine": ("on", "off"),
    "tls": ("tls {cert} {key}", ""),
    "bind": ("ssl crt {directory}/pair alpn h2", "proto h2"),
    "create": ("createSecureServer", "createServer"),
}
LOGGED = ("nginx", "apache2", "node")


class Site(NamedTuple):
    """A running server with /small and /large, and its log."""

    base: str
    program: Program
    log: Path

    def served(self) -> tuple[Counter[int], int]:
        """Return the statuses and the bytes of bodies in the log."""
        text = self.log.read_text()
        statuses = Counter(map(int, re.findall(self.program.status, text)))
        return statuses, sum(map(int, re.findall(self.program.size, text)))

    def plan(self, path: str, **values: Any) -> LoadPlan:
        tls = {"tls": trusting()} if self.base.startswith("https") else {}
        return plan(f"{self.base}{path}", http="2", **tls, **values)


@contextmanager
def running(name: str, *, secure: bool = False) -> Iterator[Site]:
    """Run a server of this name."""
    # The directories of pytest are not open to www-data.
    with (
        tempfile.TemporaryDirectory(prefix="cockpit-http2-") as directory,
        _started(PROGRAMS[name], name, Path(directory), secure) as site,
    ):
        yield site


@contextmanager
def _started(program: Program, name: str, directory: Path, secure: bool) -> Iterator[Site]:
    port = free_port()
    directory.chmod(0o755)
    (directory / "www").mkdir()
    (directory / "www" / "small").write_bytes(b"x" * SMALL)
    (directory / "www" / "large").write_bytes(b"x" * LARGE)
    pair = certificate()
    (directory / "pair").write_bytes(pair.cert.read_bytes() + pair.key.read_bytes())
    files = {"directory": str(directory), "port": str(port), "cert": str(pair.cert), "key": str(pair.key)}
    words = {word: texts[not secure].format(**files) for word, texts in _WORDS.items()}
    values = {**files, **words, "end": program.arguments[not secure].format(**files)}
    if name in _CONFIGURATIONS:
        (directory / name).write_text(_CONFIGURATIONS[name].format(modules="/usr/lib/apache2/modules", **values))
    command = program.command.format(**values).split()
    command[0] = shutil.which(command[0], path=SYSTEM_PATH) or command[0]
    log = directory / "log"
    # Caddy writes into these directories.
    homes = {"XDG_CONFIG_HOME": str(directory), "XDG_DATA_HOME": str(directory)}
    with log.open("a") as out:
        server = subprocess.Popen(
            command, stdout=out, stderr=subprocess.DEVNULL, start_new_session=True, env={**os.environ, **homes}
        )
    try:
        wait_until(lambda: _accepts(port))
        yield Site(f"{words['scheme']}://127.0.0.1:{port}", program, log)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def _accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("secure", [False, True], ids=["h2c", "TLS"])
@pytest.mark.parametrize("name", PROGRAMS)
async def test_counts_equal_the_log_of_the_server(name: str, secure: bool) -> None:
    with running(name, secure=secure) as site:
        for number, streams in enumerate((1, 10, 100), 1):
            outcome = await engine_load(site.plan("/small", requests=REQUESTS, concurrency=1, streams=streams))
            assert outcome.errors == {}
            assert outcome.statuses == {200: REQUESTS}
            assert outcome.total("body_bytes") == REQUESTS * SMALL
            logged = (Counter({200: number * REQUESTS}), number * REQUESTS * SMALL)
            wait_until(lambda logged=logged: site.served() == logged)


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
        outcome = await engine_load(site.plan(path, **given))
        assert outcome.errors == {}
        assert outcome.statuses == {200: requests}
        assert outcome.total("body_bytes") == requests * size
        wait_until(lambda: site.served() == (Counter({200: requests}), requests * size))


@pytest.mark.parametrize("name", ["apache2", "node"])
async def test_request_bodies(name: str) -> None:
    """The server may respond before it has read the whole body."""
    with running(name) as site:
        outcome = await engine_load(site.plan("/small", requests=40, streams=5, method="POST", body="b" * 200_000))
        assert outcome.errors == {}, (outcome.total("retries"), outcome.total("reconnects"))
        assert sum(outcome.statuses.values()) == 40
        wait_until(lambda: site.served()[0].total() == 40)
