"""The history of a profile's checks: metrics over months, and the checks at which they changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from cockpit.analysis.change_points import ChangePoint, change_points
from cockpit.analysis.effects import conclude
from cockpit.analysis.intervals import Interval
from cockpit.analysis.plans import differences
from cockpit.analysis.words.thresholds import metric_text
from cockpit.analysis.words.verdicts import metric_words
from cockpit.document.model import Cell, Document, Paragraph, Part, Plot, PlotSeries, Sign, Table
from cockpit.document.scale import Axis, from_zero
from cockpit.model.text import count_text, sanitize
from cockpit.recording.check_history import PastCheck
from cockpit.report.forest import role_of

# Longer histories are judged by their latest checks.
MOST = 400
_LISTED = 20
HEADLINES = ("rate", "p50", "p99", "failed.share")


class CheckedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of checks under one load: a value per check, and its change points."""

    name: str
    values: tuple[float, ...]
    changes: tuple[ChangePoint, ...]


class CheckHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Checks of `target` under the load of the latest one, oldest first. `others`: checks under other loads."""

    target: str
    checks: tuple[PastCheck, ...]
    metrics: tuple[CheckedMetric, ...]
    others: int = 0


def history_of(target: str, checks: Sequence[PastCheck], seed: int) -> CheckHistory:
    """Return the history of checks (at least one), oldest first."""
    plan = checks[-1].plan
    alike = [check for check in checks if not differences(check.plan, plan)]
    latest = tuple(alike[-MOST:])
    metrics = []
    for name in latest[-1].metrics:
        values = tuple(check.metrics.get(name, float("nan")) for check in latest)
        if all(value == value for value in values):
            metrics.append(CheckedMetric(name=name, values=values, changes=tuple(change_points(values, seed))))
    return CheckHistory(target=target, checks=latest, metrics=tuple(metrics), others=len(checks) - len(alike))


def history_document(history: CheckHistory) -> Document:
    checks = history.checks
    span = f"{_day(checks[0])} to {_day(checks[-1])}" if len(checks) > 1 else _day(checks[0])
    lead = [Paragraph(f"{count_text(len(checks), 'check')} under one load, {span}")]
    if history.others:
        lead.append(Paragraph(f"{count_text(history.others, 'check')} under other loads left out", "soft"))
    changes = sorted(
        ((change.at, metric, change) for metric in history.metrics for change in metric.changes),
        key=lambda each: each[0],
    )
    rows = [_change_row(checks, at, metric.name, change) for at, metric, change in changes]
    changed = Table(("since", "release", "metric", "before", "after", "change"), rows)
    none = Paragraph("no metric changed, as far as these checks can tell", "soft")
    # Metrics that changed are first.
    plotted = sorted(history.metrics, key=lambda metric: not metric.changes) if len(checks) > 1 else []
    last = Table(("check", "release", *map(metric_words, HEADLINES), "exit"), list(map(_check_row, checks[-_LISTED:])))
    return Document(
        f"checks of {sanitize(history.target)}",
        lead,
        (
            Part("change points (E-divisive, p ≤ 0.01)", [changed if rows else none]),
            Part("metrics over time", [_plot(history, metric) for metric in plotted]),
            Part("latest checks", [last]),
        ),
    )


def _change_row(checks: Sequence[PastCheck], at: int, name: str, change: ChangePoint) -> list[str | Cell]:
    ratio = change.after / change.before - 1 if change.before > 0 else None
    words = "–" if ratio is None else f"{100 * ratio:+.1f}%".replace("-", "−")
    step = change.after - change.before if ratio is None else ratio
    outcome = conclude(name, Interval(step, step, step), ratio is not None, 0.0)
    return [
        _day(checks[at]),
        sanitize(checks[at].release, 40),
        metric_words(name),
        metric_text(name, change.before),
        metric_text(name, change.after),
        Cell(words, role_of(outcome), "another machine" if checks[at].machine != checks[at - 1].machine else ""),
    ]


def _check_row(check: PastCheck) -> list[str | Cell]:
    values = [metric_text(name, check.metrics[name]) if name in check.metrics else "–" for name in HEADLINES]
    return [_day(check), sanitize(check.release, 40), *values, str(check.exit_code)]


def _plot(history: CheckHistory, metric: CheckedMetric) -> Plot:
    checks = history.checks
    points = [(float(at), value) for at, value in enumerate(metric.values)]
    signs = [
        Sign(change.at - 0.5, "", f"{_day(checks[change.at])} {sanitize(checks[change.at].release, 40)}")
        for change in metric.changes
    ]
    ends = (0, len(checks) - 1)
    x = Axis(0.0, max(1.0, float(ends[1])), tuple((float(at), _day(checks[at])) for at in ends))
    y = from_zero(max(metric.values), lambda value: metric_text(metric.name, value), least=0.0)
    return Plot(
        kind="time", title=metric_words(metric.name), x=x, y=y, series=[PlotSeries(metric.name, points)], signs=signs
    )


def _day(check: PastCheck) -> str:
    return datetime.fromtimestamp(check.wall).strftime("%Y-%m-%d")


class ChangePointJson(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a metric since the check of `wall` (epoch s)."""

    metric: str
    wall: float
    release: str
    before: float
    after: float
    p: float


class HistoryJson(msgspec.Struct, frozen=True, kw_only=True):
    """The output of `history --json`."""

    target: str
    checks: tuple[PastCheck, ...]
    changes: tuple[ChangePointJson, ...]
    other_loads: int


def history_json(history: CheckHistory) -> HistoryJson:
    changes = tuple(
        ChangePointJson(
            metric=metric.name,
            wall=history.checks[change.at].wall,
            release=history.checks[change.at].release,
            before=change.before,
            after=change.after,
            p=change.p,
        )
        for metric in history.metrics
        for change in metric.changes
    )
    return HistoryJson(target=history.target, checks=history.checks, changes=changes, other_loads=history.others)
