"""A study's result as one self-contained HTML page for screens, phones and paper."""

from __future__ import annotations

import time
from collections import Counter

from msgspec.structs import replace

from cockpit.analysis.effects import more_is_better
from cockpit.analysis.verdicts.outcome import Effect, Outcome, Verdict
from cockpit.analysis.warnings import Affected, run_warnings
from cockpit.analysis.words.objections import objection_words
from cockpit.analysis.words.verdicts import (
    basis_words,
    conclusion_words,
    discarded_words,
    method_lines,
    metric_words,
    too_few_words,
)
from cockpit.analysis.words.warnings import grouped
from cockpit.model.study import Variant
from cockpit.report.charts import text
from cockpit.report.forest import CONTROL_TAG, ForestRow, forest, outcome_words
from cockpit.report.page_parts import details_element, document, head, items, pairs, table, verdict_block
from cockpit.report.study import (
    cell_name,
    error_lines,
    load_line,
    observation_lines,
    question_lines,
    rounds_lines,
    run_lines,
)
from cockpit.report.study_page_charts import latency_charts, metric_chart, varying_columns
from cockpit.report.study_table import StudyColumn, labels, rows
from cockpit.study.results import StudyResult, StudyVerdict
from cockpit.study.words import contradiction_words, needed_words

# Metrics with charts that are shown unfolded.
_OPEN = ("capacity", "rate", "p50", "p99", "max")


def study_page(result: StudyResult) -> str:
    """Return the whole document. The same result gives the same page."""
    sections = (
        ("setup", "Setup", _setup(result)),
        ("verdicts", "Verdicts", _verdicts(result)),
        ("effects", "Effects by metric", _effects(result)),
        ("runs", "Load levels and runs" if result.study.levels else "Runs", _metrics(result)),
        ("latency", "Latency", "" if result.study.until else latency_charts(result)),
        ("results", "Results", _results(result)),
        ("method", "Method and limits", items(method(result))),
    )
    return document(result.name, _header(result), sections)


def _header(result: StudyResult) -> str:
    lines = [f"<h1>{text(result.name)}</h1>"]
    question = " ".join(question_lines(result))
    lines += [f"<p class=question>{text(question)}</p>"] if question else []
    began = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(result.wall))
    steps = f"{result.counted_rounds} of at most {result.study.rounds} rounds{'' if result.ended else ', unfinished'}"
    lines.append(f"<p class=soft>{text(f'study, {result.study.form} form · {began} · {steps}')}</p>")
    lines.append(f"<p class=mono>{text(load_line(result))}</p>")
    counted = Counter(one.verdict.outcome for one in result.verdicts if not one.control)
    tiles = "".join(f"<div><b>{counted[outcome]}</b><small>{outcome}</small></div>" for outcome in Outcome)
    lines.append(f'<div class="tiles">{tiles}</div>' if result.verdicts else "<p>No comparison has runs yet.</p>")
    lines.append(items(_warnings(result, None), "warn"))
    return "\n".join(lines)


def _setup(result: StudyResult) -> str:
    study = result.study
    variants = [(one.name, _settings(one), one.url or "–", ", ".join(one.before) or "–") for one in study.variants]
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
    return table(("variant", "settings", "target", "actions"), variants) + pairs([*plan, *order, *hosts, *places])


def _settings(variant: Variant) -> str:
    found = [f"{knob} {value}" for knob, value in variant.set]
    found += [f"{name} {getattr(variant, name):g}" for name in ("concurrency", "rate") if getattr(variant, name)]
    found += [] if variant.keepalive is None else [f"keep-alive {'on' if variant.keepalive else 'off'}"]
    found += [f"paths {variant.paths.pattern or len(variant.paths.listed)}"] if variant.paths else []
    found += [f"requests {', '.join(variant.mix)}"] if variant.mix else []
    return ", ".join(found) or "–"


def _verdicts(result: StudyResult) -> str:
    if not result.verdicts:
        return ""
    titles = ("comparison", "verdict", "change (95% interval)", "n")
    cells = "".join(f'<th class="words">{title}</th>' for title in titles)
    body = "".join(_verdict_row(one) for one in result.verdicts)
    blocks = "".join(verdict_block(one.verdict, "") for one in result.verdicts)
    shown = f'<table class="verdicts"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>'
    basis = items(rounds_lines(result), "soft")
    found = [(one.verdict.label, warning) for one in result.verdicts for warning in one.verdict.warnings]
    warned = items(grouped(found, len(result.verdicts)), "warn")
    return f'{basis}<div class="scroll">{shown}</div>\n{warned}' + details_element(
        "all verdicts in full, with their methods", blocks
    )


def _verdict_row(one: StudyVerdict) -> str:
    verdict = one.verdict
    word = outcome_words(Effect(name="", outcome=verdict.outcome))
    against = contradiction_words(one)
    needed = f"<br><small>{text(needed_words(one))}</small>" if needed_words(one) else ""
    warned = f"<br><span class=warn>{text(against)}</span>" if against else ""
    name = f"{text(verdict.label)}{CONTROL_TAG if one.control else ''}"
    cells = (name, word, f"{text(_shown(verdict))}{needed}{warned}", text(basis_words(verdict)))
    row = "".join(f"<td class=words>{cell}</td>" for cell in cells)
    return f"<tr{' class=control' if one.control else ''}>{row}</tr>"


def _shown(verdict: Verdict) -> str:
    """Return the deciding effect, or the reason why there is none."""
    if verdict.objection is not None:
        return objection_words(verdict.objection)
    if not verdict.effects:
        return too_few_words(verdict)
    deciding = next((one for one in verdict.effects if one.outcome is verdict.outcome), verdict.effects[0])
    return f"{metric_words(deciding.name)} {conclusion_words(deciding)}"


def _effects(result: StudyResult) -> str:
    names = dict.fromkeys(effect.name for one in result.verdicts for effect in one.verdict.effects)
    return "".join(_metric_effects(result, name) for name in names)


def _metric_effects(result: StudyResult, name: str) -> str:
    found = [
        ForestRow(one.verdict.label, effect, basis_words(one.verdict), one.control)
        for one in result.verdicts
        if (effect := one.verdict.effect(name)) is not None
    ]
    better = "higher is better" if more_is_better(name) else "lower is better"
    title = f"<h3>{text(metric_words(name))} <small>{better}</small></h3>"
    return f"<div class=metric>{title}{forest('comparison', found)}{items(_warnings(result, name), 'warn')}</div>\n"


def _metrics(result: StudyResult) -> str:
    shown = varying_columns(result)
    first = [_metric(result, column) for column in shown if column.name in _OPEN]
    others = [_metric(result, column) for column in shown if column.name not in _OPEN]
    note = "<p class=soft>Each dot is a run, pale or grey if not counted; lines pool all counted runs.</p>"
    if not shown:
        return ""
    return note + "".join(first) + details_element(f"{len(others)} more metrics", "".join(others))


def _metric(result: StudyResult, column: StudyColumn) -> str:
    notes = items(_warnings(result, column.name), "warn")
    return f"<div class=metric><h3>{text(column.head)}</h3>{metric_chart(result, column)}{notes}</div>\n"


def _results(result: StudyResult) -> str:
    """Return the table of the text report, with discarded runs, failures and observations folded below it."""
    titles, *cells = rows(result)
    names = len(labels(result))
    body = "".join(f"<tr>{''.join(_cell(at < names, one) for at, one in enumerate(row))}</tr>" for row in cells)
    shown = f'<div class="scroll"><table>{head(titles)}<tbody>{body}</tbody></table></div>\n'
    details = (
        ("discarded runs and stability", run_lines(result)),
        ("errors by kind, response lengths", error_lines(result)),
        ("observations on the hosts, before → after", observation_lines(result)),
    )
    return shown + "".join(details_element(title, items(lines)) for title, lines in details)


def _cell(is_name: bool, value: str) -> str:
    return f"<td{' class=words' if is_name else ''}>{text(value)}</td>"


def method(result: StudyResult) -> list[str]:
    plain = [replace(one.verdict, discarded=({}, {}), warnings=()) for one in result.verdicts]
    found = list(dict.fromkeys(line for verdict in plain for line in method_lines(verdict)))
    discarded = dict.fromkeys(
        discarded_words(one) for verdict in result.verdicts for one in verdict.verdict.discarded if one
    )
    found += [f"discarded from the runs: {'; '.join(discarded)}"] if discarded else []
    if result.study.until:
        found.append(f"each run is a search for the highest arrival rate with {result.study.until}; see help load")
    name = next((cell.total.counts.latency_name for cell in result.cells if cell.total), "service")
    found.append(
        f"latencies are {name} times, measured by the generator; percentiles of a variant pool its counted runs"
    )
    found.append("limit: the verdicts hold for this load, these hosts and this time")
    return found


def _warnings(result: StudyResult, metric: str | None) -> list[str]:
    """Return the warnings about a metric, by cell; None: those about all metrics."""
    cells = [cell for cell in result.cells if cell.total]
    found = [(cell_name(result, cell), one) for cell in cells if cell.total for one in run_warnings(cell.total)]
    kept = [
        (name, one) for name, one in found if (one.affected is Affected.ALL if metric is None else one.is_about(metric))
    ]
    return grouped(kept, len(cells))
