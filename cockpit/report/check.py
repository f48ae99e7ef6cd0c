"""The result of a check: as a document, as JSON, and as JUnit XML for build servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree

import msgspec

from cockpit.analysis.baseline import Baseline
from cockpit.analysis.duet import Loss, loss
from cockpit.analysis.stability import Stability
from cockpit.analysis.thresholds import Status, ThresholdResult
from cockpit.analysis.verdicts.outcome import Outcome, Verdict
from cockpit.analysis.words.thresholds import found_words
from cockpit.analysis.words.verdicts import (
    basis_lines,
    change_words,
    detectable_words,
    metric_words,
    stability_words,
    uses_factors,
    value_words,
    verdict_line,
)
from cockpit.document.markdown import to_markdown
from cockpit.document.model import Block, Cell, Document, Items, Pairs, Paragraph, Role, Table
from cockpit.document.text import Paint, plain, to_text
from cockpit.metrics.margins import MARGIN
from cockpit.metrics.results import RunResult
from cockpit.model.errors import EXIT_ALL_FAILED, EXIT_BUG, EXIT_GOOD, EXIT_INTERRUPTED, EXIT_THRESHOLD, EXIT_UNSTABLE
from cockpit.model.text import milliseconds, sanitize
from cockpit.report.encoding import struct_from, to_json
from cockpit.report.forest import role_of
from cockpit.report.run_json import LatencyJson, RunJson, StabilityJson, latency_json, run_json, stability_json
from cockpit.report.words import alert_of, errors_words, failure_words, plan_words, warning_texts

_EXITS = {
    Loss.WITHIN: EXIT_GOOD,
    Loss.BEYOND: EXIT_THRESHOLD,
    Loss.WORSE: EXIT_THRESHOLD,
    Loss.OPEN: EXIT_UNSTABLE,
}


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check of `target`, named as requested. `aborted` is the threshold, `stopped_after` the
    maximum duration (s), that ended the run early. `thresholds` are the threshold results. `stability` is None if it
    was not checked, `baseline` None without one. `verdict`: of a check against a base, with the plan's two variants
    (base and head); None without a base."""

    target: str
    result: RunResult
    thresholds: tuple[ThresholdResult, ...] = ()
    aborted: ThresholdResult | None = None
    stopped_after: float | None = None
    stability: Stability | None = None
    baseline: Baseline | None = None
    verdict: Verdict | None = None
    interrupted: bool = False

    @property
    def failed(self) -> tuple[ThresholdResult, ...]:
        return tuple(outcome for outcome in self.thresholds if outcome.status is Status.FAILED)

    @property
    def inconclusive(self) -> tuple[ThresholdResult, ...]:
        """The inconclusive thresholds, which more runs would settle."""
        return tuple(outcome for outcome in self.thresholds if outcome.status is Status.INCONCLUSIVE)

    @property
    def unstable(self) -> bool:
        return self.stability is not None and not self.stability.is_stable

    @property
    def exit_code(self) -> int:
        """The exit code, in this order: interrupted; the run failed; a threshold failed; all requests failed; worse
        than the base; unstable or inconclusive. An inconclusive check does not pass: to accept it takes an explicit
        decision."""
        if self.interrupted:
            return EXIT_INTERRUPTED
        if self.result.reason == "failed":
            return EXIT_BUG
        if self.failed or self.aborted:
            return EXIT_THRESHOLD
        if self.result.counts.all_failed:
            return EXIT_ALL_FAILED
        if self.verdict:
            return _EXITS[loss(self.verdict)]
        return EXIT_UNSTABLE if self.unstable or self.inconclusive else EXIT_GOOD

    @property
    def has_error(self) -> bool:
        """Whether the check has no result."""
        return self.exit_code in (EXIT_BUG, EXIT_ALL_FAILED, EXIT_INTERRUPTED)

    @property
    def words(self) -> str:
        """The result in one line."""
        if self.verdict and not self.has_error:
            if self.verdict.outcome is Outcome.INVALID:
                return f"no answer: {verdict_line(self.verdict)}"
            return str(loss(self.verdict)).replace("the margin", f"{100 * (self.result.plan.margin or MARGIN):g}%")
        return {
            EXIT_INTERRUPTED: "interrupted",
            EXIT_BUG: f"the run failed: {sanitize(self.result.detail)}",
            EXIT_ALL_FAILED: failure_words(self.result),
            EXIT_THRESHOLD: f"{len(self.failed)} of {len(self.thresholds)} thresholds failed",
            EXIT_UNSTABLE: "unstable"
            if self.unstable
            else f"{len(self.inconclusive)} of {len(self.thresholds)} thresholds inconclusive",
            EXIT_GOOD: "passed",
        }[self.exit_code]


class BaselineRunJson(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a baseline: its origin, the start of its session (epoch s), and the metrics of the load and of each
    host by the names that thresholds use."""

    source: str
    wall: float
    metrics: Mapping[str, float]
    response: LatencyJson
    service: LatencyJson
    hosts: Mapping[str, Mapping[str, float]]


class BaselineJson(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline: its name and its runs, in the order in which they were added."""

    name: str
    url: str
    runs: list[BaselineRunJson]


class CheckPart(msgspec.Struct, frozen=True, kw_only=True):
    """`exit` is the exit code, `result` its meaning as text. `aborted` is the threshold, `stopped_after` the maximum
    duration (s), that ended the run early; null: none. `stability` is null if it was not checked, `baseline` null
    without one."""

    exit: int
    result: str
    aborted: str | None
    stopped_after: float | None
    stability: StabilityJson | None
    baseline: BaselineJson | None


class CheckJson(RunJson, frozen=True, kw_only=True):
    """The JSON of the run and of the check."""

    check: CheckPart


def check_json(check: CheckResult) -> str:
    verdicts = (check.verdict,) if check.verdict else ()
    return to_json(struct_from(CheckJson, run_json(check.result, check.thresholds, verdicts), check=_part(check)))


def check_text(check: CheckResult, paint: Paint = plain) -> str:
    role: Role = {EXIT_GOOD: "good", EXIT_UNSTABLE: "warn"}.get(check.exit_code, "bad")  # type: ignore[assignment]
    text = to_text(check_document(check, plan_words(check.result.plan)), paint)
    return f"{text}\n{paint(sanitize(f'check: {check.words}'), role)}"


def check_markdown(check: CheckResult) -> str:
    """Return a comment for a change."""
    mark = {EXIT_GOOD: "✅", EXIT_THRESHOLD: "❌"}.get(check.exit_code, "❔")
    return to_markdown(check_document(check, f"{mark} {check.words}"), level=3)


def check_document(check: CheckResult, title: str) -> Document:
    """Return the main metrics, the thresholds or the verdict against the base, and the warnings."""
    result, base = check.result, check.baseline
    counts = result.counts
    times = "  ".join(f"p{percent} {milliseconds(counts.latency.percentile(percent))} ms" for percent in (50, 99))
    errors = f"{counts.failed} failed  errors {errors_words(counts.errors)}"
    sources = ", ".join(dict.fromkeys(run.source for run in base.runs)) if base else ""
    stopped = check.stopped_after
    lead: list[Block] = [
        Paragraph(f"{result.rate:.1f} req/s  {times}  {errors}"),
        *(_compared(check.verdict, result) if check.verdict else ()),
        Table(("status", "threshold", "found"), list(_rows(check))),
        Paragraph("" if check.thresholds or check.verdict else "no thresholds"),
        Paragraph(f"baseline {base.name}: {sanitize(sources, 200)}" if base else ""),
        Paragraph(f"ended at the maximum duration of {stopped:g} s" if stopped is not None else ""),
        Items(warning_texts(result), "warn"),
    ]
    return Document(title, lead, alert=alert_of(result))


def _compared(verdict: Verdict, result: RunResult) -> list[Block]:
    rows = [
        (
            metric_words(effect.name),
            value_words(effect),
            change_words(effect, uses_factors(verdict.effects)),
            f"{effect.outcome}{detectable_words(effect)}",
        )
        for effect in verdict.rows
    ]
    return [
        Pairs([*((variant.name, variant.url) for variant in result.plan.variants), ("load", plan_words(result.plan))]),
        Paragraph(verdict_line(verdict), role_of(verdict.outcome)),
        Table(("metric", "base → head", "change", "verdict"), rows),
        Items(basis_lines(verdict), title="method"),
    ]


def _rows(check: CheckResult) -> Iterator[tuple[str | Cell, ...]]:
    """Yield status, name and value of each threshold, then whether the run was stable, if that was checked."""
    for outcome in check.thresholds:
        early = "; ended the run early" if outcome is check.aborted else ""
        yield _STATUS[outcome.status], outcome.threshold.text, f"{found_words(outcome)}{early}"
    if check.stability is not None:
        status = Cell("UNSTABLE", "bad") if check.unstable else _STATUS[Status.HOLDS]
        yield status, "stable", stability_words(check.stability)


_STATUS = {
    Status.HOLDS: Cell("ok", "good"),
    Status.FAILED: Cell("FAILED", "bad"),
    Status.INCONCLUSIVE: Cell("INCONCLUSIVE", "warn"),
}


def junit(check: CheckResult) -> str:
    """Return a test suite with a case per threshold, one if the stability was checked, and one for the verdict."""
    cases = [(outcome.threshold.text, "" if outcome.holds else _failure_words(outcome)) for outcome in check.thresholds]
    if check.stability is not None:
        cases.append(("stable", stability_words(check.stability) if check.unstable else ""))
    if check.verdict and not check.has_error:
        why = "" if check.exit_code == EXIT_GOOD else f"{check.words}: {verdict_line(check.verdict)}"
        cases.append((f"not worse than {check.result.plan.variants[0].url}", why))
    error = check.words if check.has_error else ""
    suite = suite_of(check.target, f"{check.result.seconds:.3f}", cases, error)
    properties = ElementTree.Element("properties")
    for name, value in _properties(check):
        ElementTree.SubElement(properties, "property", {"name": name, "value": value})
    suite.insert(0, properties)
    lines = [sanitize(line) for line in check_text(check).split("\n")]
    ElementTree.SubElement(suite, "system-out").text = "\n".join(lines)
    return _whole(suite)


def suite_of(target: str, time: str, cases: Sequence[tuple[str, str]], error: str) -> ElementTree.Element:
    """Return a test suite. Cases are (name, reason of the failure, "" if passed); `error` is that of the run itself."""
    failures = sum(bool(why) for _, why in cases)
    counts = {"tests": len(cases) + bool(error), "failures": failures, "errors": int(bool(error)), "time": time}
    attributes = {"name": f"cockpit check {sanitize(target)}", **{name: str(count) for name, count in counts.items()}}
    suite = ElementTree.Element("testsuite", attributes)
    for name, why in cases:
        attributes = {"classname": sanitize(target), "name": sanitize(name), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", attributes)
        if why:
            ElementTree.SubElement(case, "failure", {"message": sanitize(why)}).text = sanitize(f"{name}: {why}")
    if error:
        case = ElementTree.SubElement(suite, "testcase", {"classname": sanitize(target), "name": "run", "time": time})
        ElementTree.SubElement(case, "error", {"message": sanitize(error)})
    return suite


def _failure_words(outcome: ThresholdResult) -> str:
    """Return why a threshold failed. JUnit has no third state, so an inconclusive threshold is a failure."""
    words = found_words(outcome)
    return f"inconclusive: {words}" if outcome.status is Status.INCONCLUSIVE else words


def junit_without_run(target: str, problem: str) -> str:
    """Return a test suite with the reason why the check was impossible."""
    return _whole(suite_of(target, "0", (), problem))


def _whole(suite: ElementTree.Element) -> str:
    root = ElementTree.Element("testsuites", {name: value for name, value in suite.attrib.items() if name != "name"})
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _properties(check: CheckResult) -> list[tuple[str, str]]:
    counts = check.result.counts
    properties = [("result", check.words), ("rate", f"{check.result.rate:.1f}"), ("failed", str(counts.failed))]
    properties += [(f"p{percent}_ms", milliseconds(counts.latency.percentile(percent))) for percent in (50, 99)]
    return properties + [(f"warning {at}", warning) for at, warning in enumerate(warning_texts(check.result), 1)]


def _part(check: CheckResult) -> CheckPart:
    base = check.baseline
    return CheckPart(
        exit=check.exit_code,
        result=check.words,
        aborted=check.aborted.threshold.text if check.aborted else None,
        stopped_after=check.stopped_after,
        stability=stability_json(check.stability) if check.stability else None,
        baseline=baseline_json(base) if base else None,
    )


def baseline_json(base: Baseline) -> BaselineJson:
    latencies = ("response", "service")
    runs = [
        struct_from(BaselineRunJson, run, **{name: latency_json(run.histograms[name]) for name in latencies})
        for run in base.runs
    ]
    return BaselineJson(name=base.name, url=base.plan.url, runs=runs)
