"""The report of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from cockpit.analysis.capacity.scaling import usl_fits
from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.analysis.verdicts.segments import SegmentVerdicts
from cockpit.analysis.warnings import segment_warnings
from cockpit.analysis.words.timeline import load_words, segment_label
from cockpit.analysis.words.verdicts import brief, connection_words
from cockpit.analysis.words.warnings import grouped
from cockpit.document.model import Block, Cell, Document, Items, Pairs, Paragraph, Part, Table
from cockpit.document.text import Paint, plain, to_text
from cockpit.metrics.catalogue import PERCENTILES
from cockpit.metrics.results import RunResult
from cockpit.metrics.units import BYTES, value_text
from cockpit.metrics.values import latency_value
from cockpit.model.counts import Counts, Group
from cockpit.model.histogram import Histogram
from cockpit.model.state import Segment, State
from cockpit.model.text import milliseconds, sanitize, si
from cockpit.report.capacity import capacity_blocks
from cockpit.report.hosts import growth_block, host_section
from cockpit.report.scaling import fit_blocks, fits_of
from cockpit.report.verdicts import completed_by, verdict_blocks
from cockpit.report.words import alert_of, errors_words, plan_words, warning_texts

_PERCENTS = (50.0, 66.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.9, 100.0)
_LOGGED = "latency: the durations that the servers logged, three digits"
_SERVICE = "service time: from the connect, or the first byte sent, to the last byte read"
_RESPONSE = "response time: from the scheduled send to the last byte read"
# Maximum length of a segment's label in a terminal.
_LONGEST_LABEL = 60
_SEGMENT_TITLES = ("#", "segment", "load", "s", "req/s", *PERCENTILES, "failed", "vs the first")


def run_text(
    result: RunResult, verdicts: tuple[Verdict, ...] = (), state: State | None = None, paint: Paint = plain
) -> str:
    """Return the report without a trailing newline; `verdicts` and `state` are those of the session."""
    return to_text(run_document(result, verdicts, state), paint)


def run_document(result: RunResult, verdicts: tuple[Verdict, ...], state: State | None) -> Document:
    segments = segment_blocks(result.segments, state, _LONGEST_LABEL)[:1] if len(result.segments) > 1 else []
    *blocks, warnings = run_blocks(result)
    return Document(
        f"run {result.run}  {plan_words(result.plan)}",
        [],
        [
            *(Part("", [block]) for block in blocks),
            Part("", segments),
            *(host_section(name, window, result.seconds, result.rate) for name, window in result.hosts.items()),
            Part("growth", [growth_block(state, result.segments)] if state else []),
            *(Part("", fit_blocks(fit)) for fit in (fits_of(result, usl_fits(state)) if state else ())),
            Part("", [block for verdict in completed_by(result, verdicts) for block in verdict_blocks(verdict)]),
            *(Part("", blocks) for blocks in (capacity_blocks(state, result.run) if state else ())),
            Part("", [warnings]),
        ],
        alert_of(result),
    )


def run_blocks(result: RunResult) -> list[Block]:
    """Return totals, percentiles, parts of the latency, named requests, and warnings as the last block."""
    counts = result.counts
    return [
        Pairs(_totals(result)),
        *_percentiles(counts, _LOGGED if result.plan.traffic else _SERVICE),
        Table(("ms", "mean", "p50", "p90", "p99", "max"), _parts(counts)),
        Table(("request", "completed", "p50", "p99", "max", "errors", "unexpected"), _groups(counts.groups)),
        Table(("log of", "completed", "req/s", "p50", "p99", "max"), _logs(result)),
        Items(warning_texts(result), "warn"),
    ]


def _logs(result: RunResult) -> list[tuple[str, ...]]:
    """Return a row per host whose log was counted, if there are several."""
    return [
        (
            sanitize(host),
            str(log.completed),
            si(log.rate(result.seconds), 4),
            *(_times(log.service, 50, 99, 100) if log.service.count else ("–",) * 3),
        )
        for host in (each.host for each in result.plan.traffic)
        if len(result.logs) > 1 and (log := result.logs.get(host))
    ]


def _totals(result: RunResult) -> list[tuple[str, str]]:
    counts = result.counts
    rate = f"{result.rate:.1f} req/s over {result.seconds:.3f} s"
    received = value_text(BYTES, counts.bytes_received)
    speed = f", {value_text(BYTES, counts.bytes_received / result.seconds)}/s" if result.seconds else ""
    abandoned = f", {counts.abandoned} still in flight at the end" if counts.abandoned else ""
    mismatches = f"{counts.length_mismatches} responses differ in length from the first, not a failure"
    ended = f"{result.reason}{f': {result.detail}' if result.detail else ''}" if result.reason else "running"
    if result.plan.traffic:
        logs = ", ".join(f"{log.host}:{log.file}" for log in result.plan.traffic)
        failed = f"{counts.completed} requests, {counts.failed} failed (status 500 or higher)"
        totals = [("logs", sanitize(logs)), ("completed", failed)]
        return [*totals, ("rate", rate), ("statuses", _statuses(counts.statuses)), ("ended", ended)]
    totals = [
        ("target", ", ".join(result.addresses) or "–"),
        ("rate", rate),
        ("completed", f"{counts.completed} of {counts.sent} sent, {counts.failed} failed{abandoned}"),
        ("received", f"{received}, {value_text(BYTES, counts.body_bytes)} of them bodies{speed}"),
        ("statuses", _statuses(counts.statuses)),
        ("errors", errors_words(counts.errors)),
        ("unexpected", errors_words(counts.unexpected) if counts.unexpected else ""),
        ("reconnects", connection_words(counts)),
        ("length", mismatches if counts.length_mismatches else ""),
        ("TLS", _handshakes(result)),
        ("queued", _queued(result) if result.plan.open else ""),
        ("generator", _generator(result)),
        ("ended", ended),
    ]
    return [(name, value) for name, value in totals if value]


def _generator(result: RunResult) -> str:
    cpus = " ".join(f"{100 * cpu:.0f}%" for cpu in result.generator) or "–"
    waited = f"waited {100 * result.cpu_wait:.1f}% of the time for a CPU, " if result.cpu_wait else ""
    saturated = f", saturated for {result.saturated:.1f} s" if result.saturated else ""
    lag = milliseconds(result.counts.lag.percentile(99))
    return f"{_processes(result.plan.workers)}, CPU {cpus} of a core, {waited}lag p99 {lag} ms{saturated}"


def _handshakes(result: RunResult) -> str:
    """Return the handshakes/s, and the negotiated parameters with their shares if there are several."""
    each = result.counts.handshakes
    full, resumed = (sum(kind) for kind in zip(*each.values(), strict=True)) if each else (0, 0)
    shares = (
        sanitize(parameters.words) + (f" {100 * sum(counts) / (full + resumed):.1f}%" if len(each) > 1 else "")
        for parameters, counts in each.items()
    )
    rates = f"{result.per_s(full):.1f} full handshakes/s, {result.per_s(resumed):.1f} resumed/s"
    return f"{rates}: {'; '.join(shares)}" if each else ""


def _processes(number: int) -> str:
    return f"{number} load process{'es' if number > 1 else ''}"


def _queued(result: RunResult) -> str:
    counts = result.counts
    waited = f"{counts.queued} arrivals were queued at the limit of {result.plan.max_in_flight} in flight"
    dropped = f"; {counts.dropped} were dropped" if counts.dropped else ""
    return f"{waited}; {counts.unsent} were never sent{dropped}" if counts.unsent else f"{waited}{dropped}"


def _statuses(statuses: Mapping[int, int]) -> str:
    return ", ".join(f"{status}{_phrase(status)} {count}" for status, count in sorted(statuses.items())) or "none"


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def _percentiles(counts: Counts, service: str) -> list[Block]:
    """Return the percentiles of response time under open load, and of service time, if they are known. `service` is the
    definition of the latter."""
    latencies = (("response", _RESPONSE, counts.response), ("service", service, counts.service))
    known = [latency for latency in latencies if latency[2].count]
    if not known:
        return [Paragraph("latencies unknown" if counts.completed else "no complete response")]
    rows = [
        (f"{percent:g}%", *(milliseconds(histogram.percentile(percent)) for *_, histogram in known))
        for percent in _PERCENTS
    ]
    titles = ("ms", *(name for name, *_ in known))
    return [Items([definition for _, definition, _ in known], "soft"), Table(titles, rows)]


def _parts(counts: Counts) -> list[tuple[str, ...]]:
    parts = [("connect", counts.connect), ("TLS full", counts.tls), ("TLS resumed", counts.tls_resumed)]
    parts.append(("first byte", counts.first_byte))
    parts += [("service", counts.service), ("response", counts.response), ("head of line", counts.head_of_line)]
    return [
        (name, milliseconds(histogram.mean), *_times(histogram, 50, 90, 99, 100))
        for name, histogram in parts
        if histogram.count
    ]


def _times(histogram: Histogram, *percents: float) -> list[str]:
    return [milliseconds(histogram.percentile(percent)) for percent in percents]


def _groups(groups: Mapping[str, Group]) -> list[tuple[str, ...]]:
    rows = []
    for name, group in sorted(groups.items()):
        latency = group.response if group.response.count else group.service
        failures = (str(sum(kinds.values())) for kinds in (group.errors, group.unexpected))
        rows.append((name, str(group.completed), *_times(latency, 50, 99, 100), *failures))
    return rows


def segment_blocks(segments: Sequence[Segment], state: State | None, longest: int = 4096) -> list[Block]:
    """Return the table of segments, each compared with the first one of the session, and their warnings. `longest` is
    the maximum length of a label (characters)."""
    if not segments:
        return []
    judged = SegmentVerdicts()
    rows = [_segment(segment, state, judged, longest) for segment in segments]
    named = [(f"segment {segment.number}", warning) for segment in segments for warning in segment_warnings(segment)]
    return [
        Table(_SEGMENT_TITLES, rows),
        Paragraph(f"Times are {segments[-1].counts.latency_name} times in ms. ≈ is equivalent.", "soft"),
        Items(grouped(named, len(segments)), "warn"),
    ]


def _segment(segment: Segment, state: State | None, judged: SegmentVerdicts, longest: int) -> tuple[str | Cell, ...]:
    latencies = (latency_value(segment.counts.latency, name) for name in PERCENTILES)
    first = next((each for each in state.segments if not each.warmup), segment) if state else segment
    against = Cell("–")
    if state and segment.number != first.number and not segment.round:
        against = Cell(*brief(judged.verdict(state, segment, first)))
    return (
        *(str(segment.number), sanitize(segment_label(segment), longest), load_words(segment.plan)),
        f"{segment.seconds:.1f}",
        si(segment.rate, 4),
        *("–" if latency is None else milliseconds(latency) for latency in latencies),
        si(segment.counts.failed),
        against,
    )


def run_named(segments: Sequence[Segment], run: int) -> str:
    """Return a run with its segments as text: `run 2 (segment 3)`, `run 1 (segments 1, 2)`, `run 4 (segments 5 to
    9)`."""
    numbers = [str(segment.number) for segment in segments if segment.run == run]
    which = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 4 else ", ".join(numbers)
    return f"run {run} (segment{'' if len(numbers) == 1 else 's'} {which})" if numbers else f"run {run}"
