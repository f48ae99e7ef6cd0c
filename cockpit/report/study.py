"""The report of a study: a summary for text and Markdown, and all of it for HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from cockpit.analysis.comparison import failures_by_kind
from cockpit.analysis.effects import more_is_better
from cockpit.analysis.intervals import FIRST_TEST
from cockpit.analysis.verdicts.outcome import Outcome, Verdict
from cockpit.analysis.warnings import Affected, RunWarning, run_warnings
from cockpit.analysis.words.capacity import capacity_words
from cockpit.analysis.words.objections import objection_words
from cockpit.analysis.words.usl import usl_details, usl_line
from cockpit.analysis.words.verdicts import (
    basis_words,
    conclusion_words,
    connection_words,
    discarded_words,
    method_lines,
    metric_words,
    stability_words,
    too_few_words,
    verdict_line,
)
from cockpit.analysis.words.warnings import grouped
from cockpit.document.html import to_html
from cockpit.document.markdown import to_markdown
from cockpit.document.model import Block, Cell, Document, Items, Pairs, Paragraph, Part, Table
from cockpit.document.text import Paint, plain, to_text
from cockpit.model.study import Observation, variant_plan
from cockpit.model.text import count_text, milliseconds, sanitize, si
from cockpit.report.forest import ForestRow, forest, name_cell, outcome_cell
from cockpit.report.scaling import fit_blocks, fit_plot, study_fits
from cockpit.report.study_plots import metric_plots, run_plots, study_latency_plots, varying_columns
from cockpit.report.study_table import StudyColumn, cell_name, rows
from cockpit.report.verdicts import verdict_section
from cockpit.report.words import errors_words, plan_words, when
from cockpit.study.plan import first_test
from cockpit.study.results import StudyCell, StudyResult, StudyRunResult, StudyVerdict
from cockpit.study.words import contradiction_words, needed_words, sensitivity_words, settings_of

# Maximum length of an observation (characters), per side.
_LONGEST_OBSERVATION = 160
# Title of the runs and observations in the summary, folded in the lab's page of results.
DETAILS = "Runs and observations"
# Up to this many verdicts are summarized with their methods.
_MOST_LISTED = 4
# Metrics with charts that are shown unfolded.
_OPEN = ("capacity", "rate", "p50", "p99", "max")


def study_text(result: StudyResult, paint: Paint = plain) -> str:
    """Return the summary without a trailing newline."""
    return to_text(study_summary(result), paint)


def study_markdown(result: StudyResult) -> str:
    return to_markdown(study_summary(result), level=3)


def study_page(result: StudyResult) -> str:
    return to_html(study_document(result))


def study_summary(result: StudyResult) -> Document:
    """Return the results, the verdicts, the warnings, the runs and observations, and the main plots."""
    rate = [column for column in varying_columns(result) if column.name == "rate"] if result.study.levels else []
    by_level = [plot for column in rate for plot in metric_plots(result, column)]
    plots = [] if result.study.until else [*(by_level or study_latency_plots(result)), *run_plots(result)]
    many = len(result.verdicts) > _MOST_LISTED
    details = [
        *_details(result),
        Part("all verdicts", [Items([_headline(compared) for compared in result.verdicts] if many else [])]),
    ]
    return _document(
        result,
        [
            Part("", _results(result)),
            Part("Verdicts", _conclusions(result, many)),
            Part("Scalability", [Items([usl_line(fit), *usl_details(fit)]) for fit in study_fits(result)]),
            Part("Warnings", [Items(_warnings(result), "warn")]),
            Part(DETAILS, details, folded=True),
            *(Part("", [plot]) for plot in plots),
        ],
    )


def study_document(result: StudyResult) -> Document:
    """Return the whole report. The same result gives the same report."""
    shown = varying_columns(result)
    more = [_metric(result, column) for column in shown if column.name not in _OPEN]
    dots = "Each dot is a run, pale or grey if not counted; lines pool all counted runs." if shown else ""
    metrics: list[Block | Part] = [
        Paragraph(dots, "soft"),
        *(_metric(result, column) for column in shown if column.name in _OPEN),
        Part(f"{len(more)} more metrics", more, folded=True),
    ]
    names = dict.fromkeys(effect.name for compared in result.verdicts for effect in compared.verdict.effects)
    return _document(
        result,
        [
            Part("Setup", _setup(result)),
            Part("Verdicts", _verdicts(result)),
            Part("Effects by metric", [_effects(result, name) for name in names]),
            Part("Load levels and runs" if result.study.levels else "Runs", metrics),
            Part("Scalability", [block for fit in study_fits(result) for block in (*fit_blocks(fit), fit_plot(fit))]),
            Part("Latency", study_latency_plots(result)),
            Part("Time course", run_plots(result)),
            Part("Results", [*_results(result), *_details(result)]),
            Part("Method and limits", [Items(method(result))]),
        ],
        _tiles(result),
    )


def _document(result: StudyResult, sections: Sequence[Part], lead: Sequence[Block] = ()) -> Document:
    steps = f"{result.counted_rounds} of at most {count_text(result.study.rounds, 'round')}"
    facts = (when(result.wall), f"{steps}{'' if result.ended else ', unfinished'}")
    question = Paragraph(" ".join(result.question.split()), "question")
    head = [question, Paragraph(" · ".join(facts), "soft"), Paragraph(_load(result), "code")]
    return Document(f"study {result.name} ({result.study.form})", [*head, *lead], sections)


def _tiles(result: StudyResult) -> list[Block]:
    """Return the number of verdicts by outcome, and the warnings about all metrics."""
    counted = Counter(compared.verdict.outcome for compared in result.verdicts if not compared.control)
    tiles = [(str(outcome), str(counted[outcome])) for outcome in Outcome] if result.verdicts else []
    missing = "" if result.verdicts else "No comparison has runs yet."
    general = Items(_warnings(result, lambda warning: warning.affected is Affected.ALL), "warn")
    return [Pairs(tiles, tiles=True), Paragraph(missing), general]


def _load(result: StudyResult) -> str:
    return plan_words(variant_plan(replace(result.study, addresses=()), result.study.variants[0], None))


def _results(result: StudyResult) -> list[Block]:
    """Return the table of all cells, and the legend of the marks beside the number of runs."""
    titles, *cells = rows(result)
    marks = ["+ discarded"] if any(cell.discarded for cell in result.cells) else []
    marks += ["~ unstable"] if result.unstable else []
    marks += ["… incomplete"] if not all(cell.complete for cell in result.cells) else []
    return [Table(titles, cells), Paragraph(f"runs: counted {', '.join(marks)}" if marks else "", "soft")]


def _details(result: StudyResult) -> list[Part]:
    details = (
        ("discarded and unstable runs", run_lines(result)),
        ("errors by kind, response lengths", error_lines(result)),
        ("observed on the hosts, before → after", observation_lines(result)),
    )
    return [Part(title, [Items(lines)], folded=True) for title, lines in details]


def _conclusions(result: StudyResult, many: bool) -> list[Block]:
    """Return the basis, the verdicts (of many: their numbers), and the lines of the methods, each once."""
    lines = [_outcome_counts(result)] if many else [_headline(compared) for compared in result.verdicts]
    methods = dict.fromkeys(line for compared in result.verdicts for line in method_lines(compared.verdict))
    return [Items([*rounds_lines(result), *lines]), Items([] if many else list(methods), title="method")]


def _headline(compared: StudyVerdict) -> str:
    against = contradiction_words(compared)
    words = (verdict_line(compared.verdict), needed_words(compared), f"! {against}" if against else "")
    return " · ".join(filter(None, words))


def rounds_lines(result: StudyResult) -> list[str]:
    """Return the basis of the verdicts: rounds, seed, method, minimum detectable effect."""
    study, done = result.study, result.counted_rounds
    words = f"{done} of at most {count_text(study.rounds, 'round')} in random order, seed {study.seed}"
    words += f", after {study.discard_rounds} discarded" if study.discard_rounds else ""
    repeated = [f"a step was repeated: {sanitize(reason, 400)}" for reason in result.repeated]
    if not study.compare:
        return [words, *repeated]
    if result.ended and done < study.rounds:
        words += ": every comparison was closed early"
    lines = [words]
    unknown = [cell for cell in result.cells if study.until and not cell.counted]
    lines += [
        f"{cell_name(result, cell)}: no capacity found in {count_text(len(cell.runs), 'run')}" for cell in unknown
    ]
    if study.rounds < FIRST_TEST:
        lines.append(f"fewer than {FIRST_TEST} rounds: one test; the variance between runs is pooled over all cells,")
        lines[-1] += " and intervals cover 91–95% if the cells are few"
    elif done < FIRST_TEST:
        lines.append(
            f"the tests begin after round {first_test(study)}; until then the variance is pooled over all cells"
        )
    return [*lines, sensitivity_words(study, result.spread, done=result.complete_rounds), *repeated]


def _outcome_counts(result: StudyResult) -> str:
    """Return the number of verdicts by outcome, the A/A control separately."""
    words = Counter(str(compared.verdict.outcome) for compared in result.verdicts if not compared.control)
    control = Counter(str(compared.verdict.outcome) for compared in result.controls)
    outcomes = ", ".join(f"{many} {word}" for word, many in words.most_common())
    aside = f"; A/A control: {', '.join(f'{many} {word}' for word, many in control.most_common())}" if control else ""
    return f"{sum(words.values())} verdicts: {outcomes}{aside}"


def run_lines(result: StudyResult) -> list[str]:
    """Return the cells with discarded or unstable runs: the metric of all runs in order, discarded ones in brackets,
    and the reason why runs were unstable."""
    return [line for cell in result.cells if cell.discarded or cell.unstable for line in _runs(result, cell)]


def _runs(result: StudyResult, cell: StudyCell) -> Iterable[str]:
    by_visit: dict[tuple[int, int], list[str]] = {}
    for run in cell.runs:
        shown = _run_metric(result, run)
        by_visit.setdefault((run.session, run.place.round), []).append(shown if run.counted else f"({shown})")
    metrics = " · ".join(" ".join(texts) for texts in by_visit.values())
    unit = "" if result.study.until else "p50 " if result.study.plan.open else "req/s "
    yield f"{cell_name(result, cell)}: {unit}{metrics}"
    if cell.unstable:
        first = cell.unstable[0]
        example = f"e.g. round {first.place.round}: {stability_words(first.stability)}"
        yield f"  {len(cell.unstable)} of {len(cell.counted)} runs unstable, {example}"


def _run_metric(result: StudyResult, run: StudyRunResult) -> str:
    if run.capacity is not None:
        return capacity_words(run.capacity).removeprefix("capacity ")
    if result.study.plan.open:
        return f"{milliseconds(run.result.counts.latency.percentile(50))} ms"
    return si(run.result.rate, 4)


def error_lines(result: StudyResult) -> list[str]:
    """Return failures by kind, and the number of responses of another length than the first, which are no failures."""
    lines = []
    for cell in result.cells:
        if cell.total is None:
            continue
        counts = cell.total.counts
        kinds = failures_by_kind(counts)
        parts = [errors_words(kinds)] if kinds else []
        parts += (
            [f"{counts.length_mismatches} of {counts.completed} responses differ in length, not a failure"]
            if counts.length_mismatches
            else []
        )
        parts += [connection_words(counts)] if counts.reconnects else []
        if parts:
            lines.append(f"{cell_name(result, cell)}: {'; '.join(parts)}")
    return lines


def observation_lines(result: StudyResult) -> list[str]:
    """Return the output of each observation that is not a counter, before and after the last counted run of each
    cell."""
    return [
        line
        for observation in result.study.observations
        if not observation.counter
        for line in _observations(result, observation)
    ]


def _observations(result: StudyResult, observation: Observation) -> Iterable[str]:
    for cell in result.cells:
        run = cell.counted[-1] if cell.counted else None
        if run is None:
            continue
        outputs = {
            output.after: output.detail or output.text for output in run.observations if output.name == observation.name
        }
        before, after = (sanitize(outputs.get(when, ""), _LONGEST_OBSERVATION) for when in (False, True))
        moved = f"{before}, unchanged" if before == after else f"{before} → {after}"
        yield f"{sanitize(observation.name)}, {cell_name(result, cell)}: {moved}"


def _setup(result: StudyResult) -> list[Block]:
    study = result.study
    variants = [
        (variant.name, ", ".join(settings_of(variant)) or "–", variant.url or "–", ", ".join(variant.before) or "–")
        for variant in study.variants
    ]
    order = [
        (f"order, round {turn.round}", ", ".join(dict.fromkeys(name for name, _ in turn.steps)))
        for turn in result.rounds
    ]
    plan = [
        ("rounds", f"{result.counted_rounds} of at most {study.rounds} in random order, seed {study.seed}"),
        ("runs", f"{study.runs} after each set-up, {study.discard} discarded before"),
    ]
    plan += [("discarded rounds", f"the first {study.discard_rounds}")] if study.discard_rounds else []
    plan += [("warm-up", f"{study.setup_warmup:g} s of load after each set-up")] if study.setup_warmup else []
    hosts = [
        (f"host {name}", f"{facts.hostname}, kernel {facts.kernel}, {facts.cpus} CPUs")
        for name, facts in result.hosts.items()
    ]
    places = [(f"generator's {name}", value) for name, value in sorted(result.environment.items())]
    table = Table(("variant", "settings", "target", "actions"), variants)
    return [table, Pairs([*plan, *order, *hosts, *places])]


def _verdicts(result: StudyResult) -> list[Block | Part]:
    """Return the basis, a table of the verdicts, their warnings, and all verdicts in full."""
    table = Table(
        ("comparison", "verdict", "change (95% interval)", "n"),
        [_verdict_row(compared) for compared in result.verdicts],
    )
    named = [(compared.verdict.label, warning) for compared in result.verdicts for warning in compared.verdict.warnings]
    return [
        Items(rounds_lines(result) if result.verdicts else [], "soft"),
        table,
        Items(grouped(named, len(result.verdicts)), "warn"),
        Part(
            "all verdicts in full, with their methods",
            [verdict_section(compared.verdict, []) for compared in result.verdicts],
            folded=True,
        ),
    ]


def _verdict_row(compared: StudyVerdict) -> tuple[str | Cell, ...]:
    notes = " · ".join(filter(None, (needed_words(compared), contradiction_words(compared))))
    return (
        name_cell(compared.verdict.label, control=compared.control),
        outcome_cell(compared.verdict.outcome),
        Cell(_shown(compared.verdict), note=notes),
        basis_words(compared.verdict),
    )


def _shown(verdict: Verdict) -> str:
    """Return the deciding effect, or the reason why there is none."""
    if verdict.objection is not None:
        return objection_words(verdict.objection)
    if not verdict.effects:
        return too_few_words(verdict)
    deciding = next((effect for effect in verdict.effects if effect.outcome is verdict.outcome), verdict.effects[0])
    return f"{metric_words(deciding.name)} {conclusion_words(deciding)}"


def _effects(result: StudyResult, name: str) -> Part:
    effects = [
        ForestRow(compared.verdict.label, effect, basis_words(compared.verdict), compared.control)
        for compared in result.verdicts
        if (effect := compared.verdict.effect(name)) is not None
    ]
    better = "higher is better" if more_is_better(name) else "lower is better"
    warnings = Items(_warnings(result, lambda warning: warning.is_about(name)), "warn")
    return Part(f"{metric_words(name)} ({better})", [forest("comparison", effects), warnings])


def _metric(result: StudyResult, column: StudyColumn) -> Part:
    warnings = Items(_warnings(result, lambda warning: warning.is_about(column.name)), "warn")
    return Part(column.head, [*metric_plots(result, column), warnings])


def method(result: StudyResult) -> list[str]:
    plain = [replace(compared.verdict, discarded=({}, {}), warnings=()) for compared in result.verdicts]
    lines = list(dict.fromkeys(line for verdict in plain for line in method_lines(verdict)))
    discarded = dict.fromkeys(
        discarded_words(seconds) for verdict in result.verdicts for seconds in verdict.verdict.discarded if seconds
    )
    lines += [f"discarded from the runs: {'; '.join(discarded)}"] if discarded else []
    if result.study.until:
        lines.append(f"each run is a search for the highest arrival rate with {result.study.until}; see help load")
    name = next((cell.total.counts.latency_name for cell in result.cells if cell.total), "service")
    lines.append(
        f"latencies are {name} times, measured by the generator; percentiles of a variant pool its counted runs"
    )
    lines.append("limit: the verdicts hold for this load, these hosts and this time")
    return lines


def _warnings(result: StudyResult, is_shown: Callable[[RunWarning], bool] = lambda _: True) -> list[str]:
    cells = [(cell_name(result, cell), cell.total) for cell in result.cells if cell.total]
    named = [(name, warning) for name, total in cells for warning in run_warnings(total)]
    return grouped([(name, warning) for name, warning in named if is_shown(warning)], len(cells))
