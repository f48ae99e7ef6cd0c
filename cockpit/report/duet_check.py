"""The result of a check against a base: as text, JSON, JUnit XML and Markdown."""

from __future__ import annotations

import msgspec

from cockpit.analysis.duet import Loss, loss
from cockpit.analysis.verdicts.outcome import Outcome, Verdict
from cockpit.analysis.words.verdicts import (
    basis_lines,
    change_words,
    detectable_words,
    metric_words,
    value_words,
    verdict_line,
)
from cockpit.document.markdown import to_markdown
from cockpit.document.model import Block, Document, Items, Pairs, Paragraph, Table
from cockpit.document.text import Paint, plain, to_text
from cockpit.metrics.margins import MARGIN
from cockpit.metrics.results import RunResult
from cockpit.model.errors import EXIT_ALL_FAILED, EXIT_BUG, EXIT_GOOD, EXIT_INTERRUPTED, EXIT_THRESHOLD, EXIT_UNSTABLE
from cockpit.model.text import sanitize
from cockpit.report.check_result import CheckJson, CheckPart, junit_document, result_line, suite_of
from cockpit.report.encoding import struct_from, to_json
from cockpit.report.run_json import run_json
from cockpit.report.words import failure_words, plan_words, warning_texts

_EXITS = {
    Loss.WITHIN: EXIT_GOOD,
    Loss.BEYOND: EXIT_THRESHOLD,
    Loss.WORSE: EXIT_THRESHOLD,
    Loss.OPEN: EXIT_UNSTABLE,
}


class DuetCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a duet of head and base, and its verdict."""

    result: RunResult
    verdict: Verdict
    interrupted: bool = False

    @property
    def exit_code(self) -> int:
        if self.interrupted:
            return EXIT_INTERRUPTED
        if self.result.reason == "failed":
            return EXIT_BUG
        return EXIT_ALL_FAILED if self.result.counts.all_failed else _EXITS[loss(self.verdict)]

    @property
    def words(self) -> str:
        """The result in one line."""
        if self.interrupted:
            return "interrupted"
        if self.result.reason == "failed":
            return f"the run failed: {sanitize(self.result.detail)}"
        if self.result.counts.all_failed:
            return failure_words(self.result)
        if self.verdict.outcome is Outcome.INVALID:
            return f"no answer: {verdict_line(self.verdict)}"
        return str(loss(self.verdict)).replace("the margin", f"{100 * (self.result.plan.margin or MARGIN):g}%")

    @property
    def targets(self) -> tuple[str, str]:
        """The URLs of base and head."""
        base, head = self.result.plan.variants
        return sanitize(base.url), sanitize(head.url)


def duet_text(check: DuetCheck, paint: Paint = plain) -> str:
    text = to_text(duet_document(check, plan_words(check.result.plan)), paint)
    return f"{text}\n{result_line(check.words, check.exit_code, paint)}"


def duet_markdown(check: DuetCheck) -> str:
    """Return a comment for a change."""
    mark = "✅" if check.exit_code == EXIT_GOOD else "❌" if check.exit_code == EXIT_THRESHOLD else "❔"
    return to_markdown(duet_document(check, f"{mark} {check.words}"), level=3)


def duet_document(check: DuetCheck, title: str) -> Document:
    """Return both targets, the verdict with its effects and method, and the warnings."""
    base, head = check.targets
    rows = [
        (metric_words(one.name), value_words(one), change_words(one), f"{one.outcome}{detectable_words(one)}")
        for one in check.verdict.rows
    ]
    lead: list[Block] = [
        Pairs([("base", base), ("head", head), ("load", plan_words(check.result.plan))]),
        Paragraph(verdict_line(check.verdict)),
        Table(("metric", "base → head", "change", "verdict"), rows),
        Items(basis_lines(check.verdict), title="method"),
        Items(warning_texts(check.result), "warn"),
    ]
    return Document(title, lead)


def duet_json(check: DuetCheck) -> str:
    part = CheckPart(
        exit=check.exit_code, result=check.words, aborted=None, stopped_after=None, stability=None, baseline=None
    )
    return to_json(struct_from(CheckJson, run_json(check.result, verdicts=(check.verdict,)), check=part))


def duet_junit(check: DuetCheck) -> str:
    """Return a test suite with one case, which fails unless the head is known to be no worse than the base."""
    why = "" if check.exit_code == EXIT_GOOD else f"{check.words}: {verdict_line(check.verdict)}"
    error = check.words if check.exit_code in (EXIT_BUG, EXIT_ALL_FAILED, EXIT_INTERRUPTED) else ""
    base, head = check.targets
    cases = [] if error else [(f"not worse than {base}", why)]
    return junit_document(suite_of(head, f"{check.result.seconds:.3f}", cases, error))
