"""The summary of a run as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from cockpit.analysis.capacity.scaling import usl_fits
from cockpit.analysis.thresholds import Status, ThresholdResult
from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.analysis.warnings import run_warnings
from cockpit.analysis.words.thresholds import found_words
from cockpit.analysis.words.timeline import load_words, segment_label
from cockpit.analysis.words.verdicts import connection_words
from cockpit.analysis.words.warnings import warning_words
from cockpit.metrics.results import RunResult
from cockpit.model.counts import Group
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import LoadPlan, amount_words
from cockpit.model.state import Segment, State
from cockpit.model.text import milliseconds, sanitize, size
from cockpit.report.capacity import capacity_lines
from cockpit.report.host_table import host_table
from cockpit.report.scaling import fits_of, usl_lines
from cockpit.report.verdicts import completed_by, verdict_lines

PERCENTILES = (50.0, 66.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.9, 100.0)
_SERVICE = "service time: from the connect, or the first byte sent, to the last byte read"
_RESPONSE = "response time: from the scheduled send to the last byte read"


def summary(result: RunResult, verdicts: tuple[Verdict, ...] = (), state: State | None = None) -> str:
    """Return the lines without a trailing newline; `verdicts` and `state` are those of the session."""
    lines = [
        *failure_line(result),
        f"run {result.run}  {plan_words(result.plan)}",
        "",
        *_totals(result),
        "",
        *_percentiles(result),
    ]
    lines += ["", *_parts(result)] if result.counts.latency.count else []
    lines += _segments(result.segments) + _groups(result.counts.groups) + _hosts(result)
    lines += usl_lines(fits_of(result, usl_fits(state))) if state else []
    lines += verdict_lines(completed_by(result, verdicts))
    lines += capacity_lines(state, result.run) if state else []
    if warnings := warning_texts(result):
        lines += ["", *(f"  ! {warning}" for warning in warnings)]
    return "\n".join(lines)


def failure_words(result: RunResult) -> str:
    """Return how all requests of a run failed; "" if one succeeded."""
    counts = result.counts
    if not counts.all_failed:
        return ""
    if counts.refused == counts.ended:
        statuses = ", ".join(str(status) for status in sorted(counts.statuses))
        return f"all {counts.ended:,} responses are {statuses}"
    return f"all {counts.ended:,} requests failed: {errors_words({**counts.errors, **counts.unexpected})}"


def failure_line(result: RunResult) -> list[str]:
    words = failure_words(result)
    return [f"FAILED: {words}"] if words else []


def warning_texts(result: RunResult) -> list[str]:
    return [warning_words(warning) for warning in run_warnings(result)]


def plan_words(plan: LoadPlan) -> str:
    """Return the load in one line, as in `GET http://a/ · closed c=20 n=10000 · new connection each`."""
    connections = "keep-alive" if plan.keepalive else "new connection each"
    if plan.requests_per_connection:
        connections = f"{plan.requests_per_connection} requests per connection"
    if plan.cookies:
        connections += " · cookies"
    if plan.connections_per_user > 1:
        connections += f" per {plan.connections_per_user} connections"
    if plan.think_time:
        connections += f" · think time {plan.think_time.words}"
    model = "open" if plan.open else "closed"
    chain = "chain of " if plan.chained else ""
    many = f" ({chain}{len(plan.mix)} requests)" if plan.mix else " (many paths)" if plan.paths or plan.replay else ""
    warmup = f" after {plan.warmup:g} s of warm-up" if plan.warmup else ""
    urls = " and ".join(f"{one.name} {one.url}" for one in plan.variants) or plan.url
    what = f"{sanitize(plan.method)} {sanitize(urls)}{many}"
    return f"{what} · {model} {_amount(plan)}{warmup} · {connections}"


def _amount(plan: LoadPlan) -> str:
    if plan.stages:
        levels = ", ".join(map(amount_words, plan.stages))
        return f"load levels {levels} of {plan.stages[0].duration:g} s"
    ends = [f"n={plan.requests}"] if plan.requests is not None else []
    ends += [f"{plan.duration:g} s"] if plan.duration is not None else []
    unlimited = "until the log ends" if plan.replay else "until the list ends"
    return f"{load_words(plan)} {' or '.join(ends) or unlimited}"


def errors_words(errors: Mapping[str, int]) -> str:
    """Return kinds with their counts, the most frequent first, or `none`."""
    ordered = sorted(errors.items(), key=lambda item: -item[1])
    return ", ".join(f"{sanitize(kind)} {count}" for kind, count in ordered) or "none"


def threshold_table(outcomes: Sequence[ThresholdResult], ended_by: ThresholdResult | None = None) -> str:
    """Return one line per threshold; `ended_by` is the result that ended the run early."""
    if not outcomes:
        return "no thresholds"
    width = max(len(outcome.threshold.text) for outcome in outcomes)
    words = max(len(_STATUS[outcome.status]) for outcome in outcomes)
    return "\n".join(
        f"  {_STATUS[outcome.status]:<{max(6, words)}}  {outcome.threshold.text:<{width}}  {found_words(outcome)}"
        f"{'; ended the run early' if outcome is ended_by else ''}"
        for outcome in outcomes
    )


_STATUS = {Status.HOLDS: "ok", Status.FAILED: "FAILED", Status.INCONCLUSIVE: "INCONCLUSIVE"}


def _totals(result: RunResult) -> list[str]:
    counts = result.counts
    speed = f", {size(counts.bytes_received / result.seconds)}B/s" if result.seconds else ""
    lines = [
        f"  target     {sanitize(', '.join(result.addresses))}",
        f"  rate       {result.rate:.1f} req/s over {result.seconds:.3f} s",
        f"  completed  {counts.completed} of {counts.sent} sent, {counts.failed} failed{_unfinished(counts.abandoned)}",
        f"  received   {size(counts.bytes_received)}B, {size(counts.body_bytes)}B of them bodies{speed}",
        f"  statuses   {_statuses(counts.statuses)}",
        f"  errors     {errors_words(counts.errors)}",
    ]
    if counts.unexpected:
        lines.append(f"  unexpected {errors_words(counts.unexpected)}")
    if words := connection_words(counts):
        lines.append(f"  reconnects {words}")
    if counts.length_mismatches:
        lines.append(
            f"  length     {counts.length_mismatches} responses differ in length from the first, not a failure"
        )
    if result.plan.open:
        lines.append(f"  queued     {_queued(result)}")
    lines.append(
        f"  generator  CPU {' '.join(f'{100 * cpu:.0f}%' for cpu in result.generator) or '-'} of a core, "
        f"{_waited(result)}lag p99 {milliseconds(counts.lag.percentile(99))} ms"
    )
    return lines


def _waited(result: RunResult) -> str:
    """Return the share of time that the generator waited for a CPU; "" if the system does not measure it."""
    return f"waited {100 * result.cpu_wait:.1f}% of the time for a CPU, " if result.cpu_wait else ""


def _queued(result: RunResult) -> str:
    counts = result.counts
    waited = f"{counts.queued} arrivals were queued at the limit of {result.plan.max_in_flight} in flight"
    dropped = f"; {counts.dropped} were dropped" if counts.dropped else ""
    return f"{waited}; {counts.unsent} were never sent{dropped}" if counts.unsent else f"{waited}{dropped}"


def _unfinished(abandoned: int) -> str:
    return f", {abandoned} still in flight at the end" if abandoned else ""


def _statuses(statuses: Mapping[int, int]) -> str:
    return ", ".join(f"{status}{_phrase(status)} {count}" for status, count in sorted(statuses.items())) or "none"


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def _percentiles(result: RunResult) -> list[str]:
    """Return the percentiles of response time under open load, and of service time, if they are known."""
    counts = result.counts
    latencies = (("response", _RESPONSE, counts.response), ("service", _SERVICE, counts.service))
    known = [latency for latency in latencies if latency[2].count]
    if not known:
        return ["  latencies unknown" if counts.completed else "  no complete response"]
    titles = "".join(f"{name:>{11 if number == 0 else 10}}" for number, (name, _, _) in enumerate(known))
    head = [*(f"  {definition}" for _, definition, _ in known), f"      ms{titles}"]
    return head + [
        f"   {p:>6g}%" + "".join(f"{milliseconds(histogram.percentile(p)):>10}" for _, _, histogram in known)
        for p in PERCENTILES
    ]


def _parts(result: RunResult) -> list[str]:
    counts = result.counts
    parts = [("connect", counts.connect), ("TLS", counts.tls), ("first byte", counts.first_byte)]
    parts += [("service", counts.service), ("response", counts.response)]
    lines = [f"  {words:<10}{_row(histogram)}" for words, histogram in parts if histogram.count]
    return ["  ms            mean      p50      p90      p99      max", *lines]


def _row(histogram: Histogram) -> str:
    percentiles = (histogram.percentile(percent) for percent in (50, 90, 99))
    return "".join(f"{milliseconds(value):>9}" for value in (histogram.mean, *percentiles, histogram.max))


def _segments(segments: Sequence[Segment]) -> list[str]:
    if len(segments) < 2:
        return []
    width = min(60, max(7, *(len(segment_label(segment)) for segment in segments)))
    lines = ["", f"  {'segment':<{width}}     req/s      p50      p99      max   failed"]
    for segment in segments:
        counts = segment.counts
        times = "".join(f"{milliseconds(counts.latency.percentile(p)):>9}" for p in (50, 99, 100))
        lines.append(
            f"  {sanitize(segment_label(segment), width):<{width}}{segment.rate:>10.1f}{times}{counts.failed:>9}"
        )
    return lines


def _groups(groups: Mapping[str, Group]) -> list[str]:
    if not groups:
        return []
    width = max(len(name) for name in groups)
    lines = ["", f"  {'request':<{max(7, width)}}  completed      p50      p99      max   errors  unexpected"]
    for name, group in sorted(groups.items()):
        latency = group.response if group.response.count else group.service
        times = "".join(f"{milliseconds(latency.percentile(p)):>9}" for p in (50, 99, 100))
        errors, unexpected = sum(group.errors.values()), sum(group.unexpected.values())
        lines.append(f"  {sanitize(name):<{max(7, width)}}{group.completed:>11}{times}{errors:>9}{unexpected:>12}")
    return lines


def _hosts(result: RunResult) -> list[str]:
    lines = [line for name, window in result.hosts.items() for line in host_table(name, window, result.seconds)]
    return ["", *lines] if lines else []
