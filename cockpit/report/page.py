"""The HTML report: one page that needs nothing else, for screens, phones and paper.

Whatever comes from a recording is text that others wrote: it goes through `text`. Nothing in the page is fetched or
run, and its Content-Security-Policy has browsers see to that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from cockpit.analysis.outcome import DIFFERENT, Effect, Outcome, Verdict
from cockpit.analysis.words import change_words, method_lines, metric_words, objection_words, value_words, verdict_line
from cockpit.model.state import State
from cockpit.model.text import clock, milliseconds, si
from cockpit.report.charts import text
from cockpit.report.findings import (
    CHANGE_TITLES,
    ROW_TITLES,
    Findings,
    change_cells,
    findings,
    marker_words,
    question_of,
    row_cells,
    run_named,
    run_words,
    surroundings,
    when,
)
from cockpit.report.page_charts import MOST_ROWS, distributions, drawn_rows, timeline
from cockpit.report.page_hosts import host_section
from cockpit.report.page_style import STYLE
from cockpit.report.summary import found_words, plan_words

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
# Of the tables' columns, those that hold words; the others hold figures.
_WORDS = ("row", "load", "change", "host", "outcome", "doubts", "threshold", "found", "text", "figure", "verdict")
_EFFECT_TITLES = ("before → after", "change (95 % interval)", "")
_BAR = 100.0
# So many markers are listed without being asked for.
_FEW = 12


def page(state: State) -> str:
    """The whole document. The same state gives the same page."""
    found = findings(state)
    title = state.started.name if state.started else "session"
    sections = (
        ("verdicts", "Verdicts", _verdicts(found)),
        ("timeline", "Timeline", timeline(state) + _markers(state)),
        ("runs", "Runs", _runs(found)),
        ("thresholds", "Thresholds", _thresholds(found)),
        ("latency", "Latency", _latency(found)),
        ("hosts", "Servers", "".join(host_section(state, host, found.rows) for host in state.hosts.values())),
        ("changes", "Changes", _changes(state)),
        ("environment", "Environment", _environment(found)),
    )
    kept = [section for section in sections if section[2]]
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title, _ in kept)
    body = "".join(f'<section id="{name}"><h2>{title}</h2>\n{inside}</section>\n' for name, title, inside in kept)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<title>{text(title)} · cockpit</title>\n<link rel="icon" href="data:,">\n<style>{STYLE}</style>\n</head>\n'
        f"<body>\n<header>{_header(found)}<nav>{links}</nav></header>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


def _header(found: Findings) -> str:
    state, started = found.state, found.state.started
    lines = [f"<h1>{text(started.name if started else 'session')}</h1>"]
    if started:
        if question_of(state):
            lines.append(f"<p class=question>{text(question_of(state))}</p>")
        told = (
            when(started.wall),
            f"{clock(state.t)} long",
            many(len(found.results), "run"),
            f"cockpit {started.version}",
        )
        lines.append(f"<p class=soft>{text(' · '.join(told))}</p>")
    if found.results:
        lines.append(f"<p class=mono>{text(plan_words(found.results[-1].plan))}</p>")
        lines.append(_tiles(found))
    return "\n".join(lines)


def _tiles(found: Findings) -> str:
    """The figures asked for first, of the newest row."""
    row = found.rows[-1] if found.rows else None
    if row is None:
        return ""
    latency = row.counts.latency
    tiles = [("req/s", si(row.rate, 4))]
    percents = (("p50", 50), ("p99", 99), ("max", 100))
    tiles += [(f"{name} ms", milliseconds(latency.percentile(percent))) for name, percent in percents]
    tiles.append(("failed", si(row.counts.failed)))
    cells = "".join(f"<div><b>{text(value)}</b><small>{text(name)}</small></div>" for name, value in tiles)
    return f'<p class=soft>row {row.number}: {text(row.label)}</p><div class="tiles">{cells}</div>'


def _verdicts(found: Findings) -> str:
    return "".join(_verdict(verdict) for verdict in found.verdicts)


def _thresholds(found: Findings) -> str:
    """A line a threshold, a column a run."""
    if not found.held:
        return ""
    runs = sorted({run for run, _ in found.held})
    lines: dict[str, list[str]] = {}
    for _, outcome in found.held:
        said = f"{'holds' if outcome.holds else 'broken'}: {found_words(outcome)}"
        cell = f'<td class="words nowrap{"" if outcome.holds else " bad"}">{text(said)}</td>'
        lines.setdefault(outcome.threshold.text, []).append(cell)
    rows = "".join(f'<tr><td class="nowrap">{text(name)}</td>{"".join(cells)}</tr>' for name, cells in lines.items())
    head = "".join(f"<th class=words>{run_named(found, run)}</th>" for run in runs)
    table_of = f"<table><thead><tr><th>threshold</th>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="scroll">{table_of}</div>\n'


def _verdict(verdict: Verdict) -> str:
    word = verdict.outcome if verdict.outcome in DIFFERENT else ""
    widest = max((abs(end) for one in verdict.effects for end in _ends(one)), default=0.0)
    lines = "".join(_effect(one, widest) for one in verdict.effects)
    head = "".join(f"<th{_class(title)}>{title}</th>" for title in ("metric", "verdict", *_EFFECT_TITLES))
    inside = (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'
        if lines
        else ""
    )
    method = "".join(f"<li>{text(line)}</li>" for line in method_lines(verdict))
    how = f"<details><summary>how it was found</summary><ul>{method}</ul></details>" if method else ""
    return f'<div class="verdict {word}"><p>{text(verdict_line(verdict))}</p>{inside}{how}</div>\n'


def _effect(one: Effect, widest: float) -> str:
    name, values, change = (text(words) for words in (metric_words(one.name), value_words(one), change_words(one)))
    return (
        f'<tr><td class="words nowrap">{name}</td><td class="words nowrap">{_effect_word(one)}</td>'
        f'<td class="nowrap">{values}</td><td class="nowrap">{change}</td><td>{_interval(one, widest)}</td></tr>'
    )


def _effect_word(one: Effect) -> str:
    role = {Outcome.BETTER: "good", Outcome.WORSE: "bad"}.get(one.outcome, "soft")
    reason = f" <small>{text(objection_words(one.objection))}</small>" if one.objection else ""
    return f'<span class="{role}">{text(one.outcome)}</span>{reason}'


def _ends(one: Effect) -> tuple[float, ...]:
    """Low end, high end and middle of the interval as logarithms of ratios; empty where it is not of that kind."""
    if not one.relative or one.low is None or one.high is None or one.change is None or one.low <= -1:
        return ()
    return math.log1p(one.low), math.log1p(one.high), math.log1p(one.change)


def _interval(one: Effect, widest: float) -> str:
    """The interval as a bar around no change, all of a verdict's to one scale."""
    ends = _ends(one)
    if not ends or widest <= 0:
        return ""
    left, right, middle = (_BAR / 2 * (1 + end / widest) for end in ends)
    role = {Outcome.BETTER: "c0", Outcome.WORSE: "c1"}.get(one.outcome, "c7")
    return (
        f'<span class="forest"><svg viewBox="0 0 {_BAR:g} 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="grid" d="M{_BAR / 2:g} 0V10"/><path class="s {role}" d="M{left:.1f} 5H{right:.1f}"/>'
        f'<path class="s {role} dot" d="M{middle:.1f} 5h0"/></svg></span>'
    )


def _runs(found: Findings) -> str:
    if not found.rows:
        return ""
    lines = []
    for row in row_cells(found):
        number, label, load, *figures = row.cells
        cells = [
            f"<td>{number}</td>",
            f'<td class="words long">{text(label)}</td>',
            f'<td class="words nowrap">{text(load)}</td>',
        ]
        cells += [f"<td>{text(figure)}</td>" for figure in figures]
        cells.append(f'<td class="nowrap {row.role}">{text(row.against)}</td>')
        cells.append(f'<td class="words long warn">{"<br>".join(text(doubt) for doubt in row.doubts)}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    name = found.rows[-1].counts.latency_name
    note = f"<p class=soft>Times are {name} times in ms. ≈ is equivalent.</p>"
    return f'<div class="scroll"><table>{_head(ROW_TITLES)}<tbody>{"".join(lines)}</tbody></table></div>{note}\n'


def _latency(found: Findings) -> str:
    rows = drawn_rows(found.state)
    left_out = ""
    if len([row for row in found.rows if row.counts.latency.count]) > MOST_ROWS:
        left_out = f"<p class=soft>Drawn are row {rows[0].number} and the last {MOST_ROWS - 1}.</p>"
    return distributions(rows) + left_out if found.rows else ""


def _markers(state: State) -> str:
    rows = list(marker_words(state))
    if not rows:
        return ""
    lines = "".join(
        f'<tr><td>{at}</td><td class="words">{text(sign)}</td><td class="words">{text(said)}</td></tr>'
        for at, sign, said in rows
    )
    inside = f'<div class="scroll"><table><tbody>{lines}</tbody></table></div>'
    is_open = " open" if len(rows) <= _FEW else ""
    return f"<details{is_open}><summary>{many(len(rows), 'marker')}</summary>{inside}</details>\n"


def _changes(state: State) -> str:
    if not state.changes:
        return ""
    parts = [table(CHANGE_TITLES, [change_cells(change) for change in state.changes])]
    for change in state.changes:
        if change.diff:
            diff = "\n".join(text(line) for line in change.diff.split("\n"))
            name = text(change.letter)
            parts.append(f'<details><summary>diff of {name}</summary><pre class="mono">{diff}</pre></details>')
    return "\n".join(parts) + "\n"


def _environment(found: Findings) -> str:
    parts = [_pairs(surroundings(found))]
    parts += [f"<h3>{run_named(found, result.run)}</h3>{_pairs(run_words(result))}" for result in found.results]
    return "".join(parts)


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    lines = []
    for name, value in pairs:
        role = " class=warn" if name == "doubt" else ""
        lines.append(f"<dt>{text(name)}</dt><dd{role}>{text(value)}</dd>")
    return f"<dl>{''.join(lines)}</dl>\n"


def many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of plain text."""
    lines = []
    for row in rows:
        cells = (f"<td{_class(title)}>{text(cell)}</td>" for title, cell in zip(titles, row, strict=True))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table>{_head(titles)}<tbody>{"".join(lines)}</tbody></table></div>\n'


def _head(titles: Sequence[str]) -> str:
    return f"<thead><tr>{''.join(f'<th{_class(title)}>{text(title)}</th>' for title in titles)}</tr></thead>"


def _class(title: str) -> str:
    return ' class="words"' if title in _WORDS else ""
