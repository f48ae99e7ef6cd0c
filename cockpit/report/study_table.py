"""The table of a study: its columns, and each cell of it as a number and as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cockpit.model.metrics import LATENCIES, RunResult, is_latency, metric_value
from cockpit.model.study import Observation, Study
from cockpit.model.text import milliseconds, sanitize, si
from cockpit.study.results import StudyCell, StudyResult, StudyRunResult

# Metrics of every table; hosts add theirs if the study watches none by name.
ALWAYS = ("rate", "p50", "p99", "max", "failed")
_OF_A_HOST = ("cpu.user", "cpu.system", "cpu.idle", "memory.used", "io.tps", "processes.spawned_per_s")
_SIZES = ("memory.", "processes.rss", "processes.unshared", "processes.pss")
_MIB, _COARSE = 1 << 20, 100
_SPENT = ("processes.cpu", "processes.user", "processes.system")


class StudyColumn(NamedTuple):
    """A column of the table: its metric, its title, its value for a result, and its format."""

    name: str
    head: str
    value: Callable[[RunResult, Sequence[StudyRunResult]], float | None]
    shown: Callable[[float], str]


def columns(result: StudyResult) -> tuple[StudyColumn, ...]:
    watched = result.study.watch or tuple(f"{host}.{name}" for host in hosts_of(result) for name in _OF_A_HOST)
    names = dict.fromkeys((*ALWAYS, *watched))
    found = [StudyColumn(name, _head(name), _metric_of(name), _shown(name)) for name in names]
    found += [_counter(observation) for observation in result.study.observations if observation.counter]
    return tuple(found)


def hosts_of(result: StudyResult) -> list[str]:
    return list(dict.fromkeys(host for cell in result.cells if cell.total for host in cell.total.hosts))


def _metric_of(name: str) -> Callable[[RunResult, Sequence[StudyRunResult]], float | None]:
    return lambda total, _: metric_value(total, name)


def _counter(observation: Observation) -> StudyColumn:
    def grown(_: RunResult, runs: Sequence[StudyRunResult]) -> float | None:
        found = [one for run in runs if (one := counter_increase(observation, run)) is not None]
        return sum(found) / len(found) if found else None

    return StudyColumn(f"observed.{observation.name}", sanitize(observation.name), grown, lambda value: si(value, 5))


def counter_increase(observation: Observation, run: StudyRunResult) -> float | None:
    """Return the increase of a counter over a run; None unless both outputs are numbers."""
    outputs = {one.after: one.text for one in run.observations if one.name == observation.name and not one.detail}
    try:
        return float(outputs[True]) - float(outputs[False])
    except (KeyError, ValueError):
        return None


def _head(name: str) -> str:
    if name == "rate":
        return "req/s"
    if _in_ms(name):
        return f"{name} ms"
    host, _, rest = name.partition(".")
    words = {f"processes.{each}_per_s": f"{each}/s" for each in ("spawned", "exited")}
    words |= {"processes.spawned": "spawned"}
    words |= {"processes.mean": "processes", "processes.defunct": "most defunct"}
    words |= {f"processes.{spent}": f"process %{spent}" for spent in ("cpu", "user", "system")}
    if rest.startswith("cpu."):
        return f"{host} %{rest[4:]}"
    if name == "generator.cpu":
        return "gen %cpu"
    return f"{host} {words.get(rest, rest.replace('processes.', '').replace('_', ' '))}" if rest else name


def _shown(name: str) -> Callable[[float], str]:
    rest = name.partition(".")[2]
    if name in ("generator.cpu",) or rest.startswith("cpu.") or rest in _SPENT:
        return lambda value: f"{value:.1f}"
    if name in ("bytes", "failed", "errors", "completed", "sent"):
        return lambda value: f"{value:,.0f}"
    if _in_ms(name):
        return milliseconds
    if rest.startswith(_SIZES):
        return _mib
    return lambda value: si(value, 4)


def _in_ms(name: str) -> bool:
    head, _, rest = name.partition(".")
    return is_latency(name) or (head in LATENCIES and is_latency(rest)) or name == "generator.lag_p99"


def _mib(value: float) -> str:
    mib = value / _MIB
    return f"{mib:,.0f} MiB" if mib >= _COARSE else f"{mib:.1f} MiB"


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


def _runs(cell: StudyCell) -> str:
    discarded = len(cell.discarded)
    marks = (" ~" if cell.unstable else "") + ("" if cell.complete else " …")
    return f"{len(cell.counted)}{f'+{discarded}' if discarded else ''}{marks}"
