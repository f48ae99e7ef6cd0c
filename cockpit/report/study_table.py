"""The table of a study: its columns, and each cell of it as a number and as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cockpit.analysis.words.capacity import rate_words
from cockpit.metrics.catalogue import entry
from cockpit.metrics.results import RunResult
from cockpit.metrics.units import BYTES, COUNT, LATENCY, number_text, value_text
from cockpit.metrics.values import is_host_metric, metric_value
from cockpit.model.study import Observation, Study
from cockpit.model.text import sanitize, si
from cockpit.study.judging import level_words
from cockpit.study.results import StudyCell, StudyResult, StudyRunResult

# Metrics of every table of runs with a constant load; hosts add theirs if the study watches none by name.
ALWAYS = ("rate", "p50", "p99", "max", "failed")
_OF_A_HOST = ("cpu.user", "cpu.system", "cpu.idle", "memory.used", "io.tps", "processes.spawned_per_s")


class StudyColumn(NamedTuple):
    """A column of the table: its metric, its title, its value for a result, and its format."""

    name: str
    head: str
    value: Callable[[RunResult, Sequence[StudyRunResult]], float | None]
    shown: Callable[[float], str]


def columns(result: StudyResult) -> tuple[StudyColumn, ...]:
    watched = result.study.watch or tuple(f"{host}.{name}" for host in hosts_of(result) for name in _OF_A_HOST)
    names = dict.fromkeys(watched if result.study.until else (*ALWAYS, *watched))
    columns = [StudyColumn("capacity", "capacity/s", _capacity, rate_words)] if result.study.until else []
    columns += [StudyColumn(name, _head(name), _metric_of(name), _shown(name)) for name in names]
    columns += [_counter(observation) for observation in result.study.observations if observation.counter]
    return tuple(columns)


def hosts_of(result: StudyResult) -> list[str]:
    return list(dict.fromkeys(host for cell in result.cells if cell.total for host in cell.total.hosts))


def _metric_of(name: str) -> Callable[[RunResult, Sequence[StudyRunResult]], float | None]:
    return lambda total, _: metric_value(total, name)


def _capacity(_: RunResult, runs: Sequence[StudyRunResult]) -> float | None:
    """Return the geometric mean of the found capacities, since they are compared as ratios."""
    logs = [math.log(run.window.capacity) for run in runs if run.window.capacity]
    return math.exp(sum(logs) / len(logs)) if logs else None


def _counter(observation: Observation) -> StudyColumn:
    def grown(_: RunResult, runs: Sequence[StudyRunResult]) -> float | None:
        known = [rise for run in runs if (rise := counter_increase(observation, run)) is not None]
        return sum(known) / len(known) if known else None

    return StudyColumn(f"observed.{observation.name}", sanitize(observation.name), grown, lambda value: si(value, 5))


def counter_increase(observation: Observation, run: StudyRunResult) -> float | None:
    """Return the increase of a counter over a run; None unless both outputs are numbers."""
    outputs = {each.after: each.text for each in run.observations if each.name == observation.name and not each.detail}
    try:
        return float(outputs[True]) - float(outputs[False])
    except (KeyError, ValueError):
        return None


def _head(name: str) -> str:
    metric = entry(name)
    if metric.unit is LATENCY:
        return f"{name} ms"
    host, _, rest = name.partition(".")
    return f"{host} {metric.long or metric.title}" if is_host_metric(rest) else metric.title


def _shown(name: str) -> Callable[[float], str]:
    unit = entry(name).unit
    if unit is COUNT and "." not in name:
        return lambda value: f"{value:,.0f}"
    return lambda value: (value_text if unit is BYTES else number_text)(unit, value, 4)


def value_of(column: StudyColumn, cell: StudyCell) -> float | None:
    """Return a column's value for a cell; None without data."""
    return None if cell.total is None else column.value(cell.total, cell.counted)


def text_of(column: StudyColumn, cell: StudyCell) -> str:
    value = value_of(column, cell)
    return "–" if value is None else column.shown(value)


def labels(result: StudyResult) -> tuple[str, ...]:
    study = result.study
    level = ("rate" if study.plan.open else "c",) if study.levels else ()
    part = ("pass",) if len(study.passes) > 1 else ()
    return ("variant", *level, *part)


def place_of(study: Study, cell: StudyCell) -> tuple[str, ...]:
    """Return the cells that identify a row, in the order of `labels`."""
    level = (f"{cell.level:g}",) if cell.level is not None else ()
    part = (sanitize(cell.pass_name),) if len(study.passes) > 1 else ()
    return (sanitize(cell.variant), *level, *part)


def rows(result: StudyResult) -> list[list[str]]:
    chosen = columns(result)
    head = [*labels(result), "runs", *(column.head for column in chosen)]
    body = [
        [*place_of(result.study, cell), _runs(cell), *(text_of(column, cell) for column in chosen)]
        for cell in result.cells
    ]
    return [head, *body]


def cell_name(result: StudyResult, cell: StudyCell) -> str:
    words = (cell.variant, level_words(result.study, cell.level), cell.pass_name)
    return sanitize(" · ".join(filter(None, words)))


def _runs(cell: StudyCell) -> str:
    discarded = len(cell.discarded)
    marks = (" ~" if cell.unstable else "") + ("" if cell.complete else " …")
    return f"{len(cell.counted)}{f'+{discarded}' if discarded else ''}{marks}"
