"""The other generators: how each is told the same thing, and how its output is read.

`wrk` and `hey` know no exact count together with an even pace, so wrk runs for a time; all of them keep connections
only where `kept` says so.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.bench.goes import Figure, theirs

SECONDS = 2
# httperf hangs where it comes to more sockets than select() takes.
_FILES = 900
# Seconds beyond three times as long as it should take.
_GRACE = 10.0


class Peer(NamedTuple):
    """A generator by name, and a go of it: URL, concurrency, requests. It is left out when `needs` is no command."""

    name: str
    needs: str
    package: str
    go: Callable[[str, int, int], Figure]

    @property
    def lacking(self) -> str:
        return "" if shutil.which(self.needs) else f"{self.name}: left out, {self.needs} is missing ({self.package})"


def _wrk(url: str, concurrency: int, requests: int) -> Figure:
    said = theirs(["wrk", "-t1", f"-c{concurrency}", f"-d{SECONDS}s", url])
    return Figure(int(said.number(r"(\d+) requests in")), said.cpu, said.number(r"Requests/sec:\s+([\d.]+)"))


def _ab(*flags: str) -> Callable[[str, int, int], Figure]:
    def go(url: str, concurrency: int, requests: int) -> Figure:
        said = theirs(["ab", "-q", *flags, "-c", str(concurrency), "-n", str(requests), url])
        return Figure(
            int(said.number(r"Complete requests:\s+(\d+)")),
            said.cpu,
            said.number(r"Requests per second:\s+([\d.]+)"),
            int(said.number(r"Failed requests:\s+(\d+)")),
        )

    return go


def _hey(url: str, concurrency: int, requests: int) -> Figure:
    said = theirs(["hey", "-c", str(concurrency), "-n", str(requests), url])
    return Figure(int(said.number(r"\[200\]\s+(\d+) responses")), said.cpu, said.number(r"Requests/sec:\s+([\d.]+)"))


def _h2load(url: str, concurrency: int, requests: int) -> Figure:
    said = theirs(["h2load", "--h1", "-t1", "-c", str(concurrency), "-n", str(requests), url])
    return Figure(
        int(said.number(r"(\d+) succeeded")),
        said.cpu,
        said.number(r"finished in [\d.]+m?s, ([\d.]+) req/s"),
        int(said.number(r"(\d+) failed")),
    )


def httperf(url: str, rate: float, connections: int, calls: int = 1) -> Figure:
    """`connections` at `rate` a second, each of `calls` requests one after the other."""
    parts = urlsplit(url)
    command = [
        *("httperf", "--hog", "--timeout", "5", "--server", str(parts.hostname), "--port", str(parts.port)),
        *("--uri", parts.path, "--rate", f"{rate:g}", "--num-conns", str(connections), "--num-calls", str(calls)),
        *("--max-connections", str(_FILES)),
    ]
    try:
        said = theirs(command, 3 * connections / rate + _GRACE)
    except subprocess.TimeoutExpired:
        # It may turn round and round for ever when it cannot keep up.
        return Figure(0, 0.0, 0.0)
    return Figure(
        int(said.number(r"replies (\d+)")),
        said.cpu,
        said.number(r"Request rate: ([\d.]+) req/s"),
        int(said.number(r"Errors: total (\d+)")),
    )


WRK = Peer("wrk -t1", "wrk", "wrk", _wrk)
AB = Peer("ab", "ab", "apache2-utils", _ab())
AB_KEPT = Peer("ab -k", "ab", "apache2-utils", _ab("-k"))
HEY = Peer("hey", "hey", "hey", _hey)
H2LOAD = Peer("h2load --h1", "h2load", "nghttp2-client", _h2load)
HTTPERF = Peer("httperf", "httperf", "httperf", httperf)
