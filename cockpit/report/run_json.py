"""The JSON of a run. The structs are its schema; a name never changes meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from cockpit.analysis.doubt import doubts, generator_bound
from cockpit.analysis.outcome import Verdict
from cockpit.analysis.ratios import Ratio
from cockpit.analysis.thresholds import Status, ThresholdResult
from cockpit.model.events import Group
from cockpit.model.figures import RunResult, host_figures, latency
from cockpit.model.histogram import Histogram
from cockpit.model.host_figures import PROCESS_FIGURES, processes_hidden
from cockpit.model.host_state import HostWindow
from cockpit.model.state import RoundsState, Segment
from cockpit.model.text import escaped
from cockpit.report.rounds_json import RoundsJson, rounds_json
from cockpit.report.verdicts import VerdictJson, said_of, verdict_json

# Host -> metric -> value, and host -> group of metrics -> why they are null.
HostsJson = dict[str, dict[str, float | None]]
MissingJson = dict[str, dict[str, Literal["hidepid"]]]


class LatencyJson(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds. All null when nothing was measured."""

    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p99_9: float | None
    max: float | None
    mean: float | None


class Generator(msgspec.Struct, frozen=True, kw_only=True):
    """`cpu` is of the busiest worker (1.0 is a whole core), `cpus` of each; `cpu_wait` the share of the time (1.0 is
    all of it) that a worker was ready to run and had no CPU, which latencies include; `lag_p99` seconds; `saturated`:
    do not trust the rate."""

    cpu: float
    cpus: list[float]
    lag_p99: float
    saturated: bool
    saturated_seconds: float
    workers: int
    cpu_wait: float


class ThresholdOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """`found` is null without data; the threshold failed then. `limit` is the value that it was compared with. `ratio`
    is that to the baseline, if the threshold names one; a threshold is inconclusive when the interval includes the
    limit, and about `needed` runs per side would settle it (null: unknown)."""

    threshold: str
    found: float | None
    holds: bool
    status: Status
    limit: float | None
    ratio: Ratio | None
    needed: int | None


class RequestJson(msgspec.Struct, frozen=True, kw_only=True):
    """One named request of a mix."""

    completed: int
    sent: int
    errors: dict[str, int]
    unexpected: dict[str, int]
    statuses: dict[str, int]
    service: LatencyJson
    response: LatencyJson


class RowJson(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the run with unchanged load and settings: a load level, or the time between two changes.

    `hosts` and `missing` are as in the run.
    """

    label: str
    concurrency: int | None
    offered_rate: float | None
    completed: int
    failed: int
    rate: float
    duration: float
    service: LatencyJson
    response: LatencyJson
    hosts: HostsJson
    missing: MissingJson


class RunJson(msgspec.Struct, frozen=True, kw_only=True):
    """A run. `duration` seconds, `rate` responses/s; `failed` is errors, unexpected responses, and, without an
    expectation, statuses from 400 on.

    `service` is from the connect (or, kept alive, the first byte sent) to the last byte read; `response` from the
    intended send, which under closed load is the same instant. `held_back` arrivals were queued at the limit of
    requests in flight, `unsent` of them until the end; `dropped` ones found the queue full and were never
    sent; `varied` responses had another length than the first (no failure), `unexpected` ones differed, by
    kind. `retries` idempotent requests were sent a second time, because the server closed one of the `reconnects` kept
    connections before it responded. `unclosed` connections were closed by the client, because the server announced it
    and did not. `redirect` is the first unexpected Location.
    `hosts` are averages over the run, by the names that thresholds use; null ones have their reason in
    `missing`, by host and group of metrics. `verdicts` compares segments under other settings
    with the baseline; a verdict on several runs is listed with the last of them. `rounds` are those of this run.
    """

    run: int
    url: str
    addresses: list[str]
    completed: int
    sent: int
    failed: int
    abandoned: int
    rate: float
    duration: float
    bytes: int
    body_bytes: int
    held_back: int
    unsent: int
    dropped: int
    retries: int
    reconnects: int
    unclosed: int
    redirect: str
    varied: int
    unexpected: dict[str, int]
    statuses: dict[str, int]
    errors: dict[str, int]
    response: LatencyJson
    service: LatencyJson
    connect: LatencyJson
    tls: LatencyJson
    first_byte: LatencyJson
    requests: dict[str, RequestJson]
    rows: list[RowJson]
    generator: Generator
    hosts: HostsJson
    missing: MissingJson
    verdicts: list[VerdictJson]
    rounds: list[RoundsJson]
    thresholds: list[ThresholdOutcome]
    doubts: list[str]
    ended: str


def run_json(
    result: RunResult,
    outcomes: tuple[ThresholdResult, ...] = (),
    verdicts: tuple[Verdict, ...] = (),
    rounds: tuple[RoundsState, ...] = (),
) -> RunJson:
    """Return the result in the shape of the schema; `verdicts` and `rounds` are those of the session."""
    counts = result.counts
    return RunJson(
        run=result.run,
        url=result.plan.without_secrets().url,
        addresses=list(result.addresses),
        completed=counts.completed,
        sent=counts.sent,
        failed=counts.failed,
        abandoned=counts.abandoned,
        rate=result.rate,
        duration=result.seconds,
        bytes=counts.bytes_received,
        body_bytes=counts.body_bytes,
        held_back=counts.held_back,
        unsent=counts.unsent,
        dropped=counts.dropped,
        retries=counts.retries,
        reconnects=counts.reconnects,
        unclosed=counts.unclosed,
        redirect=counts.redirect,
        varied=counts.varied,
        unexpected=dict(counts.unexpected),
        statuses={str(status): count for status, count in sorted(counts.statuses.items())},
        errors=dict(counts.errors),
        response=latency_json(latency(counts, "response")),
        service=latency_json(counts.service),
        connect=latency_json(counts.connect),
        tls=latency_json(counts.tls),
        first_byte=latency_json(counts.first_byte),
        requests={name: _request(group) for name, group in counts.groups.items()},
        rows=[_row(segment) for segment in result.segments],
        generator=Generator(
            cpu=result.generator_cpu,
            cpus=list(result.generator),
            lag_p99=counts.lag.percentile(99),
            saturated=generator_bound(result.seconds, result.saturated),
            saturated_seconds=result.saturated,
            workers=result.plan.workers,
            cpu_wait=result.cpu_wait,
        ),
        hosts=hosts_json(result.hosts, result.seconds),
        missing=missing_json(result.hosts),
        verdicts=[verdict_json(verdict) for verdict in said_of(result, verdicts)],
        rounds=rounds_json(rounds, result.run),
        thresholds=[
            ThresholdOutcome(
                threshold=outcome.threshold.text,
                found=outcome.found,
                holds=outcome.holds,
                status=outcome.status,
                limit=outcome.limit,
                ratio=outcome.ratio,
                needed=outcome.needed,
            )
            for outcome in outcomes
        ],
        doubts=list(doubts(result)),
        ended=result.reason,
    )


def as_json(value: RunJson) -> str:
    """Indented, no line end; hostile characters are escaped."""
    return escaped(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def json_schema() -> dict[str, Any]:
    """JSON Schema of `--json`."""
    return msgspec.json.schema(RunJson)


def _request(group: Group) -> RequestJson:
    return RequestJson(
        completed=group.completed,
        sent=group.sent,
        errors=dict(group.errors),
        unexpected=dict(group.unexpected),
        statuses={str(status): count for status, count in sorted(group.statuses.items())},
        service=latency_json(group.service),
        response=latency_json(group.response if group.response.count else group.service),
    )


def _row(segment: Segment) -> RowJson:
    return RowJson(
        label=segment.label,
        concurrency=segment.plan.concurrency if segment.plan.rate is None else None,
        offered_rate=segment.plan.rate,
        completed=segment.counts.completed,
        failed=segment.counts.failed,
        rate=segment.rate,
        duration=segment.seconds,
        service=latency_json(segment.counts.service),
        response=latency_json(segment.counts.latency),
        hosts=hosts_json(segment.hosts, segment.seconds),
        missing=missing_json(segment.hosts),
    )


def hosts_json(windows: Mapping[str, HostWindow], seconds: float) -> HostsJson:
    """Return metrics by host; null for unreadable ones."""
    return {
        name: (dict.fromkeys(PROCESS_FIGURES) if processes_hidden(window) else {}) | host_figures(window, seconds)
        for name, window in _read(windows)
    }


def missing_json(windows: Mapping[str, HostWindow]) -> MissingJson:
    """Return why metrics are null: host -> group of metrics -> reason."""
    return {name: {"processes": "hidepid"} for name, window in _read(windows) if processes_hidden(window)}


def _read(windows: Mapping[str, HostWindow]) -> list[tuple[str, HostWindow]]:
    return [(name, window) for name, window in windows.items() if window.seconds > 0]


def latency_json(histogram: Histogram) -> LatencyJson:
    """A latency in the shape of the schema."""
    if not histogram.count:
        return LatencyJson(p50=None, p90=None, p95=None, p99=None, p99_9=None, max=None, mean=None)
    at = histogram.percentile
    return LatencyJson(
        p50=at(50),
        p90=at(90),
        p95=at(95),
        p99=at(99),
        p99_9=at(99.9),
        max=histogram.max,
        mean=histogram.mean,
    )
