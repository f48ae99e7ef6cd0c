"""A result in the format of ab (ApacheBench 2.3), for scripts that parse it.

ab stores every request, cockpit stores histograms of three digits. Therefore `Processing` is the total minus the
connect time per column, not per request, and the lines of `-g` have the time of their tick (100 ms).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from cockpit.metrics.results import RunResult
from cockpit.model.histogram import Histogram
from cockpit.model.text import sanitize
from cockpit.model.tick import Tick

PERCENTAGES = (50, 66, 75, 80, 90, 95, 98, 99)


@dataclass(frozen=True)
class FirstResponse:
    """The response before the run: its Server header and the length of its body (bytes)."""

    server: str
    length: int


def report(result: RunResult, document: FirstResponse) -> str:
    """Return ab's report, from `Server Software:` to the percentages, without a trailing newline."""
    plan, counts = result.plan, result.counts
    parts = urlsplit(plan.url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    done = counts.completed
    per_request = 1000 * result.seconds / done if done else 0.0
    lines = [
        f"Server Software:        {sanitize(document.server)}",
        f"Server Hostname:        {parts.hostname}",
        f"Server Port:            {port}",
        "",
        f"Document Path:          {sanitize(path)}",
        f"Document Length:        {document.length} bytes",
        "",
        f"Concurrency Level:      {plan.concurrency}",
        f"Time taken for tests:   {result.seconds:.3f} seconds",
        f"Complete requests:      {done}",
        *_failed(result),
    ]
    if plan.keepalive:
        # A connection that the server closed had its last response without keep-alive.
        closed = max(0, counts.connect.count - plan.concurrency)
        lines.append(f"Keep-Alive requests:    {max(0, counts.completed - closed)}")
    lines += [
        f"Total transferred:      {counts.bytes_received} bytes",
        *([f"Total body sent:        {counts.bytes_sent}"] if plan.body is not None else []),
        f"HTML transferred:       {counts.body_bytes} bytes",
        f"Requests per second:    {done / result.seconds if result.seconds else 0:.2f} [#/sec] (mean)",
        f"Time per request:       {per_request * plan.concurrency:.3f} [ms] (mean)",
        f"Time per request:       {per_request:.3f} [ms] (mean, across all concurrent requests)",
        f"Transfer rate:          {_kilobytes(result):.2f} [Kbytes/sec] received",
        "",
        *_connection_times(result),
        "",
        "Percentage of the requests served within a certain time (ms)",
        *(f" {percent:>3}%  {_ms(counts.service.percentile(percent)):>5}" for percent in PERCENTAGES),
        f" 100%  {_ms(counts.service.max):>5} (longest request)",
    ]
    return "\n".join(lines)


def percentages_csv(service: Histogram) -> str:
    """Return the output of `ab -e`: milliseconds for each whole percentage from 0 to 99."""
    rows = (f"{percent},{1000 * service.percentile(percent):.3f}" for percent in range(100))
    return "\n".join(("Percentage served,Time in ms", *rows)) + "\n"


def gnuplot_tsv(ticks: Sequence[Tick], wall: float) -> Iterator[str]:
    """Yield the output of `ab -g`, one line per request, by total time. `wall` is the epoch of second 0."""
    yield "starttime\tseconds\tctime\tdtime\tttime\twait\n"
    rows = []
    for tick in ticks:
        seconds = int(wall + tick.start)
        connect, wait = round(1000 * tick.connect.mean), round(1000 * tick.first_byte.mean)
        rows += [(total, seconds, connect, wait) for total in _each(tick.service)]
    for total, seconds, connect, wait in sorted(rows):
        began = datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%a %b %d %H:%M:%S %Y")
        made = min(connect, total)
        yield f"{began}\t{seconds}\t{made}\t{total - made}\t{total}\t{min(wait, total)}\n"


def _each(histogram: Histogram) -> Iterator[int]:
    for nanoseconds, count in histogram.values():
        yield from (round(nanoseconds / 1e6),) * count


def _failed(result: RunResult) -> list[str]:
    counts = result.counts
    errors, unexpected = counts.errors, sum(counts.unexpected.values())
    connect = sum(errors.get(kind, 0) for kind in ("refused", "connect_timeout", "unreachable", "no_local_ports"))
    receive = sum(errors.values()) - connect
    failed = sum(errors.values()) + unexpected
    lines = [f"Failed requests:        {failed}"]
    if failed:
        lines.append(f"   (Connect: {connect}, Receive: {receive}, Length: {unexpected}, Exceptions: 0)")
    other = sum(count for status, count in counts.statuses.items() if not 200 <= status < 300)
    return lines + ([f"Non-2xx responses:      {other}"] if other else [])


def _kilobytes(result: RunResult) -> float:
    return result.counts.bytes_received / 1024 / result.seconds if result.seconds else 0.0


def _connection_times(result: RunResult) -> list[str]:
    counts = result.counts
    if not counts.service.count:
        return []
    connect, total = counts.connect, counts.service
    # The connect time on reused connections is 0, and ab counts these zeros.
    share = connect.count / total.count
    rows = {
        "Connect:": _columns(connect) if share > 0.5 else (0.0, connect.mean * share, 0.0, 0.0, connect.max),
        "Waiting:": _columns(counts.first_byte),
        "Total:": _columns(total),
    }
    pairs = zip(rows["Total:"], rows["Connect:"], strict=True)
    rows["Processing:"] = tuple(max(0.0, whole - part) for whole, part in pairs)
    lines = ["Connection Times (ms)", "              min  mean[+/-sd] median   max"]
    for name in ("Connect:", "Processing:", "Waiting:", "Total:"):
        least, mean, deviation, median, most = (1000 * seconds for seconds in rows[name])
        lines.append(f"{name:<12}{least:>5.0f} {mean:>4.0f} {deviation:>5.1f} {median:>6.0f} {most:>7.0f}")
    return lines


def _columns(histogram: Histogram) -> tuple[float, ...]:
    return (histogram.min, histogram.mean, histogram.deviation, histogram.percentile(50), histogram.max)


def _ms(seconds: float) -> int:
    return round(1000 * seconds)
