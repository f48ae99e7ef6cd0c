"""The result of a study as text for a terminal and as Markdown."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from cockpit.analysis.intervals import FIRST_TEST
from cockpit.analysis.warnings import run_warnings
from cockpit.analysis.words.capacity import capacity_words
from cockpit.analysis.words.verdicts import connection_words, method_lines, stability_words, verdict_line
from cockpit.analysis.words.warnings import grouped
from cockpit.model.study import Observation, variant_plan
from cockpit.model.text import count_text, milliseconds, sanitize, si
from cockpit.report.study_charts import charts
from cockpit.report.study_table import rows
from cockpit.report.summary import errors_words, plan_words
from cockpit.study.judging import level_words
from cockpit.study.plan import first_test
from cockpit.study.results import StudyCell, StudyResult, StudyRunResult, StudyVerdict
from cockpit.study.words import contradiction_words, needed_words, sensitivity_words

# Maximum length of an observation (characters), per side.
_LONGEST_OBSERVATION = 160
# Heading of the runs and observations in Markdown.
DETAILS = "Runs and observations:"
# Up to this many verdicts are shown with their methods.
_MOST_LISTED = 4


def study_text(result: StudyResult, width: int = 100) -> str:
    """Return the report without a trailing newline: table, verdicts, runs, observations, charts, warnings."""
    lines = [_title(result), *(f"  {line}" for line in question_lines(result)), f"  {load_line(result)}", ""]
    lines += [*table_lines(rows(result)), *_legend(result)]
    lines += _section("verdicts", [*rounds_lines(result), *verdict_text(result)])
    lines += _section("discarded and unstable runs", run_lines(result))
    lines += _section("errors by kind, response lengths", error_lines(result))
    lines += _section("observed on the hosts, before → after", observation_lines(result))
    for title, chart in charts(result, width):
        lines += _section(title, chart)
    lines += _section("warnings", warning_lines(result))
    return "\n".join(lines)


def study_markdown(result: StudyResult) -> str:
    """Return a heading, the question, the table, the verdicts and warnings; below `DETAILS`, all runs and
    observations."""
    table = rows(result)
    head, *body = ([cell.replace("|", "\\|") for cell in row] for row in table)
    lines = [
        f"### {sanitize(result.name)}",
        "",
        " ".join(question_lines(result)),
        "",
        f"`{load_line(result)}`",
        "",
    ]
    lines += [f"| {' | '.join(head)} |", f"|{'|'.join(['---', *['---:'] * (len(head) - 1)])}|"]
    lines += [f"| {' | '.join(row)} |" for row in body]
    lines += [""]
    many = len(result.verdicts) > _MOST_LISTED
    points = [*rounds_lines(result), *([_outcome_counts(result)] if many else _headlines(result))]
    points += [f"warning: {line}" for line in warning_lines(result)]
    lines += [f"- {_escaped(line)}" for line in points]
    details = [*run_lines(result), *error_lines(result), *observation_lines(result)]
    details += _headlines(result) if many else []
    if details:
        lines += ["", DETAILS, "", *(f"- {_escaped(line)}" for line in details)]
    return "\n".join(lines)


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
    words = Counter(str(one.verdict.outcome) for one in result.verdicts if not one.control)
    control = Counter(str(one.verdict.outcome) for one in result.controls)
    outcomes = ", ".join(f"{many} {word}" for word, many in words.most_common())
    aside = f"; A/A control: {', '.join(f'{many} {word}' for word, many in control.most_common())}" if control else ""
    return f"{sum(words.values())} verdicts: {outcomes}{aside}"


def _escaped(text: str) -> str:
    return text.strip().replace("|", "\\|").replace("<", "&lt;")


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _title(result: StudyResult) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(result.wall))
    cut = "" if result.ended else " · unfinished"
    return f"study {sanitize(result.name)} ({result.study.form}) · {when}{cut}"


def _legend(result: StudyResult) -> list[str]:
    """Return the legend of the marks beside the number of runs; empty without marks."""
    marks = ["+ discarded"] if any(cell.discarded for cell in result.cells) else []
    marks += ["~ unstable"] if result.unstable else []
    marks += ["… incomplete"] if not all(cell.complete for cell in result.cells) else []
    return [f"  runs: counted {', '.join(marks)}"] if marks else []


def load_line(result: StudyResult) -> str:
    return plan_words(variant_plan(replace(result.study, addresses=()), result.study.variants[0], None))


def question_lines(result: StudyResult) -> list[str]:
    return [sanitize(line.strip()) for line in result.question.splitlines() if line.strip()]


def table_lines(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table: columns as wide as needed, the first one aligned left, the others right."""
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    return [f"  {_aligned(row, widths)}".rstrip() for row in table]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])


def run_lines(result: StudyResult) -> list[str]:
    """Return the cells with discarded or unstable runs: the metric of all runs in order, discarded ones in brackets,
    and the reason why runs were unstable."""
    return [line for cell in result.cells if cell.discarded or cell.unstable for line in _runs(result, cell)]


def _runs(result: StudyResult, cell: StudyCell) -> Iterable[str]:
    by_visit: dict[tuple[int, int], list[str]] = {}
    for run in cell.runs:
        shown = _run_metric(result, run)
        by_visit.setdefault((run.session, run.place.round), []).append(shown if run.counted else f"({shown})")
    metrics = " · ".join(" ".join(one) for one in by_visit.values())
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


def cell_name(result: StudyResult, cell: StudyCell) -> str:
    words = (cell.variant, level_words(result.study, cell.level), cell.pass_name)
    return sanitize(" · ".join(filter(None, words)))


def error_lines(result: StudyResult) -> list[str]:
    """Return failures by kind, and the number of responses of another length than the first, which are no failures."""
    lines = []
    for cell in result.cells:
        if cell.total is None:
            continue
        counts = cell.total.counts
        refused = {f"status {status}": many for status, many in counts.statuses.items() if status >= 400}
        found = {**counts.errors, **{f"unexpected {kind}": many for kind, many in counts.unexpected.items()}, **refused}
        parts = [errors_words(found)] if found else []
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
        outputs = {one.after: one.detail or one.text for one in run.observations if one.name == observation.name}
        before, after = (sanitize(outputs.get(when, ""), _LONGEST_OBSERVATION) for when in (False, True))
        moved = f"{before}, unchanged" if before == after else f"{before} → {after}"
        yield f"{sanitize(observation.name)}, {cell_name(result, cell)}: {moved}"


def verdict_text(result: StudyResult) -> list[str]:
    """Return one line per verdict, then the methods: lines of a single verdict below it, common lines once at the end.
    With many verdicts the methods are left out; the JSON has them."""
    if len(result.verdicts) > _MOST_LISTED:
        return _headlines(result)
    methods = [method_lines(one.verdict) for one in result.verdicts]
    common = [line for line in methods[0] if all(line in each for each in methods)] if methods else []
    lines = []
    for one, method in zip(result.verdicts, methods, strict=True):
        lines += [_headline(one), *(f"  {line}" for line in method if line not in common)]
    return [*lines, *common]


def _headlines(result: StudyResult) -> list[str]:
    return [_headline(one) for one in result.verdicts]


def _headline(one: StudyVerdict) -> str:
    against = contradiction_words(one)
    words = (verdict_line(one.verdict), needed_words(one), f"! {against}" if against else "")
    return " · ".join(filter(None, words))


def warning_lines(result: StudyResult) -> list[str]:
    cells = [cell for cell in result.cells if cell.total]
    found = [(cell_name(result, cell), warning) for cell in cells if cell.total for warning in run_warnings(cell.total)]
    return grouped(found, len(cells))
