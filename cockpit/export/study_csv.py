"""A study as CSV (RFC 4180): one line per run and metric, and one line per comparison and metric."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.analysis.verdicts.outcome import Effect
from cockpit.analysis.words.objections import objection_words
from cockpit.export.series import Value, csv_text
from cockpit.metrics.catalogue import CONNECTION_METRICS, STATISTICS, TLS_METRICS
from cockpit.metrics.values import all_host_metrics, metric_value
from cockpit.report.study_table import counter_increase
from cockpit.study.results import StudyCell, StudyResult, StudyRunResult, StudyVerdict

_METRICS = (
    *("completed", "failed", "errors", "sent", "bytes", "duration", "rate"),
    *STATISTICS,
    *CONNECTION_METRICS,
    *TLS_METRICS,
    *("generator.cpu", "generator.lag_p99"),
)
_RUN_HEAD = ("variant", "level", "pass", "session", "round", "run", "turn", "counted", "metric", "value")
_VERDICT_HEAD = (
    *("before", "after", "level", "pass", "metric", "headline", "verdict", "outcome", "objection"),
    *("value_before", "value_after", "relative", "change", "low", "high", "confidence", "margin", "detectable"),
    *("speed_ratio", "unadjusted_change", "unadjusted_low", "unadjusted_high"),
    *("n_before", "n_after", "at_least", "control", "closed", "rounds", "excluded", "needed", "contradiction"),
)


def runs_csv(result: StudyResult) -> str:
    """Return a line per run and metric. Metrics are named as in thresholds (seconds, bytes, per second, percent); an
    empty value is unknown. `turn` numbers the runs of a round from 1. Runs that are not `counted` are in no result."""
    lines = (
        (*_place(cell, run), metric, value)
        for cell in result.cells
        for run in cell.runs
        for metric, value in _metrics(result, run)
    )
    return csv_text(_RUN_HEAD, lines)


def verdicts_csv(result: StudyResult) -> str:
    """Return a line per comparison and metric, with the numbers of the JSON. `verdict` is the outcome of the
    comparison, `outcome` that of the metric. `speed_ratio` (CPU speed, after / before) and `unadjusted_*` are set for
    effects that are adjusted for CPU speed. A comparison without effects has one line without a metric."""
    lines = (_verdict(pair, effect) for pair in result.verdicts for effect in pair.verdict.effects or (None,))
    return csv_text(_VERDICT_HEAD, lines)


def _place(cell: StudyCell, run: StudyRunResult) -> tuple[Value, ...]:
    place = run.place
    return (cell.variant, cell.level, cell.pass_name, run.session, place.round, place.run, place.turn, run.counted)


def _metrics(result: StudyResult, run: StudyRunResult) -> Iterator[tuple[str, float | None]]:
    if run.capacity is not None:
        yield "capacity", run.capacity.rate
    for name in _METRICS:
        yield name, metric_value(run.result, name)
    for host, metrics in all_host_metrics(run.result).items():
        yield from ((f"{host}.{name}", value) for name, value in metrics.items())
    yield from (
        (f"observed.{each.name}", counter_increase(each, run)) for each in result.study.observations if each.counter
    )


def _verdict(pair: StudyVerdict, effect: Effect | None) -> tuple[Value, ...]:
    verdict = pair.verdict
    place = (pair.first, pair.other, pair.level, pair.pass_name)
    outcomes = (
        (effect.name, effect.headline, verdict.outcome, effect.outcome) if effect else ("", "", verdict.outcome, "")
    )
    against = (effect.objection if effect else None) or verdict.objection
    numbers = _numbers(effect) if effect else (None,) * 13
    study = (pair.control, pair.closed, pair.rounds, pair.excluded, pair.needed, pair.contradiction or "")
    against_words = objection_words(against) if against else ""
    return (*place, *outcomes, against_words, *numbers, *verdict.values, verdict.at_least, *study)


def _numbers(effect: Effect) -> tuple[Value, ...]:
    speed = effect.speed
    return (
        *(effect.before, effect.after, effect.relative, effect.change, effect.low, effect.high),
        *(effect.level, effect.margin, effect.detectable),
        *((speed.ratio, speed.change, speed.low, speed.high) if speed else (None,) * 4),
    )
