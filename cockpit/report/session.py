"""The report of a session: the document of which HTML and Markdown are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cockpit.analysis.capacity.result import capacity_result
from cockpit.analysis.capacity.scaling import usl_fits
from cockpit.analysis.rounds import rounds_verdict
from cockpit.analysis.thresholds import check_thresholds, parse_threshold
from cockpit.analysis.verdicts.segments import verdicts
from cockpit.analysis.words.capacity import capacity_words, limits_words
from cockpit.analysis.words.rounds import announcement_words, ended_words
from cockpit.analysis.words.thresholds import found_words
from cockpit.analysis.words.timeline import change_label, marker_sign, marker_text, segment_label
from cockpit.document.html import to_html
from cockpit.document.markdown import to_markdown
from cockpit.document.model import Block, Cell, Document, Items, Pairs, Paragraph, Part, Table
from cockpit.metrics.results import RunResult, all_results
from cockpit.model.errors import UsageError
from cockpit.model.state import Change, Segment, State
from cockpit.model.text import clock, count_text, milliseconds, si
from cockpit.report.capacity import capacity_blocks
from cockpit.report.hosts import growth_block, host_blocks
from cockpit.report.plots import latency_plots, timeline
from cockpit.report.run import run_blocks, run_named, segment_blocks
from cockpit.report.scaling import fit_blocks, fit_plot
from cockpit.report.search import search_blocks
from cockpit.report.stacks import counter_parts, stack_blocks
from cockpit.report.verdicts import verdict_section
from cockpit.report.words import plan_words, when

# Up to this many markers are listed unfolded.
_FEW_MARKERS = 12
# Maximum number of segments in one drawing; more could not be distinguished.
_MOST_SEGMENTS = 8
_CHANGE_TITLES = ("at", "change", "host", "outcome", "cost", "requested by")


def session_page(state: State, *more: Part) -> str:
    return to_html(session_document(state, *more))


def session_markdown(state: State, *more: Part) -> str:
    return to_markdown(session_document(state, *more))


def session_document(state: State, *more: Part) -> Document:
    """Return the report, with `more` parts at its end. The same state gives the same report."""
    segments = [segment for segment in state.segments if not segment.warmup]
    results = all_results(state)
    searches = [block for blocks in capacity_blocks(state) for block in blocks]
    fits = [block for fit in usl_fits(state) for block in (*fit_blocks(fit), fit_plot(fit))]
    hosts = [Part(name, host_blocks(state, host, segments)) for name, host in state.hosts.items()]
    details = [Part(run_named(segments, result.run), _run(result, state)) for result in results]
    sections = (
        Part("Search", search_blocks(state)),
        Part("Capacity", searches),
        Part(
            "Verdicts",
            [part for known in verdicts(state) for part in (verdict_section(known), *counter_parts(state, known))],
        ),
        Part("Timeline", [Paragraph("" if state.seconds else "No load.", "soft"), *timeline(state), _markers(state)]),
        Part("Runs", segment_blocks(segments, state)),
        Part("Scalability", fits),
        Part("Thresholds", [Table(("threshold", "run", "status", "found"), list(_thresholds(state, results)))]),
        Part("Latency", _latency(segments)),
        Part("Servers", hosts),
        Part("CPU profiles", stack_blocks(state, segments)),
        Part("Changes", _changes(state)),
        Part("Environment", [Pairs(_environment(state))]),
        Part("Details of runs", details),
        *more,
    )
    return Document(state.started.name if state.started else "session", _lead(state, segments, results), sections)


def _run(result: RunResult, state: State) -> list[Block]:
    grown = growth_block(state, result.segments)
    return [Paragraph(plan_words(result.plan), "code"), *run_blocks(result), grown]


def _lead(state: State, segments: Sequence[Segment], results: Sequence[RunResult]) -> list[Block]:
    """Return the question, the time, the load, and the main metrics of the last segment."""
    started = state.started
    if started is None:
        return []
    load = f"{sum(result.seconds for result in results):.0f} s of load"
    facts = (when(started.wall), count_text(len(results), "run"), load, f"cockpit {started.version}")
    return [
        Paragraph(" ".join(started.question.split()), "question"),
        Paragraph(" · ".join(facts), "soft"),
        *(Paragraph(plan_words(result.plan), "code") for result in results[-1:]),
        *(block for segment in segments[-1:] for block in _main_metrics(segment)),
    ]


def _main_metrics(segment: Segment) -> list[Block]:
    latency = segment.counts.latency
    percents = (("p50", 50), ("p99", 99), ("max", 100))
    times = [(f"{name} ms", milliseconds(latency.percentile(percent))) for name, percent in percents]
    values = [("req/s", si(segment.rate, 4)), *times, ("failed", si(segment.counts.failed))]
    return [Paragraph(f"segment {segment.number}: {segment_label(segment)}", "soft"), Pairs(values, tiles=True)]


def _thresholds(state: State, results: Sequence[RunResult]) -> Iterator[tuple[str | Cell, ...]]:
    """Yield the session's thresholds with their results. Those relative to a baseline are reported only by `check`."""
    segments = [segment for segment in state.segments if not segment.warmup]
    for text in state.started.thresholds if state.started else ():
        try:
            threshold = parse_threshold(text)
        except UsageError:
            # From a newer cockpit, or written by another program.
            continue
        for result in results if not threshold.of_baseline else ():
            (outcome,) = check_thresholds((threshold,), result)
            status = Cell(str(outcome.status), "" if outcome.holds else "bad")
            yield threshold.text, run_named(segments, result.run), status, found_words(outcome)


def _latency(segments: Sequence[Segment]) -> list[Block]:
    """Return the distributions of the first segment and of the newest ones with responses."""
    known = [segment for segment in segments if segment.counts.latency.count]
    drawn = known if len(known) <= _MOST_SEGMENTS else [known[0], *known[1 - _MOST_SEGMENTS :]]
    latencies = [(f"segment {segment.number}", segment.counts.latency, colour) for colour, segment in enumerate(drawn)]
    truncated = f"Shown: segment {known[0].number} and the last {_MOST_SEGMENTS - 1}." if drawn != known else ""
    missing = "No responses." if segments and not known else ""
    return [*latency_plots(latencies), Paragraph(truncated, "soft"), Paragraph(missing, "soft")]


def _markers(state: State) -> Part:
    rows = [(clock(marker.t), marker_sign(marker), marker_text(marker)) for marker in state.markers]
    folded = len(rows) > _FEW_MARKERS
    return Part(count_text(len(rows), "marker"), [Table(("time", "", "event"), rows)], folded=folded)


def _changes(state: State) -> list[Block]:
    diffs = [
        Items(change.diff.splitlines(), "code", f"diff of {change.letter}")
        for change in state.own_changes
        if change.diff
    ]
    shown = (change for change in state.changes if not change.trial or change.exceeded)
    return [Table(_CHANGE_TITLES, list(map(_change, shown))), *diffs]


def _change(change: Change) -> tuple[str, ...]:
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


def _environment(state: State) -> list[tuple[str, str]]:
    started = state.started
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


def _knob(value: str | None, known: bool) -> str:
    return ("unset" if value is None else value) if known else "not read"
