"""One Apache, one plan, and what we, ab, wrk and httperf say it came to: for the test that holds the counts, and for
the bench that holds rates and latencies."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlsplit

from cockpit.model.load import LoadPlan
from tests.lab import state
from tests.lab.cpus import generator_cpu, on_generator_cpu
from tests.lab.lab import Host
from tests.lab.services import PREFORK_CONF
from tests.load.servers import load

REQUESTS = 1000
CONCURRENCY = 10
RATE = 500
LOG = "/var/log/apache2/access.log"

# wrk's own totals, exactly, in place of its rounded summary.
WRK_REPORT = """
done = function(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format("exactly %d %d %d %d %f %f\\n", summary.requests, summary.bytes, summary.duration,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout,
        latency:percentile(50), latency:percentile(99)))
end
"""


class Result(NamedTuple):
    """What a generator said: replies, bytes with and (where it says so) without heads, errors, requests a second and
    percentiles (s); and what the server logged of it: replies and bytes."""

    requests: int
    total: int
    body: int | None
    errors: int
    rate: float
    p50: float
    p99: float | None
    logged: int = 0
    logged_bytes: int = 0


Go = Callable[[], Result]


Goes = dict[str, Go]
Results = dict[str, list[Result]]


def make_steady(web1: Host) -> None:
    """As many workers of Apache's as the plan needs, none of which is ever replaced, until it is restarted."""
    settings = "s/(MinSpareServers|StartServers) .*/\\1 20/; s/(MaxSpareServers) .*/\\1 40/; s/(PerChild) .*/\\1 0/"
    web1.run(f"sed -E -i '{settings}' {PREFORK_CONF}")
    web1.run("apachectl graceful")
    ready = "pgrep -c -x apache2"
    assert state.wait_for(lambda: int(web1.run(ready).stdout) >= 21)


def logged(web1: Host) -> tuple[int, int]:
    """Replies in Apache's log, and bytes sent with them, heads included."""
    words = web1.run(f"awk '/\"GET /{{n++; s += $10}} END {{print n + 0, s + 0}}' {LOG}").stdout.split()
    return int(words[0]), int(words[1])


def with_log(web1: Host, go: Go) -> Result:
    """A go, and what Apache logged of it: it does so once a reply has left, so the last lines may take a moment."""
    web1.run(f": > {LOG}")
    result = go()
    state.wait_for(lambda: logged(web1)[0] >= result.requests)
    count, size = logged(web1)
    return result._replace(logged=count, logged_bytes=size)


def ours(url: str, **values: object) -> Result:
    plan = LoadPlan(**{"url": url, "cpus": (generator_cpu(),), **values})  # type: ignore[arg-type]
    outcome = asyncio.run(load(plan))
    service, ticks = outcome.merged("service"), outcome.ticks
    completed = outcome.total("completed")
    seconds = max(tick.t for tick in ticks) - min(tick.start for tick in ticks)
    return Result(
        requests=completed,
        total=outcome.total("bytes_received"),
        body=outcome.total("body_bytes"),
        errors=sum(outcome.errors.values()),
        rate=completed / seconds,
        p50=service.percentile(50),
        p99=service.percentile(99),
    )


def _run(*command: str) -> str:
    done = subprocess.run(on_generator_cpu(list(command)), capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def _number(pattern: str, text: str) -> float:
    match = re.search(pattern, text)
    assert match, f"no {pattern!r} in {text}"
    return float(match[1])


def ab(url: str, table: Path, requests: int, *flags: str) -> Result:
    text = _run("ab", "-q", *flags, "-e", str(table), "-n", str(requests), "-c", str(CONCURRENCY), url)
    rows = (line.split(",") for line in table.read_text().splitlines()[1:])
    served = {int(percent): float(milliseconds) / 1000 for percent, milliseconds in rows}
    return Result(
        requests=int(_number(r"Complete requests:\s+(\d+)", text)),
        total=int(_number(r"Total transferred:\s+(\d+)", text)),
        body=int(_number(r"HTML transferred:\s+(\d+)", text)),
        errors=int(_number(r"Failed requests:\s+(\d+)", text)),
        rate=_number(r"Requests per second:\s+([\d.]+)", text),
        p50=served[50],
        p99=served[99],
    )


def wrk(url: str, script: Path, *flags: str) -> Result:
    script.write_text(WRK_REPORT)
    text = _run("wrk", "-t1", f"-c{CONCURRENCY}", "-d1s", *flags, "-s", str(script), url)
    words = text.split("exactly ")[1].split()
    requests, size, microseconds, errors = (int(word) for word in words[:4])
    p50, p99 = (float(word) / 1e6 for word in words[4:6])
    return Result(requests, size, None, errors, requests / microseconds * 1e6, p50, p99)


def httperf(url: str, requests: int) -> Result:
    """One connection after the other at RATE, whatever the server does: the open model."""
    parts = urlsplit(url)
    text = _run(
        *("httperf", "--hog", "--timeout", "5", "--server", str(parts.hostname), "--port", "80"),
        *("--uri", parts.path, "--rate", str(RATE), "--num-conns", str(requests), "--num-calls", "1"),
    )
    replies = int(_number(r"replies (\d+)", text))
    head, body = (_number(rf"Reply size \[B\]:.* {part} ([\d.]+)", text) for part in ("header", "content"))
    return Result(
        requests=replies,
        total=round(replies * (head + body)),
        body=round(replies * body),
        errors=int(_number(r"Errors: total (\d+)", text)),
        rate=_number(r"Request rate: ([\d.]+) req/s", text),
        p50=_number(r"Connection time \[ms\]: .* median ([\d.]+)", text) / 1000,
        p99=None,
    )


def closed(url: str, directory: Path, *, kept: bool, requests: int = REQUESTS) -> tuple[str, Goes]:
    """A title, and a go of each generator that keeps CONCURRENCY requests in flight; their files go to `directory`."""
    ab_flags = ("-k",) if kept else ()
    wrk_flags = () if kept else ("-H", "Connection: close")
    how = "kept connections" if kept else "a new connection each"
    return f"closed, c={CONCURRENCY}, n={requests} (wrk: 1 s), {how}", {
        "cockpit": lambda: ours(url, requests=requests, concurrency=CONCURRENCY, keepalive=kept),
        "ab": lambda: ab(url, directory / "ab.csv", requests, *ab_flags),
        "wrk": lambda: wrk(url, directory / "report.lua", *wrk_flags),
    }


def opened(url: str, *, requests: int = REQUESTS) -> tuple[str, Goes]:
    """As `closed`, of those that send at RATE whatever the server does."""
    goes: Goes = {"cockpit": lambda: ours(url, requests=requests, rate=float(RATE), keepalive=False)}
    if shutil.which("httperf"):
        goes["httperf"] = lambda: httperf(url, requests)
    return f"open, {RATE}/s, n={requests}, a new connection each", goes


def in_turns(web1: Host, goes: Goes, rounds: int) -> Results:
    """Every go in turn, round after round."""
    results: Results = {name: [] for name in goes}
    for _ in range(rounds):
        for name, go in goes.items():
            results[name].append(with_log(web1, go))
    return results


def middle(results: list[Result], name: str) -> float:
    return float(median(getattr(result, name) for result in results))


def table(results: Results) -> list[str]:
    """A line each, under a line that names the columns."""
    lines = [f"{'':10}{'replies':>9}{'bytes':>12}{'errors':>8}{'req/s':>10}{'p50 ms':>9}{'p99 ms':>9}"]
    for name, rounds in results.items():
        last = rounds[-1]
        p99 = "-" if last.p99 is None else f"{middle(rounds, 'p99') * 1000:.2f}"
        lines.append(
            f"{name:10}{last.requests:9}{last.total:12}{last.errors:8}"
            f"{middle(rounds, 'rate'):10.0f}{middle(rounds, 'p50') * 1000:9.2f}{p99:>9}"
        )
    return lines
