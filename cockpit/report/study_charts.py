"""Charts of a study for the terminal: rate and CPU by level, latency distributions side by side, CPU over time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from cockpit.metrics.values import metric_value
from cockpit.model.text import milliseconds, sanitize, si
from cockpit.report.study_table import hosts_of
from cockpit.study.results import StudyCell, StudyResult

_BLOCKS = " ▏▎▍▌▋▊▉█"
_RISING = "▁▂▃▄▅▆▇█"
_PERCENTS = (10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0)
# Seconds per value of a rate, and maximum number of values per line.
_EVERY = 5
_MOST_RATES = 20
# Maximum length of the names of variants in charts.
_NAME = 28

Chart = tuple[str, list[str]]


def charts(result: StudyResult, width: int) -> list[Chart]:
    """Return (title, lines) of all charts with data; lines are at most about `width` wide. Capacity searches have
    none, because their load varies."""
    if result.study.until:
        return []
    found = [by_level(result, width)] if result.study.levels else []
    found += [distributions(result)]
    found += [rate_over_time(result)]
    found += [cpu_over_time(result, host, width) for host in hosts_of(result)]
    return [chart for chart in found if chart[1]]


def by_level(result: StudyResult, width: int) -> Chart:
    """Return a bar of the rate per load level, with the CPU of each host's watched processes beside it."""
    cells = [cell for cell in result.cells if cell.total]
    most = max((cell.total.rate for cell in cells if cell.total), default=0.0)
    hosts = hosts_of(result)
    lines = [
        f"{'':{_NAME}} {'':>6} {'req/s':>8}  {'':{_bar_width(width, hosts)}}"
        + "".join(f"{sanitize(h, 10):>12}" for h in hosts)
    ]
    for cell in cells:
        assert cell.total is not None
        bar = _bar(cell.total.rate / most if most else 0.0, _bar_width(width, hosts))
        cpus = "".join(f"{_cpu(cell, host):>12}" for host in hosts)
        lines.append(f"{_name(cell):{_NAME}} {cell.level:>6g} {si(cell.total.rate, 4):>8}  {bar}{cpus}")
    return "rate by level; CPU of each host's watched processes, percent of a core", lines if cells else []


def _bar_width(width: int, hosts: Sequence[str]) -> int:
    return max(10, width - _NAME - 20 - 12 * len(hosts))


def _cpu(cell: StudyCell, host: str) -> str:
    value = metric_value(cell.total, f"{host}.processes.cpu") if cell.total else None
    return "–" if value is None else f"{value:.0f}%"


def distributions(result: StudyResult) -> Chart:
    """Return latency by percentile, one line per cell."""
    cells = [cell for cell in result.cells if cell.total and cell.total.counts.latency.count]
    if not cells or result.study.levels:
        return "", []
    lines = [f"{'':{_NAME}}" + "".join(f"{f'p{percent:g}' if percent < 100 else 'max':>9}" for percent in _PERCENTS)]
    for cell in cells:
        assert cell.total is not None
        at = cell.total.counts.latency.percentile
        values = [cell.total.counts.latency.max if percent == 100 else at(percent) for percent in _PERCENTS]
        lines.append(f"{_name(cell):{_NAME}}" + "".join(f"{milliseconds(value):>9}" for value in values))
    most = max(cell.total.counts.latency.max for cell in cells if cell.total)
    least = min(cell.total.counts.latency.percentile(1) for cell in cells if cell.total)
    lines += [f"{_name(cell):{_NAME}} {_overlay(cell, least, most)}" for cell in cells]
    lines.append(f"{'':{_NAME}} {milliseconds(least)} ms{'logarithmic':^44}{milliseconds(most)} ms")
    return "latency (ms), distribution of responses", lines


def _overlay(cell: StudyCell, least: float, most: float, room: int = 60) -> str:
    """Return a histogram of the responses between `least` and `most` on a logarithmic scale."""
    assert cell.total is not None
    if not 0 < least < most:
        return ""
    edges = [round(1e9 * least * (most / least) ** (step / room)) for step in range(room + 1)]
    counts = cell.total.counts.latency.between(tuple(dict.fromkeys(edges)))[:room]
    top = max(counts, default=0)
    # The square root keeps the few responses of the tail visible.
    return "".join(_RISING[min(7, int(8 * (one / top) ** 0.5))] if one else " " for one in counts) if top else ""


def rate_over_time(result: StudyResult) -> Chart:
    """Return responses/s in each 5 s of the last counted run of each cell."""
    lines = []
    for cell in result.cells if not result.study.levels else ():
        seconds = list(cell.counted[-1].window.seconds) if cell.counted else []
        fives = [seconds[at : at + _EVERY] for at in range(0, len(seconds) - _EVERY + 1, _EVERY)]
        rates = [sum(one.completed for one in five) / sum(one.end - one.start for one in five) for five in fives]
        if len(rates) >= 2:
            lines.append(f"{_name(cell):{_NAME}}" + "".join(f"{si(rate, 4):>7}" for rate in rates[:_MOST_RATES]))
    return "responses/s in each 5 s of the last run", lines


def cpu_over_time(result: StudyResult, host: str, width: int) -> Chart:
    """Return the CPU of a host (percent busy) during the last counted run of each cell."""
    lines = []
    for cell in result.cells if not result.study.levels else ():
        points = cell.counted[-1].cpu.get(host, ()) if cell.counted else ()
        if len(points) >= 4:
            shown = _downsampled([busy for _, busy in points], width - _NAME - 16)
            line = "".join(_RISING[min(7, int(busy / 100 * 8))] for busy in shown)
            mean = sum(busy for _, busy in points) / len(points)
            lines.append(f"{_name(cell):{_NAME}} {mean:5.1f}%  {line}")
    return f"CPU of {sanitize(host)} over the last run, percent busy", lines


def _downsampled(values: Sequence[float], room: int) -> list[float]:
    """Return at most `room` values, each the mean of several."""
    if len(values) <= room:
        return list(values)
    edges = [round(step * len(values) / room) for step in range(room + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges) if b > a]


def _bar(share: float, room: int) -> str:
    eighths = round(share * room * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_BLOCKS[rest] if rest else "")).ljust(room)


def _name(cell: StudyCell) -> str:
    return sanitize(" · ".join(filter(None, (cell.variant, cell.pass_name))), _NAME)
