"""What a study came to, as text for a terminal and as markdown."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from cockpit.analysis.connections import connection_words
from cockpit.analysis.doubt import doubts
from cockpit.analysis.words import method_lines, verdict_line
from cockpit.model.study import Look
from cockpit.model.text import milliseconds, neutral, si
from cockpit.report.study_charts import charts
from cockpit.report.study_doubts import grouped
from cockpit.report.study_table import rows
from cockpit.report.summary import errors_words, plan_words
from cockpit.study.plan import load_of
from cockpit.study.results import Cell, StudyResult, StudyRunResult

# Texts of looks are cut to so many characters a side.
_LONGEST_LOOK = 160
# What stands above the runs and looks in markdown.
DETAILS = "Runs and looks:"
# More verdicts than this are told in a line each.
_MOST_TOLD = 4


def study_text(result: StudyResult, width: int = 100) -> str:
    """Several lines without a line end after the last: table, what was left out, looks, charts, verdicts."""
    lines = [_title(result), *(f"  {line}" for line in question_lines(result)), f"  {load_line(result)}", ""]
    lines += [*table_lines(rows(result)), *_legend(result)]
    lines += _section("left out and steadiness", settling_lines(result))
    lines += _section("errors by kind, and lengths", error_lines(result))
    lines += _section("seen on the hosts, before → after", look_lines(result))
    for title, chart in charts(result, width):
        lines += _section(title, chart)
    lines += _section("verdicts", verdict_text(result))
    lines += _section("doubts", doubt_lines(result))
    return "\n".join(lines)


def study_markdown(result: StudyResult) -> str:
    """A heading, the question, the table, the verdicts and doubts; then, below `DETAILS`, every run and look."""
    table = rows(result)
    head, *body = ([cell.replace("|", "\\|") for cell in row] for row in table)
    lines = [
        f"### {neutral(result.name)}",
        "",
        " ".join(question_lines(result)),
        "",
        f"`{load_line(result)}`",
        "",
    ]
    lines += [f"| {' | '.join(head)} |", f"|{'|'.join(['---', *['---:'] * (len(head) - 1)])}|"]
    lines += [f"| {' | '.join(row)} |" for row in body]
    lines += [""]
    many = len(result.verdicts) > _MOST_TOLD
    told = [_counted(result)] if many else _headlines(result)
    told += [f"doubt: {line}" for line in doubt_lines(result)]
    lines += [f"- {_plain(line)}" for line in told]
    details = [*settling_lines(result), *error_lines(result), *look_lines(result)]
    details += _headlines(result) if many else []
    if details:
        lines += ["", DETAILS, "", *(f"- {_plain(line)}" for line in details)]
    return "\n".join(lines)


def _counted(result: StudyResult) -> str:
    """How many verdicts said what."""
    words = Counter(str(one.verdict.outcome) for one in result.verdicts)
    return f"{len(result.verdicts)} verdicts: {', '.join(f'{many} {word}' for word, many in words.most_common())}"


def _plain(text: str) -> str:
    return text.strip().replace("|", "\\|").replace("<", "&lt;")


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _title(result: StudyResult) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(result.wall))
    cut = "" if result.done >= result.steps else f" · {result.done} of {result.steps} steps"
    return f"study {neutral(result.name)} ({result.study.form}) · {when}{cut}"


def _legend(result: StudyResult) -> list[str]:
    """What the marks beside the number of runs mean, where there are any."""
    said = ["+ left out"] if any(cell.left_out for cell in result.cells) else []
    said += ["~ not steady"] if not result.steady else []
    said += ["… not whole"] if not all(cell.whole for cell in result.cells) else []
    return [f"  runs: counted {', '.join(said)}"] if said else []


def load_line(result: StudyResult) -> str:
    """Return the load of the first variant; that of the others differs by their target and level."""
    return plan_words(load_of(replace(result.study, addresses=()), result.study.arms[0], None))


def question_lines(result: StudyResult) -> list[str]:
    """Return the question, a line each; empty when the profile asks none."""
    return [neutral(line.strip()) for line in result.question.splitlines() if line.strip()]


def table_lines(table: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as they need, the first left, the others right."""
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    return [f"  {_aligned(row, widths)}".rstrip() for row in table]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])


def settling_lines(result: StudyResult) -> list[str]:
    """Where runs were left out: the figures of all, in order, those that count marked; and what never settled."""
    if not any(cell.left_out or not cell.steady for cell in result.cells):
        return []
    return [line for cell in result.cells for line in _settling(result, cell)]


def _settling(result: StudyResult, cell: Cell) -> Iterable[str]:
    by_visit: dict[tuple[int, int], list[str]] = {}
    for run in cell.runs:
        shown = _settling_figure(result, run)
        by_visit.setdefault((run.session, run.place.round), []).append(shown if run.counted else f"({shown})")
    figures = " · ".join(" ".join(one) for one in by_visit.values())
    unit = "p50" if result.study.plan.open else "req/s"
    yield f"{cell_name(result, cell)}: {unit} {figures}{'' if cell.steady else '  not steady'}"


def _settling_figure(result: StudyResult, run: StudyRunResult) -> str:
    """What is looked at to see whether runs agree."""
    if result.study.plan.open:
        return f"{milliseconds(run.result.counts.latency.percentile(50))} ms"
    return si(run.result.rate, 4)


def cell_name(result: StudyResult, cell: Cell) -> str:
    rung = [] if cell.rung is None else [f"{cell.rung:g}/s" if result.study.plan.open else f"c={cell.rung:g}"]
    return neutral(" · ".join([cell.arm, *rung, *([cell.part] if cell.part else [])]))


def error_lines(result: StudyResult) -> list[str]:
    """What failed, by kind, and how many replies had another length than the first, which is no failure."""
    lines = []
    for cell in result.cells:
        if cell.total is None:
            continue
        counts = cell.total.counts
        refused = {f"status {status}": many for status, many in counts.statuses.items() if status >= 400}
        found = {**counts.errors, **{f"other {kind}": many for kind, many in counts.unexpected.items()}, **refused}
        said = [errors_words(found)] if found else []
        said += (
            [f"{counts.varied} of {counts.completed} replies of another length, no failure"] if counts.varied else []
        )
        said += [connection_words(counts)] if counts.reconnects else []
        if said:
            lines.append(f"{cell_name(result, cell)}: {'; '.join(said)}")
    return lines


def look_lines(result: StudyResult) -> list[str]:
    """What each look that is no counter said before and after the last run that counts of each cell."""
    return [line for look in result.study.looks if not look.counter for line in _looks(result, look)]


def _looks(result: StudyResult, look: Look) -> Iterable[str]:
    for cell in result.cells:
        run = cell.counted[-1] if cell.counted else None
        if run is None:
            continue
        said = {one.after: one.detail or one.text for one in run.looks if one.look == look.name}
        before, after = (neutral(said.get(when, ""), _LONGEST_LOOK) for when in (False, True))
        moved = f"{before}, unchanged" if before == after else f"{before} → {after}"
        yield f"{neutral(look.name)}, {cell_name(result, cell)}: {moved}"


def verdict_text(result: StudyResult) -> list[str]:
    """A line each, and below it by which rules it was found, unless they are many: the JSON has those of each."""
    if len(result.verdicts) > _MOST_TOLD:
        return _headlines(result)
    lines = []
    for one in result.verdicts:
        lines += [verdict_line(one.verdict), *(f"  {line}" for line in method_lines(one.verdict))]
    return lines


def _headlines(result: StudyResult) -> list[str]:
    return [verdict_line(one.verdict) for one in result.verdicts]


def doubt_lines(result: StudyResult) -> list[str]:
    """What speaks against the figures of the cells."""
    cells = [cell for cell in result.cells if cell.total]
    found = [(cell_name(result, cell), doubt) for cell in cells if cell.total for doubt in doubts(cell.total)]
    return grouped(found, len(cells))
