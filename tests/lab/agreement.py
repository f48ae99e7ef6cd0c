"""Results of cockpit, ab, wrk and httperf for one plan on one Apache: a test compares the counts, a benchmark the
rates and latencies."""

import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from cockpit.model.load.plan import LoadPlan
from tests.bench.measurement import run_cockpit, run_peer
from tests.bench.peers import httperf_output
from tests.data import data_of
from tests.lab.lab import Host
from tests.lab.services import PREFORK_CONF
from tests.waiting import wait_until

DATA = data_of(__file__)

REQUESTS = 1000
CONCURRENCY = 10
RATE = 500
LOG = "/var/log/apache2/access.log"

# wrk's own totals, exactly, in place of its rounded summary.
WRK_REPORT = DATA["wrk_report"]


class Result(NamedTuple):
    """Results of a generator, and responses and bytes in the server's log.

    Responses, bytes with and (if reported) without headers, errors, requests/s, percentiles (s).
    """

    requests: int
    total: int
    body: int | None
    errors: int
    rate: float
    p50: float
    p99: float | None
    logged: int = 0
    logged_bytes: int = 0


Generator = Callable[[], Result]
Generators = dict[str, Generator]
Results = dict[str, list[Result]]


def keep_workers(web1: Host) -> None:
    """Give Apache enough workers for the plan, which are never replaced until its restart."""
    settings = "s/(MinSpareServers|StartServers) .*/\\1 20/; s/(MaxSpareServers) .*/\\1 40/; s/(PerChild) .*/\\1 0/"
    web1.run(f"sed -E -i '{settings}' {PREFORK_CONF}")
    web1.run("apachectl graceful")
    ready = "pgrep -c -x apache2"
    wait_until(lambda: int(web1.run(ready).stdout) >= 21)


def logged(web1: Host) -> tuple[int, int]:
    """Return the number of responses in Apache's log, and their bytes with headers."""
    fields = web1.run(f"awk '/\"GET /{{n++; s += $10}} END {{print n + 0, s + 0}}' {LOG}").stdout.split()
    return int(fields[0]), int(fields[1])


def with_log(web1: Host, run: Generator) -> Result:
    """Run a generator and add the counts of Apache's log, which may arrive after the responses."""
    web1.run(f": > {LOG}")
    result = run()
    wait_until(lambda: logged(web1)[0] >= result.requests)
    count, size = logged(web1)
    return result._replace(logged=count, logged_bytes=size)


def cockpit(url: str, **values: object) -> Result:
    run = run_cockpit(LoadPlan(**{"url": url, **values}))  # type: ignore[arg-type]
    service, counts = run.merged("service"), (run.total(name) for name in ("completed", "bytes_received", "body_bytes"))
    return Result(*counts, run.errors, run.measurement.rate, service.percentile(50), service.percentile(99))


def ab(url: str, table: Path, requests: int, *flags: str) -> Result:
    output = run_peer(["ab", "-q", *flags, "-e", str(table), "-n", str(requests), "-c", str(CONCURRENCY), url])
    rows = (line.split(",") for line in table.read_text().splitlines()[1:])
    served = {int(percent): float(milliseconds) / 1000 for percent, milliseconds in rows}
    names = ("Complete requests", "Total transferred", "HTML transferred", "Failed requests")
    counts = (int(output.number(rf"{name}:\s+(\d+)")) for name in names)
    return Result(*counts, output.number(r"Requests per second:\s+([\d.]+)"), served[50], served[99])


def wrk(url: str, script: Path, *flags: str) -> Result:
    script.write_text(WRK_REPORT)
    output = run_peer(["wrk", "-t1", f"-c{CONCURRENCY}", "-d1s", *flags, "-s", str(script), url])
    fields = output.text.split("exactly ")[1].split()
    requests, size, microseconds, errors = (int(field) for field in fields[:4])
    p50, p99 = (float(field) / 1e6 for field in fields[4:6])
    return Result(requests, size, None, errors, requests / microseconds * 1e6, p50, p99)


def httperf(url: str, requests: int, per_second: int) -> Result:
    """Open connections at this rate, independent of the server: open load."""
    output = httperf_output(url, per_second, requests)
    responses = int(output.number(r"replies (\d+)"))
    head, body = (output.number(rf"Reply size \[B\]:.* {part} ([\d.]+)") for part in ("header", "content"))
    errors, rate = int(output.number(r"Errors: total (\d+)")), output.number(r"Request rate: ([\d.]+) req/s")
    p50 = output.number(r"Connection time \[ms\]: .* median ([\d.]+)") / 1000
    return Result(responses, round(responses * (head + body)), round(responses * body), errors, rate, p50, None)


def closed_load(url: str, directory: Path, *, kept: bool, requests: int = REQUESTS) -> tuple[str, Generators]:
    """Return a title and the generators under closed load with CONCURRENCY; their files go to `directory`."""
    ab_flags = ("-k",) if kept else ()
    wrk_flags = () if kept else ("-H", "Connection: close")
    connections = "kept connections" if kept else "a new connection each"
    return f"closed, c={CONCURRENCY}, n={requests} (wrk: 1 s), {connections}", {
        "cockpit": lambda: cockpit(url, requests=requests, concurrency=CONCURRENCY, keepalive=kept),
        "ab": lambda: ab(url, directory / "ab.csv", requests, *ab_flags),
        "wrk": lambda: wrk(url, directory / "report.lua", *wrk_flags),
    }


def open_load(url: str, *, requests: int = REQUESTS, rate: int = RATE) -> tuple[str, Generators]:
    """Return a title and the generators under open load."""
    generators: Generators = {"cockpit": lambda: cockpit(url, requests=requests, rate=float(rate), keepalive=False)}
    if shutil.which("httperf"):
        generators["httperf"] = lambda: httperf(url, requests, rate)
    return f"open, {rate}/s, n={requests}, a new connection each", generators


def in_rounds(web1: Host, generators: Generators, rounds: int) -> Results:
    """Run all generators in turn, for several rounds."""
    results: Results = {name: [] for name in generators}
    for _ in range(rounds):
        for name, run in generators.items():
            results[name].append(with_log(web1, run))
    return results


def median_of(results: list[Result], name: str) -> float:
    return float(median(getattr(result, name) for result in results))


def table(results: Results) -> list[str]:
    """Return a heading and one line per generator."""
    lines = [f"{'':10}{'resp.':>9}{'bytes':>12}{'errors':>8}{'req/s':>10}{'p50 ms':>9}{'p99 ms':>9}"]
    for name, rounds in results.items():
        last = rounds[-1]
        p99 = "-" if last.p99 is None else f"{median_of(rounds, 'p99') * 1000:.2f}"
        lines.append(
            f"{name:10}{last.requests:9}{last.total:12}{last.errors:8}"
            f"{median_of(rounds, 'rate'):10.0f}{median_of(rounds, 'p50') * 1000:9.2f}{p99:>9}"
        )
    return lines
