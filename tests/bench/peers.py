"""The other generators: their commands for the same load, and the parsing of their output.

wrk has no exact number of requests, so it runs for SECONDS.
"""

import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.bench.measurement import CommandOutput, Measurement, run_peer

SECONDS = 2
# httperf hangs with more sockets than select() supports.
_FILES = 900
# Seconds beyond three times the expected duration.
_GRACE = 10.0


class Peer(NamedTuple):
    """A generator and its function `run` (URL, concurrency, requests); skipped if the command `needs` is missing."""

    name: str
    needs: str
    package: str
    run: Callable[[str, int, int], Measurement]

    @property
    def missing(self) -> str:
        return "" if shutil.which(self.needs) else f"{self.name}: skipped, {self.needs} is missing ({self.package})"


def _parsed(output: CommandOutput, requests: str, rate: str, errors: str = "") -> Measurement:
    """Return the measurement; its numbers are the first groups of patterns."""
    failed = int(output.number(errors)) if errors else 0
    return Measurement(int(output.number(requests)), output.cpu, output.number(rate), failed)


def _wrk(url: str, concurrency: int, requests: int) -> Measurement:
    output = run_peer(["wrk", "-t1", f"-c{concurrency}", f"-d{SECONDS}s", url])
    return _parsed(output, r"(\d+) requests in", r"Requests/sec:\s+([\d.]+)")


def _ab(url: str, concurrency: int, requests: int, *flags: str) -> Measurement:
    output = run_peer(["ab", "-q", *flags, "-c", str(concurrency), "-n", str(requests), url])
    rate, failed = r"Requests per second:\s+([\d.]+)", r"Failed requests:\s+(\d+)"
    return _parsed(output, r"Complete requests:\s+(\d+)", rate, failed)


def _ab_kept(url: str, concurrency: int, requests: int) -> Measurement:
    return _ab(url, concurrency, requests, "-k")


def _hey(url: str, concurrency: int, requests: int) -> Measurement:
    output = run_peer(["hey", "-c", str(concurrency), "-n", str(requests), url])
    return _parsed(output, r"\[200\]\s+(\d+) responses", r"Requests/sec:\s+([\d.]+)")


def _h2load(url: str, concurrency: int, requests: int) -> Measurement:
    output = run_peer(["h2load", "--h1", "-t1", "-c", str(concurrency), "-n", str(requests), url])
    return _parsed(output, r"(\d+) succeeded", r"finished in [\d.]+m?s, ([\d.]+) req/s", r"(\d+) failed")


def _h2load_streams(streams: int, url: str, concurrency: int, requests: int) -> Measurement:
    output = run_peer(["h2load", "-t1", "-c", str(concurrency), "-m", str(streams), "-n", str(requests), url])
    return _parsed(output, r"(\d+) succeeded", r"finished in [\d.]+m?s, ([\d.]+) req/s", r"(\d+) failed")


def _h2load_new(rate: int, flags: tuple[str, ...], url: str, concurrency: int, requests: int) -> Measurement:
    # With -r RATE alone, h2load opens the connections of a second at once: 0.7 to 0.8 of its CPU/request.
    paced = ("-r", "1", f"--rate-period={1000 / rate:g}ms")
    output = run_peer(["h2load", *flags, "-t1", *paced, "-c", str(requests), "-n", str(requests), url])
    return _parsed(output, r"(\d+) succeeded", r"finished in [\d.]+m?s, ([\d.]+) req/s", r"(\d+) failed")


def h2load_new(rate: int, *flags: str) -> Peer:
    """Return h2load with this number of new connections/s at even intervals, and one request on each."""
    return Peer(f"h2load -r{rate}", "h2load", "nghttp2-client", partial(_h2load_new, rate, flags))


def h2load(streams: int) -> Peer:
    """Return h2load with HTTP/2 and this number of streams per connection."""
    return Peer(f"h2load -m{streams}", "h2load", "nghttp2-client", partial(_h2load_streams, streams))


def httperf_output(url: str, rate: float, connections: int, calls: int = 1) -> CommandOutput:
    """Open `connections` at `rate` per second, each with `calls` sequential requests.

    Raises subprocess.TimeoutExpired: httperf may loop forever if it cannot keep up.
    """
    parts = urlsplit(url)
    command = [
        *("httperf", "--hog", "--timeout", "5", "--server", str(parts.hostname), "--port", str(parts.port or 80)),
        *("--uri", parts.path, "--rate", f"{rate:g}", "--num-conns", str(connections), "--num-calls", str(calls)),
        *("--max-connections", str(_FILES)),
    ]
    return run_peer(command, 3 * connections / rate + _GRACE)


def httperf(url: str, rate: float, connections: int, calls: int = 1) -> Measurement:
    try:
        output = httperf_output(url, rate, connections, calls)
    except subprocess.TimeoutExpired:
        return Measurement(0, 0.0, 0.0)
    return _parsed(output, r"replies (\d+)", r"Request rate: ([\d.]+) req/s", r"Errors: total (\d+)")


WRK = Peer("wrk -t1", "wrk", "wrk", _wrk)
AB = Peer("ab", "ab", "apache2-utils", _ab)
AB_KEPT = Peer("ab -k", "ab", "apache2-utils", _ab_kept)
HEY = Peer("hey", "hey", "hey", _hey)
H2LOAD = Peer("h2load --h1", "h2load", "nghttp2-client", _h2load)
HTTPERF = Peer("httperf", "httperf", "httperf", httperf)
