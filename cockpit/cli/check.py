"""`cockpit check`: one run, held against thresholds."""

from __future__ import annotations

from argparse import Namespace

from cockpit.analysis.doubt import doubts
from cockpit.analysis.thresholds import hold, parse_threshold
from cockpit.cli.live import headless, hlog_into
from cockpit.cli.load_options import chosen_profile, thresholds_of
from cockpit.cli.terminal import tell
from cockpit.model.errors import EXIT_BUG, EXIT_GOOD, EXIT_INTERRUPTED, EXIT_THRESHOLD, TargetError
from cockpit.model.figures import RunResult, run_result
from cockpit.model.text import milliseconds
from cockpit.report.machine import as_json, run_json
from cockpit.report.summary import errors_words, plan_words, threshold_table

# What is held where neither profile nor command line says anything.
DEFAULT_THRESHOLD = "failed == 0"


def check(options: Namespace) -> int:
    """Exit 0 when every threshold holds, 99 when one does not; one without data does not."""
    profile = chosen_profile(options)
    thresholds = thresholds_of(profile, options.threshold) or (parse_threshold(DEFAULT_THRESHOLD),)
    with hlog_into(options.hlog) as listen:
        outcome = headless(profile, options.ssh_config, options.record, listen=listen)
    result = run_result(outcome.state, outcome.state.runs)
    if result is None:
        if outcome.interrupted:
            return EXIT_INTERRUPTED
        raise TargetError(f"{profile.plan.without_secrets().url}: no load was sent")
    held = hold(thresholds, result)
    if options.json:
        tell(as_json(run_json(result, held)))
    else:
        tell("\n".join((*_headline(result), threshold_table(held), *(f"  ! {doubt}" for doubt in doubts(result)))))
    if outcome.interrupted:
        return EXIT_INTERRUPTED
    if result.reason == "failed":
        return EXIT_BUG
    return EXIT_GOOD if all(one.holds for one in held) else EXIT_THRESHOLD


def _headline(result: RunResult) -> tuple[str, str]:
    """What was run, and the figures that are asked for first. Latencies are those that `p99` in a threshold means."""
    counts = result.counts
    p50, p99 = (milliseconds(counts.latency.percentile(percent)) for percent in (50, 99))
    errors = errors_words(counts.errors)
    return (
        plan_words(result.plan),
        f"  {result.rate:.1f} req/s  p50 {p50} ms  p99 {p99} ms  {counts.failed} failed  errors {errors}",
    )
