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
from cockpit.metrics.margins import MARGIN
from cockpit.metrics.results import RunResult
from cockpit.model.errors import EXIT_ALL_FAILED, EXIT_BUG, EXIT_GOOD, EXIT_INTERRUPTED, EXIT_THRESHOLD, EXIT_UNSTABLE
from cockpit.model.text import sanitize
from cockpit.report.check_result import CheckJson, CheckPart, document, suite_of
from cockpit.report.encoding import struct_from, to_json
from cockpit.report.run_json import run_json
from cockpit.report.summary import failure_words, plan_words, warning_texts

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


def duet_text(check: DuetCheck) -> str:
    base, head = check.targets
    lines = [plan_words(check.result.plan), f"  base {base}", f"  head {head}", f"  {verdict_line(check.verdict)}"]
    lines += [f"    {line}" for line in basis_lines(check.verdict)]
    return "\n".join((*lines, *(f"  ! {one}" for one in warning_texts(check.result)), f"check: {check.words}"))


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
    return document(suite_of(head, f"{check.result.seconds:.3f}", cases, error))


def duet_markdown(check: DuetCheck) -> str:
    """Return a comment for a change: the result, and a table of the metrics."""
    base, head = check.targets
    mark = "✅" if check.exit_code == EXIT_GOOD else "❌" if check.exit_code == EXIT_THRESHOLD else "❔"
    cells = [(metric_words(one.name), value_words(one), change_words(one), one) for one in check.verdict.rows]
    rows = [
        f"| {name} | {values} | {change} | {one.outcome}{detectable_words(one)} |"
        for name, values, change, one in cells
    ]
    table = ["| metric | base → head | change | verdict |", "|---|---|---|---|", *rows, ""] if rows else []
    lines = [
        f"### {mark} {check.words}",
        "",
        *table,
        f"{_code(head)} against {_code(base)}, both under the same load at the same time: "
        f"{plan_words(check.result.plan)}, {check.verdict.values[0] * check.verdict.block} s counted.",
        *(f"- ⚠ {one}" for one in warning_texts(check.result)),
    ]
    return "\n".join(lines) + "\n"


def _code(url: str) -> str:
    return f"`{url.replace('`', '%60')}`"
