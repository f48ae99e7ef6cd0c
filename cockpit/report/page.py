"""The HTML report of a recording: one self-contained page for screens, phones and paper."""

from __future__ import annotations

from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.analysis.words.capacity import LEVEL_TITLES
from cockpit.analysis.words.thresholds import found_words
from cockpit.analysis.words.timeline import segment_label
from cockpit.analysis.words.verdicts import metric_words
from cockpit.model.state import State
from cockpit.model.text import count_text, milliseconds, si
from cockpit.report.capacity import capacity_tables
from cockpit.report.charts import text
from cockpit.report.forest import ForestRow, forest
from cockpit.report.page_charts import MOST_SEGMENTS, distributions, drawn_segments, timeline
from cockpit.report.page_hosts import host_section
from cockpit.report.page_parts import document, head, pairs, table, verdict_block
from cockpit.report.scaling import usl_section
from cockpit.report.search import SLICE_TITLES, TRIAL_TITLES, search_claim, search_plan, slice_rows, trial_rows
from cockpit.report.session_summary import (
    CHANGE_TITLES,
    SEGMENT_TITLES,
    SessionSummary,
    change_cells,
    environment_pairs,
    load_time_words,
    marker_words,
    question_of,
    run_named,
    run_words,
    segment_cells,
    summarize_session,
    when,
)
from cockpit.report.summary import plan_words, warning_texts

# Up to this many markers are listed unfolded.
_FEW = 12


def page(state: State) -> str:
    """Return the whole document. The same state gives the same page."""
    found = summarize_session(state)
    title = state.started.name if state.started else "session"
    sections = (
        ("search", "Search", _search(state)),
        ("capacity", "Capacity", _capacity(state)),
        ("verdicts", "Verdicts", "".join(map(_verdict, found.verdicts))),
        ("timeline", "Timeline", timeline(state) + _markers(state)),
        ("runs", "Runs", _runs(found)),
        ("scalability", "Scalability", "".join(map(usl_section, found.fits))),
        ("thresholds", "Thresholds", _thresholds(found)),
        ("latency", "Latency", _latency(found)),
        ("hosts", "Servers", "".join(host_section(state, host, found.segments) for host in state.hosts.values())),
        ("changes", "Changes", _changes(state)),
        ("environment", "Environment", _environment(found)),
    )
    return document(title, _header(found), sections)


def _header(found: SessionSummary) -> str:
    state, started = found.state, found.state.started
    lines = [f"<h1>{text(started.name if started else 'session')}</h1>"]
    if started:
        if question_of(state):
            lines.append(f"<p class=question>{text(question_of(state))}</p>")
        facts = (
            when(started.wall),
            count_text(len(found.results), "run"),
            load_time_words(found),
            f"cockpit {started.version}",
        )
        lines.append(f"<p class=soft>{text(' · '.join(facts))}</p>")
    if found.results:
        lines.append(f"<p class=mono>{text(plan_words(found.results[-1].plan))}</p>")
        lines.append(_tiles(found))
    return "\n".join(lines)


def _tiles(found: SessionSummary) -> str:
    segment = found.segments[-1] if found.segments else None
    if segment is None:
        return ""
    latency = segment.counts.latency
    tiles = [("req/s", si(segment.rate, 4))]
    percents = (("p50", 50), ("p99", 99), ("max", 100))
    tiles += [(f"{name} ms", milliseconds(latency.percentile(percent))) for name, percent in percents]
    tiles.append(("failed", si(segment.counts.failed)))
    cells = "".join(f"<div><b>{text(value)}</b><small>{text(name)}</small></div>" for name, value in tiles)
    return f'<p class=soft>segment {segment.number}: {text(segment_label(segment))}</p><div class="tiles">{cells}</div>'


def _search(state: State) -> str:
    known = state.autopilot
    if known is None:
        return ""
    lines = "".join(f"<p>{text(line)}</p>" for line in (search_claim(state, known), *search_plan(known)))
    slices = list(slice_rows(known))
    fitted = f"<h3>Fitted metric by knob</h3>{table(SLICE_TITLES, slices)}" if slices else ""
    return f"{lines}{table(TRIAL_TITLES, list(trial_rows(known)))}{fitted}\n"


def _capacity(state: State) -> str:
    return "".join(f"<p>{text(claim)}</p>{table(LEVEL_TITLES, rows)}" for claim, rows in capacity_tables(state))


def _thresholds(found: SessionSummary) -> str:
    if not found.thresholds:
        return ""
    runs = sorted({run for run, _ in found.thresholds})
    lines: dict[str, list[str]] = {}
    for _, outcome in found.thresholds:
        status = f"{outcome.status}: {found_words(outcome)}"
        cell = f'<td class="words nowrap{"" if outcome.holds else " bad"}">{text(status)}</td>'
        lines.setdefault(outcome.threshold.text, []).append(cell)
    rows = "".join(f'<tr><td class="nowrap">{text(name)}</td>{"".join(cells)}</tr>' for name, cells in lines.items())
    head = "".join(f"<th class=words>{run_named(found, run)}</th>" for run in runs)
    table_of = f"<table><thead><tr><th>threshold</th>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="scroll">{table_of}</div>\n'


def _verdict(verdict: Verdict) -> str:
    rows = [ForestRow(metric_words(one.name), one) for one in verdict.rows]
    return verdict_block(verdict, forest("metric", rows) if rows else "")


def _runs(found: SessionSummary) -> str:
    if not found.segments:
        return ""
    lines = []
    for row in segment_cells(found):
        number, label, load, *metrics = row.cells
        cells = [
            f"<td>{number}</td>",
            f'<td class="words long">{text(label)}</td>',
            f'<td class="words nowrap">{text(load)}</td>',
        ]
        cells += [f"<td>{text(metric)}</td>" for metric in metrics]
        cells.append(f'<td class="nowrap {row.role}">{text(row.against)}</td>')
        cells.append(f'<td class="words long warn">{"<br>".join(map(text, row.warnings))}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    name = found.segments[-1].counts.latency_name
    note = f"<p class=soft>Times are {name} times in ms. ≈ is equivalent.</p>"
    return f'<div class="scroll"><table>{head(SEGMENT_TITLES)}<tbody>{"".join(lines)}</tbody></table></div>{note}\n'


def _latency(found: SessionSummary) -> str:
    segments = drawn_segments(found.state)
    truncated = ""
    if len([segment for segment in found.segments if segment.counts.latency.count]) > MOST_SEGMENTS:
        truncated = f"<p class=soft>Shown: segment {segments[0].number} and the last {MOST_SEGMENTS - 1}.</p>"
    return distributions(segments) + truncated if found.segments else ""


def _markers(state: State) -> str:
    rows = list(marker_words(state))
    if not rows:
        return ""
    lines = "".join(
        f'<tr><td>{at}</td><td class="words">{text(sign)}</td><td class="words">{text(label)}</td></tr>'
        for at, sign, label in rows
    )
    inside = f'<div class="scroll"><table><tbody>{lines}</tbody></table></div>'
    is_open = " open" if len(rows) <= _FEW else ""
    return f"<details{is_open}><summary>{count_text(len(rows), 'marker')}</summary>{inside}</details>\n"


def _changes(state: State) -> str:
    if not state.own_changes:
        return ""
    parts = [table(CHANGE_TITLES, [change_cells(change) for change in state.own_changes])]
    for change in state.own_changes:
        if change.diff:
            diff = "\n".join(text(line) for line in change.diff.split("\n"))
            name = text(change.letter)
            parts.append(f'<details><summary>diff of {name}</summary><pre class="mono">{diff}</pre></details>')
    return "\n".join(parts) + "\n"


def _environment(found: SessionSummary) -> str:
    parts = [pairs(environment_pairs(found))]
    parts += [
        f"<h3>{run_named(found, result.run)}</h3>{pairs(run_words(result), warning_texts(result))}"
        for result in found.results
    ]
    return "".join(parts)
