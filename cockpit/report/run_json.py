"""The JSON of a run. The structs are its schema; a name never changes meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from cockpit.analysis.baseline import Ratio
from cockpit.analysis.capacity.scaling import usl_fits
from cockpit.analysis.stability import Stability
from cockpit.analysis.thresholds import Status, ThresholdResult
from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.analysis.warnings import generator_bound, run_warnings
from cockpit.analysis.words.timeline import segment_label
from cockpit.analysis.words.verdicts import stability_words
from cockpit.metrics.catalogue import LATENCIES, PROCESS_METRICS
from cockpit.metrics.results import RunResult, latency
from cockpit.metrics.values import host_metrics, latency_value, processes_hidden
from cockpit.model.counts import Group
from cockpit.model.events import RoundSide, RoundsOutcome
from cockpit.model.histogram import Histogram
from cockpit.model.host.state import HostWindow
from cockpit.model.knobs import Setting
from cockpit.model.state import RoundsState, Segment, State
from cockpit.report.capacity import CapacityJson, capacities_json
from cockpit.report.encoding import struct_from
from cockpit.report.scaling import UslJson, fits_of, usl_json
from cockpit.report.verdicts import VerdictJson, WarningJson, completed_by, verdict_json, warning_json

# Host -> metric -> value, and host -> group of metrics -> reason for null.
HostsJson = dict[str, dict[str, float | None]]
MissingJson = dict[str, dict[str, Literal["hidepid"]]]


class LatencyJson(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies in seconds; null without responses."""

    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p99_9: float | None
    max: float | None
    mean: float | None


class StabilityJson(Stability, frozen=True, kw_only=True):
    """Whether a run was stable, and if not, the first reason found, also as text."""

    text: str


class Generator(msgspec.Struct, frozen=True, kw_only=True):
    """The load generator. `cpu` is that of the busiest worker (1.0 is a whole core), `cpus` has each worker. `cpu_wait`
    is the share of the time (0 to 1) in which a worker was ready to run without a CPU; latencies include it. `lag_p99`
    is in seconds. `saturated`: do not trust the rate."""

    cpu: float
    cpus: tuple[float, ...]
    lag_p99: float
    saturated: bool
    saturated_seconds: float
    workers: int
    cpu_wait: float


class ThresholdOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A threshold and its result. `value` is null without data; the threshold failed then. `limit` is the value it was
    compared with. `ratio` is relative to the baseline, if the threshold has one. The threshold is inconclusive if the
    interval of the ratio includes the limit; about `needed` runs per side would settle it (null: unknown)."""

    threshold: str
    value: float | None
    holds: bool
    status: Status
    limit: float | None
    ratio: Ratio | None
    needed: int | None


class RequestJson(msgspec.Struct, frozen=True, kw_only=True):
    """A named request of a mix."""

    completed: int
    sent: int
    errors: dict[str, int]
    unexpected: dict[str, int]
    statuses: dict[str, int]
    service: LatencyJson
    response: LatencyJson


class SegmentJson(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the run with unchanged load and settings: a load level, or the time between two changes. The load of a
    ramp is that at its start; `ramp_to` is the load at its planned end, null for a constant load.

    `hosts` and `missing` are as in the run.
    """

    label: str
    concurrency: int | None
    offered_rate: float | None
    ramp_to: float | None
    completed: int
    failed: int
    rate: float
    duration: float
    service: LatencyJson
    response: LatencyJson
    hosts: HostsJson
    missing: MissingJson


class HandshakesJson(msgspec.Struct, frozen=True, kw_only=True):
    """TLS handshakes with the same parameters, named as by OpenSSL. `alpn`: the application protocol, "" if the server
    chose none; `group`: of the key exchange, "" if unknown (Python before 3.15)."""

    version: str
    cipher: str
    group: str
    alpn: str
    full: int
    resumed: int


class LogJson(msgspec.Struct, frozen=True, kw_only=True):
    """The traffic in the access log of a host. `rate`: requests/s while the log was read; `unread`: other time (s);
    `invalid_lines` have another format; `rotations`: files that ended."""

    completed: int
    rate: float
    service: LatencyJson
    invalid_lines: int
    rotations: int
    unread: float


class RunJson(msgspec.Struct, frozen=True, kw_only=True):
    """A run. `duration` is in seconds, `rate` in responses/s. `failed` counts errors, unexpected responses, and,
    without an expectation, statuses of 400 or above.

    `service` is measured from the connect (or, kept alive, the first byte sent) to the last byte read, `response` from
    the intended send, which under closed load is the same instant. `queued` arrivals were queued at the limit of
    requests in flight, `unsent` of them until the end; `dropped` arrivals found the queue full and were never sent.
    `length_mismatches` responses had another length than the first, which is no failure. `unexpected` counts responses
    that the expectation rejected, by kind. `retries` counts idempotent requests that were repeated, because the
    server closed one of the `reconnects` keep-alive connections before it responded. `unclosed` connections were closed
    by the client, because the server announced the close and did not close them. `redirect` is the first unexpected
    Location. `http` is the version of HTTP, `streams` the requests in flight per connection; `head_of_line` is the time
    between the first and the last byte of the HTTP/2 responses that arrived in parts between those of others.
    `tls` and `tls_resumed` are durations of full and of resumed TLS handshakes. `logs` are those of users' traffic, by
    host.

    `hosts` are means over the run, named as in thresholds; for null values `missing` has the reason, by host and group
    of metrics. `verdicts` compare segments under other settings with the baseline; a verdict on several runs is listed
    with the last one. `rounds` and `capacities` are those of this run.
    """

    run: int
    url: str
    http: str
    streams: int
    addresses: tuple[str, ...]
    completed: int
    sent: int
    failed: int
    abandoned: int
    rate: float
    duration: float
    bytes: int
    body_bytes: int
    queued: int
    unsent: int
    dropped: int
    retries: int
    reconnects: int
    unclosed: int
    redirect: str
    length_mismatches: int
    unexpected: dict[str, int]
    statuses: dict[str, int]
    errors: dict[str, int]
    response: LatencyJson
    service: LatencyJson
    connect: LatencyJson
    tls: LatencyJson
    tls_resumed: LatencyJson
    handshakes: list[HandshakesJson]
    first_byte: LatencyJson
    head_of_line: LatencyJson
    requests: dict[str, RequestJson]
    logs: dict[str, LogJson]
    segments: list[SegmentJson]
    generator: Generator
    hosts: HostsJson
    missing: MissingJson
    verdicts: list[VerdictJson]
    scalability: list[UslJson]
    rounds: list[RoundsJson]
    capacities: list[CapacityJson]
    thresholds: list[ThresholdOutcome]
    warnings: list[WarningJson]
    ended: str


def run_json(
    result: RunResult,
    outcomes: tuple[ThresholdResult, ...] = (),
    verdicts: tuple[Verdict, ...] = (),
    state: State | None = None,
) -> RunJson:
    """Return the result in the shape of the schema; `verdicts` are those of the session; its `state`: with
    rounds, capacity searches and fits."""
    counts = result.counts
    return struct_from(
        RunJson,
        counts,
        run=result.run,
        url=result.plan.without_secrets().url,
        http=result.plan.http,
        streams=result.plan.streams,
        addresses=result.addresses,
        rate=result.rate,
        duration=result.seconds,
        bytes=counts.bytes_received,
        statuses=statuses_json(counts.statuses),
        **{name: latency_json(latency(counts, name)) for name in LATENCIES},
        handshakes=[
            HandshakesJson(**parameters._asdict(), **number._asdict())
            for parameters, number in counts.handshakes.items()
        ],
        requests={name: _request(group) for name, group in counts.groups.items()},
        logs={
            host: struct_from(LogJson, log, rate=log.rate(result.seconds), service=latency_json(log.service))
            for host, log in result.logs.items()
        },
        segments=[_segment(segment) for segment in result.segments],
        generator=Generator(
            cpu=result.generator_cpu,
            cpus=result.generator,
            lag_p99=counts.lag.percentile(99),
            saturated=generator_bound(result.seconds, result.saturated),
            saturated_seconds=result.saturated,
            workers=len(result.generator) or result.plan.workers,
            cpu_wait=result.cpu_wait,
        ),
        hosts=hosts_json(result.hosts, result.seconds, result.rate),
        missing=missing_json(result.hosts),
        verdicts=[verdict_json(verdict) for verdict in completed_by(result, verdicts)],
        scalability=[usl_json(fit) for fit in fits_of(result, usl_fits(state))] if state else [],
        rounds=rounds_json(state.rounds if state else (), result.run),
        capacities=capacities_json(state, result.run) if state else [],
        thresholds=[struct_from(ThresholdOutcome, each, threshold=each.threshold.text) for each in outcomes],
        warnings=[warning_json(warning) for warning in run_warnings(result)],
        ended=result.reason,
    )


def _request(group: Group) -> RequestJson:
    return struct_from(
        RequestJson,
        group,
        statuses=statuses_json(group.statuses),
        service=latency_json(group.service),
        response=latency_json(group.response if group.response.count else group.service),
    )


def _segment(segment: Segment) -> SegmentJson:
    counts = segment.counts
    return SegmentJson(
        label=segment_label(segment),
        concurrency=None if segment.plan.open else segment.plan.concurrency,
        offered_rate=segment.plan.rate,
        ramp_to=segment.plan.ramp_to,
        completed=counts.completed,
        failed=counts.failed,
        rate=segment.rate,
        duration=segment.seconds,
        service=latency_json(counts.service),
        response=latency_json(counts.latency),
        hosts=hosts_json(segment.hosts, segment.seconds, segment.rate),
        missing=missing_json(segment.hosts),
    )


def hosts_json(windows: Mapping[str, HostWindow], seconds: float, rate: float) -> HostsJson:
    """Return metrics by host; null for unreadable ones."""
    return {
        name: (dict.fromkeys(PROCESS_METRICS) if processes_hidden(window) else {}) | host_metrics(window, seconds, rate)
        for name, window in _sampled(windows)
    }


def missing_json(windows: Mapping[str, HostWindow]) -> MissingJson:
    """Return the reasons for null metrics: host -> group of metrics -> reason."""
    return {name: {"processes": "hidepid"} for name, window in _sampled(windows) if processes_hidden(window)}


def _sampled(windows: Mapping[str, HostWindow]) -> list[tuple[str, HostWindow]]:
    return [(name, window) for name, window in windows.items() if window.seconds > 0]


def statuses_json(statuses: Mapping[int, int]) -> dict[str, int]:
    return {str(status): count for status, count in sorted(statuses.items())}


def stability_json(stability: Stability) -> StabilityJson:
    return struct_from(StabilityJson, stability, text=stability_words(stability))


def latency_json(histogram: Histogram) -> LatencyJson:
    return LatencyJson(**{name: latency_value(histogram, name) for name in LatencyJson.__struct_fields__})


class RoundWindowJson(msgspec.Struct, frozen=True, kw_only=True):
    """A window of a round; times in session seconds."""

    round: int
    side: RoundSide
    start: float
    until: float
    end: float | None


class RoundsJson(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds that compare old (before) and new (after) values. `change` is the letter of the measured change, "" for
    values that were not active before. `budget` is the maximum number of rounds, `complete` the number of rounds with
    both windows of `window_seconds`; their order was drawn with `seed`. `longest` (s) and `detectable` (share) are the
    announced maximum duration and minimum detectable effect. `windows` are in session seconds, from the end of the
    set-up (`end` null: interrupted). `active` is the side that is active after the rounds; `outcome` is null while they
    run."""

    number: int
    host: str
    change: str
    settings: tuple[Setting, ...]
    seed: int
    budget: int
    complete: int
    window_seconds: float
    longest: float
    detectable: float | None
    outcome: RoundsOutcome | None
    active: RoundSide
    detail: str
    windows: tuple[RoundWindowJson, ...]


def rounds_json(rounds: Iterable[RoundsState], run: int) -> list[RoundsJson]:
    return [_rounds(each) for each in rounds if each.begun.run == run]


def _rounds(rounds: RoundsState) -> RoundsJson:
    ended = rounds.ended
    return struct_from(
        RoundsJson,
        rounds.begun,
        budget=rounds.budget,
        complete=len(rounds.complete),
        window_seconds=rounds.begun.seconds,
        outcome=ended.outcome if ended else None,
        active=ended.active if ended else rounds.begun.active,
        detail=ended.detail if ended else "",
        windows=tuple(struct_from(RoundWindowJson, window) for window in rounds.windows),
    )
