"""`cockpit check`: check new or recorded runs against thresholds and a baseline."""

from __future__ import annotations

import platform
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from statistics import fmean

from msgspec.structs import replace

from cockpit.analysis.baseline import Baseline, baseline_run
from cockpit.analysis.plans import differences
from cockpit.analysis.quick_check import QUICK
from cockpit.analysis.stability import run_stability
from cockpit.analysis.thresholds import (
    AbortCheck,
    Threshold,
    ThresholdResult,
    check_abort,
    check_thresholds,
    distinct,
    with_defaults,
)
from cockpit.analysis.verdicts.sides import Side
from cockpit.cli.commands.baseline import add_runs, baseline_runs, same_load, save_runs
from cockpit.cli.commands.check_against import run_against
from cockpit.cli.live import RecordingTarget, headless, hlog_into
from cockpit.cli.load_arguments import given_flags
from cockpit.cli.open_recording import recording_at
from cockpit.cli.profile_argument import chosen_profile, print_replay
from cockpit.cli.terminal import emit_text, put
from cockpit.cli.thresholds import thresholds_for, thresholds_of
from cockpit.metrics.results import RunResult, all_results, runs_result
from cockpit.model.errors import EXIT_INTERRUPTED, CockpitError, TargetError, UsageError
from cockpit.model.load.checks import conflict
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.model.text import sanitize
from cockpit.profiles.catalogue import find
from cockpit.profiles.plan import without_credentials
from cockpit.profiles.profile import Profile
from cockpit.recording.baselines import latest, load, path_of
from cockpit.recording.check_history import PastCheck, append
from cockpit.report.check import (
    CheckResult,
    check_json,
    check_markdown,
    check_text,
    junit,
    junit_without_run,
)
from cockpit.report.history import HEADLINES
from cockpit.session.selectors import is_recording, parse_source, runs_of

# Time limit (s) of a run without a duration, and of a quick check.
DEFAULT_MAX_DURATION = QUICK
# Flags of a run, besides those of its load plan, that do not apply to recordings.
_RUN_FLAGS = ("--ssh-config", "--record", "--hlog", "--abort-on", "--max-duration")
# Flags that do not apply to a check against a URL.
_ALONE_FLAGS = (
    *("--threshold", "--abort-on", "--baseline", "--save-baseline", "--add-to-baseline", "--force"),
    *("--stable", "--quick", "--runs", "--release"),
)
# Metrics of each host in the history.
_KEPT_OF_HOSTS = ("request.run", "processes.pss")


def check(options: Namespace) -> int:
    """Check runs. Exit 0: all thresholds hold; 99: one failed or lacks data; 4: inconclusive or unstable (--stable)."""
    if options.against and (given := _given(options, _ALONE_FLAGS)):
        raise UsageError(conflict("--against, which compares only with its URL", "leave it out"), ", ".join(given))
    if options.margin and not options.against:
        raise UsageError("needs --against URL", "--margin")
    try:
        # Profile names take precedence over files.
        recorded = not options.against and find(options.target) is None and is_recording(options.target)
        run = run_against if options.against else _recorded if recorded else _run
        checked = run(options)
    except CockpitError as error:
        if options.junit:
            put((junit_without_run(without_credentials(options.target), str(error)),), options.junit)
        raise
    if checked is None:
        return EXIT_INTERRUPTED
    emit_text(lambda paint: check_json(checked) if options.json else check_text(checked, paint))
    for path, render in ((options.junit, junit), (options.markdown, check_markdown)):
        if path:
            put((render(checked),), path)
    return checked.exit_code


def _run(options: Namespace) -> CheckResult | None:
    """Check new runs; return None if interrupted before any load. Raises TargetError, HostError."""
    profile = chosen_profile(options)
    print_replay(profile.plan)
    if options.quick and not profile.plan.stages:
        profile = replace(profile, plan=replace(profile.plan, duration=QUICK), max_duration=None)
    base = _baseline(options, profile.baseline, profile.plan)
    if options.quick and base is None:
        base = latest(profile.plan)
    thresholds = _with_defaults(thresholds_of(profile, options.threshold), base, profile.plan)
    abort_on = _abort_on(profile, options)
    if options.save_baseline:
        path_of(options.save_baseline)
    if options.add_to_baseline:
        same_load(options.add_to_baseline, profile.plan)
    breaker = AbortCheck(abort_on, base)
    max_duration = options.max_duration
    if max_duration is None:
        max_duration = QUICK if options.quick and profile.plan.stages else default_max_duration(profile)
    with hlog_into(options.hlog) as listen:
        outcome = headless(
            profile,
            options.ssh_config,
            RecordingTarget(options.record),
            limit=max_duration,
            listen=listen,
            stop_when=breaker,
            runs=options.runs or (1 if options.quick else profile.check_runs),
        )
    runs = all_results(outcome.state)
    if not runs:
        if outcome.interrupted:
            return None
        raise TargetError(f"{profile.plan.without_secrets().url}: no load was sent")
    result = runs_result(runs)
    stopped = result.reason == "stopped" and not outcome.interrupted and breaker.failed is None
    checked = CheckResult(
        target=profile.plan.without_secrets().url if profile.source is None else options.target,
        result=result,
        thresholds=_threshold_results(thresholds, abort_on, runs, breaker),
        aborted=breaker.failed,
        stopped_after=max_duration if stopped else None,
        stability=run_stability(outcome.state, result.segments) if options.stable or profile.stable else None,
        baseline=base,
        interrupted=outcome.interrupted,
    )
    _save(options, checked, outcome.state, runs)
    _keep(options.release, checked, outcome.state, runs)
    return checked


def default_max_duration(profile: Profile) -> float | None:
    """Return the time limit (s) of the profile, else the default for a load without an end (a replayed log has one)."""
    plan = profile.plan
    endless = plan.duration is None and not plan.stages and plan.replay is None
    return DEFAULT_MAX_DURATION if profile.max_duration is None and endless else profile.max_duration


def _threshold_results(
    thresholds: Sequence[Threshold], abort_on: Sequence[Threshold], runs: Sequence[RunResult], breaker: AbortCheck
) -> tuple[ThresholdResult, ...]:
    """Return the results at the end of the runs; a threshold that aborted a run keeps its result at that instant."""
    results = check_thresholds(distinct((*thresholds, *abort_on)), runs_result(runs), breaker.baseline, runs)
    failed = breaker.failed
    return tuple(failed if failed and each.threshold.key == failed.threshold.key else each for each in results)


def _save(options: Namespace, checked: CheckResult, state: State, results: Sequence[RunResult]) -> None:
    """Save complete runs as a baseline; print the reason if they are not saved."""
    if problem := _reason_not_saved(checked, results):
        for name in filter(None, (options.save_baseline, options.add_to_baseline)):
            print(f"cockpit: baseline {name}: not saved: {problem}", file=sys.stderr)
        return
    if not (options.save_baseline or options.add_to_baseline):
        return
    runs = baseline_runs(checked.target, state.started.wall if state.started else 0.0, results)
    if options.save_baseline:
        save_runs(options.save_baseline, runs, checked.result.plan)
    if options.add_to_baseline:
        add_runs(options.add_to_baseline, runs, checked.result.plan)


def _keep(release: str, checked: CheckResult, state: State, results: Sequence[RunResult]) -> None:
    """Add the check to the history of its target, unless it was interrupted or a run has no response."""
    if _reason_not_saved(checked, results):
        return
    runs = [baseline_run("", 0.0, result) for result in results]
    names = (*HEADLINES, *(f"{host}.{metric}" for host in checked.result.hosts for metric in _KEPT_OF_HOSTS))
    values = {name: [run.metric(name) for run in runs] for name in names}
    past = PastCheck(
        wall=state.started.wall if state.started else 0.0,
        release=sanitize(release, 100),
        machine=platform.node(),
        exit_code=checked.exit_code,
        plan=checked.result.plan.without_secrets(),
        metrics={name: fmean(known) for name, each in values.items() if len(known := _known(each)) == len(runs)},
    )
    try:
        append(checked.target, past)
    except UsageError as error:
        print(f"cockpit: not added to the history: {error}", file=sys.stderr)


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _reason_not_saved(checked: CheckResult, results: Sequence[RunResult]) -> str:
    """Return the reason why the runs cannot be a baseline; "" if they can."""
    if checked.interrupted:
        return "the check was interrupted"
    if checked.result.reason == "failed":
        return "the run failed"
    if checked.aborted:
        return f"{checked.aborted.threshold.text} ended the run early"
    if not all(result.counts.completed for result in results):
        return "a run has no response"
    return ""


def _given(options: Namespace, flags: Iterable[str]) -> list[str]:
    """Return the flags that are given."""
    return [flag for flag in flags if getattr(options, flag[2:].replace("-", "_"))]


def _recorded(options: Namespace) -> CheckResult:
    """Check the last run of a recording, or the selected run or time range."""
    given = [*given_flags(options).values(), *_given(options, _RUN_FLAGS)]
    if given:
        raise UsageError(conflict("a recording", "leave the load flags out"), ", ".join(given))
    if options.quick:
        raise UsageError(conflict("a recording", "leave it out"), "--quick")
    source = parse_source(options.target)
    with recording_at(source.path) as recording:
        return _check_sides(options, runs_of(recording, source, options.target, options.runs or 1))


def _check_sides(options: Namespace, sides: Sequence[Side]) -> CheckResult:
    state, runs = sides[-1].state, [side.result for side in sides]
    for run in runs:
        if unlike := differences(runs[0].plan, run.plan):
            raise UsageError(
                f"{options.target}: runs {runs[0].run} and {run.run} have different loads ({', '.join(unlike)}); "
                f"choose one as FILE#{run.run}"
            )
    result = runs_result(runs)
    base = _baseline(options, "", result.plan)
    own = state.started.thresholds if state.started else ()
    thresholds = thresholds_for(f"{options.target}: recorded threshold", own, options.threshold, list(state.hosts))
    checked = CheckResult(
        target=options.target,
        result=result,
        thresholds=check_thresholds(_with_defaults(thresholds, base, result.plan), result, base, runs),
        stability=run_stability(state, sum((side.segments for side in sides), ())) if options.stable else None,
        baseline=base,
    )
    _save(options, checked, state, runs)
    return checked


def _baseline(options: Namespace, configured: str, plan: LoadPlan) -> Baseline | None:
    """Return the baseline of the flag, else of the profile. Raises UsageError if its load differs."""
    name = options.baseline or configured
    if not name:
        return None
    base = load(name)
    unlike = differences(base.plan, plan)
    if unlike and not options.force:
        raise UsageError(f"baseline {name}: different load ({', '.join(unlike)}); compare with --force")
    return base


def _with_defaults(own: tuple[Threshold, ...], base: Baseline | None, plan: LoadPlan) -> tuple[Threshold, ...]:
    """Add the default thresholds. Raises UsageError if a threshold needs a baseline and there is none."""
    of_baseline = next((threshold for threshold in own if threshold.of_baseline), None)
    if of_baseline and base is None:
        raise UsageError(f"{of_baseline.text!r}: no baseline is given; add --baseline NAME (see cockpit baseline list)")
    return with_defaults(own, base, plan)


def _abort_on(profile: Profile, options: Namespace) -> tuple[Threshold, ...]:
    hosts = [host.name for host in profile.hosts]
    thresholds = thresholds_for(f"{profile.name}: check.abort_on", profile.abort_on, options.abort_on, hosts)
    return tuple(check_abort(threshold) for threshold in thresholds)
