"""The report as Markdown, for a wiki or a merge request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from cockpit.analysis.words.capacity import LEVEL_TITLES
from cockpit.analysis.words.thresholds import found_words
from cockpit.analysis.words.usl import USL_TITLES, usl_details, usl_line, usl_row
from cockpit.analysis.words.verdicts import change_words, method_lines, metric_words, value_words, verdict_line
from cockpit.model.state import State
from cockpit.model.text import sanitize
from cockpit.report.capacity import capacity_tables
from cockpit.report.search import SLICE_TITLES, TRIAL_TITLES, search_claim, slice_rows, trial_rows
from cockpit.report.session_summary import (
    CHANGE_TITLES,
    SEGMENT_TITLES,
    SessionSummary,
    change_cells,
    environment_pairs,
    host_means,
    load_time_words,
    marker_words,
    question_of,
    run_named,
    run_words,
    segment_cells,
    summarize_session,
    when,
)
from cockpit.report.summary import warning_texts

# Characters that Markdown, or HTML in it, would interpret as markup.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&!@$])")


def markdown(state: State) -> str:
    found = summarize_session(state)
    return "\n".join(_lines(found)) + "\n"


def md(value: str) -> str:
    """Return text of any origin, escaped as literal Markdown without links."""
    plain = _MARKUP.sub(r"\\\1", sanitize(value))
    # Some renderers link bare addresses; the scheme is separated to prevent it.
    return re.sub(r"(?i)\b(https?|ftp|www)([:.])", r"\1\\\2", plain)


def _search(state: State) -> Iterator[str]:
    known = state.autopilot
    if known is None:
        return
    yield from ("", "## Search", "", md(search_claim(state, known)))
    yield from ("", *_table(TRIAL_TITLES, list(trial_rows(known))))
    slices = list(slice_rows(known))
    if slices:
        yield from ("", "### Fitted metric by knob", "", *_table(SLICE_TITLES, slices))


def _lines(found: SessionSummary) -> Iterator[str]:
    state, started = found.state, found.state.started
    yield f"# {md(started.name if started else 'session')}"
    if started:
        yield from ("", md(question_of(state))) if question_of(state) else ()
        yield from ("", md(f"{when(started.wall)}, {load_time_words(found)}, cockpit {started.version}"))
    yield from _search(state)
    for claim, rows in capacity_tables(state):
        yield from ("", "## Capacity", "", md(claim), "", *_table(LEVEL_TITLES, rows))
    yield from _verdicts(found)
    if found.segments:
        rows = [(*row.cells, row.against, "; ".join(row.warnings)) for row in segment_cells(found)]
        yield from ("", "## Runs", "", *_table(SEGMENT_TITLES, rows))
        yield from ("", f"Times are {found.segments[-1].counts.latency_name} times in ms.")
    for fit in found.fits:
        yield from ("", "## Scalability", "", md(usl_line(fit)), "", *_table(USL_TITLES, map(usl_row, fit.levels)))
        yield from ("", *(f"- {md(line)}" for line in usl_details(fit)))
    yield from _hosts(found)
    if state.own_changes:
        yield from (
            "",
            "## Changes",
            "",
            *_table(CHANGE_TITLES, [change_cells(change) for change in state.own_changes]),
        )
    markers = list(marker_words(state))
    if markers:
        yield from ("", "## Timeline", "", *_table(("time", "", "event"), markers))
    yield from ("", "## Environment", "", *_pairs(environment_pairs(found)))
    for result in found.results:
        yield from ("", f"### {run_named(found, result.run).capitalize()}", "", *_pairs(run_words(result)))
        yield from (f"- warning: {md(warning)}" for warning in warning_texts(result))


def _verdicts(found: SessionSummary) -> Iterator[str]:
    if found.verdicts or found.thresholds:
        yield from ("", "## Verdicts")
    for verdict in found.verdicts:
        yield from ("", md(verdict_line(verdict)))
        effects = verdict.effects
        rows = [(metric_words(one.name), str(one.outcome), value_words(one), change_words(one)) for one in effects]
        if rows:
            yield from ("", *_table(("metric", "verdict", "before → after", "change (interval)"), rows))
        yield from ("", *(f"- {md(line)}" for line in method_lines(verdict)))
    if found.thresholds:
        rows = [
            (
                outcome.threshold.text,
                run_named(found, run),
                str(outcome.status),
                found_words(outcome),
            )
            for run, outcome in found.thresholds
        ]
        yield from ("", *_table(("threshold", "run", "verdict", "found"), rows))


def _hosts(found: SessionSummary) -> Iterator[str]:
    for name in found.state.hosts:
        titles, rows = host_means(found.segments, name)
        if rows:
            yield from ("", f"## {md(name)}", "", *_table(titles, rows))


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{'|'.join('---' for _ in titles)}|"
    for row in rows:
        yield f"| {' | '.join(md(cell) for cell in row)} |"


def _pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in pairs:
        yield f"- {md(name)}: {md(value)}"
