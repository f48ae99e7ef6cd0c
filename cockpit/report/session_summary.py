"""The summary of a session for every report: segments, verdicts, changes, environment. Without markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from cockpit.analysis.capacity.result import capacity_result
from cockpit.analysis.capacity.scaling import usl_fits
from cockpit.analysis.capacity.usl import UslFit
from cockpit.analysis.comparison import MAIN_HOST_METRICS
from cockpit.analysis.rounds import rounds_verdict
from cockpit.analysis.thresholds import ThresholdResult, check_thresholds, parse_threshold
from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.analysis.verdicts.segments import SegmentVerdicts, verdicts
from cockpit.analysis.warnings import segment_warnings
from cockpit.analysis.words.capacity import capacity_words, limits_words
from cockpit.analysis.words.comparison import value_words
from cockpit.analysis.words.rounds import announcement_words, ended_words
from cockpit.analysis.words.timeline import change_label, load_words, marker_sign, marker_text, segment_label
from cockpit.analysis.words.verdicts import brief, connection_words
from cockpit.analysis.words.warnings import warning_words
from cockpit.metrics.catalogue import PERCENTILES
from cockpit.metrics.results import RunResult, all_results
from cockpit.metrics.values import host_metrics, latency_value
from cockpit.model.errors import UsageError
from cockpit.model.state import Change, Segment, State
from cockpit.model.text import clock, milliseconds, si
from cockpit.report.summary import errors_words, plan_words

SEGMENT_TITLES = ("#", "segment", "load", "s", "req/s", *PERCENTILES, "failed", "vs the first", "warnings")

# Of runs with more segments than this, only the first and the last segment are named.
_FEW_SEGMENTS = 4


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A session for reports. `segments` are without warm-ups; `fits` are scalability laws; `thresholds` are threshold
    results, each with its run."""

    state: State
    segments: tuple[Segment, ...]
    results: tuple[RunResult, ...]
    verdicts: tuple[Verdict, ...]
    fits: tuple[UslFit, ...]
    thresholds: tuple[tuple[int, ThresholdResult], ...]


class SegmentCells(NamedTuple):
    """A row of the runs table as text; `role` (good, bad or "") is that of the verdict `against`."""

    cells: tuple[str, ...]
    against: str
    role: str
    warnings: tuple[str, ...]


def summarize_session(state: State) -> SessionSummary:
    results = all_results(state)
    return SessionSummary(
        state=state,
        segments=tuple(segment for segment in state.segments if not segment.warmup),
        results=tuple(results),
        verdicts=verdicts(state),
        fits=usl_fits(state),
        thresholds=tuple(_threshold_results(state, results)),
    )


def segment_cells(found: SessionSummary) -> Iterator[SegmentCells]:
    """Yield the rows of the runs table; each segment is compared with the first."""
    judged = SegmentVerdicts()
    for segment in found.segments:
        against, role = "", ""
        if segment.number != found.segments[0].number and not segment.round:
            against, role = brief(judged.verdict(found.state, segment, found.segments[0]))
        latencies = [latency_value(segment.counts.latency, name) for name in PERCENTILES]
        times = ["–" if latency is None else milliseconds(latency) for latency in latencies]
        cells = (str(segment.number), segment_label(segment), load_words(segment.plan), f"{segment.seconds:.1f}")
        metrics = (si(segment.rate, 4), *times, si(segment.counts.failed))
        warnings = tuple(map(warning_words, segment_warnings(segment)))
        yield SegmentCells((*cells, *metrics), against or "–", role, warnings)


def run_named(found: SessionSummary, run: int) -> str:
    """Return a run with its segments as text: `run 2 (segment 3)`, `run 1 (segments 1, 2)`."""
    segments = [str(segment.number) for segment in found.segments if segment.run == run]
    which = f"{segments[0]} to {segments[-1]}" if len(segments) > _FEW_SEGMENTS else ", ".join(segments)
    return f"run {run} (segment{'' if len(segments) == 1 else 's'} {which})" if segments else f"run {run}"


def question_of(state: State) -> str:
    return " ".join(state.started.question.split()) if state.started else ""


def load_time_words(found: SessionSummary) -> str:
    """Return the duration of the load of all runs; the session may have been idle for longer."""
    return f"{sum(result.seconds for result in found.results):.0f} s of load"


def when(wall: float) -> str:
    """Return an instant in UTC, so that a report does not depend on the time zone of its machine."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def environment_pairs(found: SessionSummary) -> list[tuple[str, str]]:
    """Return (name, value) of the versions and machines of the measurement."""
    state, started = found.state, found.state.started
    pairs: list[tuple[str, str]] = []
    if started:
        pairs += [("began", when(started.wall)), ("target", started.target), ("cockpit", started.version)]
        pairs += [(f"generator's {name}", value) for name, value in sorted(started.environment.items())]
    for name, host in state.hosts.items():
        facts = host.facts
        machine = f"{facts.hostname}, kernel {facts.kernel}, {facts.cpus} CPUs" if facts else "no samples"
        pairs.append((f"host {name}", f"{host.config.place}: {machine}"))
    for rounds in state.rounds:
        words = announcement_words(rounds.begun)
        if rounds.ended is not None:
            words += f"; {ended_words(rounds, rounds.ended, rounds_verdict(state, rounds))}"
        pairs.append((f"rounds {rounds.begun.number}", words))
    for number, search in enumerate(state.capacities, 1):
        result = capacity_result(state, search)
        pairs.append((f"capacity {number}", f"{capacity_words(result)}; {limits_words(result)}"))
    pairs += [(f"knob {name} at the end", _knob(knob.value, knob.known)) for name, knob in state.knobs.items()]
    ended = "closed" if state.ended else "interrupted: no end recorded"
    return [*pairs, ("session", f"{clock(state.t)} long, {ended}")]


def run_words(result: RunResult) -> list[tuple[str, str]]:
    """Return (name, value) of a run's plan, its outcome and the health of the generator."""
    counts = result.counts
    ended = f"{result.reason}{f': {result.detail}' if result.detail else ''}" if result.reason else "running"
    cpus = " ".join(f"{100 * cpu:.0f}%" for cpu in result.generator) or "–"
    return [
        ("plan", plan_words(result.plan)),
        ("addresses", ", ".join(result.addresses) or "–"),
        ("responses", f"{counts.completed} of {counts.sent} sent in {result.seconds:.3f} s, {counts.failed} failed"),
        ("statuses", ", ".join(f"{status} × {count}" for status, count in sorted(counts.statuses.items())) or "none"),
        ("errors", errors_words(counts.errors)),
        ("reconnects", connection_words(counts) or "none"),
        (
            "generator",
            f"{result.plan.workers} load process{'es' if result.plan.workers > 1 else ''}, CPU {cpus} of a core, "
            f"waited {100 * result.cpu_wait:.1f}% of the time for a CPU, "
            f"lag p99 {milliseconds(counts.lag.percentile(99))} ms, "
            f"saturated for {result.saturated:.1f} s",
        ),
        ("ended", ended),
    ]


def host_means(segments: Sequence[Segment], host: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the titles and rows of a table of a host's metrics, a column per segment; no rows without samples."""
    read = [segment for segment in segments if host in segment.hosts and segment.hosts[host].seconds > 0]
    metrics = [host_metrics(segment.hosts[host], segment.seconds) for segment in read]
    shown = [key for key in MAIN_HOST_METRICS if any(one.get(key) for one in metrics)]
    cells = [(key, *(value_words(key, one.get(key)) for one in metrics)) for key in shown]
    return ("mean over", *(f"segment {segment.number}" for segment in read)), cells


def change_cells(change: Change) -> tuple[str, ...]:
    """Return time, name, host, outcome, cost and user of each change."""
    outcome: str = change.outcome or "under way"
    if change.inactive:
        outcome += f", not yet active: {', '.join(change.inactive)}"
    return (
        clock(change.begun),
        change_label(change),
        change.host,
        f"{outcome}: {change.detail}" if change.detail else outcome,
        change.cost,
        change.who,
    )


CHANGE_TITLES = ("at", "change", "host", "outcome", "cost", "requested by")


def marker_words(state: State) -> Iterator[tuple[str, str, str]]:
    """Yield (instant, sign, text) of each marker of the timeline."""
    for marker in state.markers:
        yield clock(marker.t), marker_sign(marker), marker_text(marker)


def _knob(value: str | None, known: bool) -> str:
    return ("unset" if value is None else value) if known else "not read"


def _threshold_results(state: State, results: Sequence[RunResult]) -> Iterator[tuple[int, ThresholdResult]]:
    """Yield the session's thresholds with their results. Those relative to a baseline are reported only by `check`."""
    for text in state.started.thresholds if state.started else ():
        try:
            threshold = parse_threshold(text)
        except UsageError:
            # From a newer cockpit, or written by another program.
            continue
        if not threshold.of_baseline:
            yield from ((result.run, check_thresholds((threshold,), result)[0]) for result in results)
