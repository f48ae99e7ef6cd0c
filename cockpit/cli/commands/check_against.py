"""`cockpit check HEAD --against BASE`: load both at the same time; exit 0, 4 or 99."""

from __future__ import annotations

from argparse import Namespace

from msgspec.structs import replace

from cockpit.analysis.verdicts.segments import verdicts
from cockpit.cli.commands.duet import LONGEST, until_verdict, without_competition
from cockpit.cli.live import RecordingTarget, headless, hlog_into
from cockpit.cli.load_plan import errors_name_flags
from cockpit.cli.profile_argument import chosen_profile
from cockpit.cli.terminal import emit_text, put
from cockpit.metrics.margins import TOLERATED_LOSS
from cockpit.metrics.results import all_results
from cockpit.model.errors import EXIT_INTERRUPTED, CockpitError, TargetError
from cockpit.model.load.checks import check_plan
from cockpit.model.load.plan import TargetVariant
from cockpit.profiles.plan import checked_url, without_credentials
from cockpit.profiles.profile import Profile
from cockpit.report.check_result import junit_without_run
from cockpit.report.duet_check import DuetCheck, duet_json, duet_junit, duet_markdown, duet_text


def check_against(options: Namespace) -> int:
    """Load target and base until it is known whether the target is worse, and write the reports."""
    try:
        checked = _run(options)
    except CockpitError as error:
        if options.junit:
            put((junit_without_run(without_credentials(options.target), str(error)),), options.junit)
        raise
    if checked is None:
        return EXIT_INTERRUPTED
    for path, render in ((options.junit, duet_junit), (options.markdown, duet_markdown)):
        if path:
            put((render(checked),), path)
    emit_text(lambda paint: duet_json(checked) if options.json else duet_text(checked, paint))
    return checked.exit_code


def _run(options: Namespace) -> DuetCheck | None:
    """Run the duet; return None if interrupted before any load. Raises TargetError, HostError."""
    profile = without_competition(_profile(options), options)
    with hlog_into(options.hlog) as listen:
        end = headless(profile, options.ssh_config, RecordingTarget(options.record), listen=listen)
    results, judged = all_results(end.state), verdicts(end.state)
    if not results or not judged:
        if end.interrupted:
            return None
        raise TargetError(f"{profile.plan.without_secrets().url}: no load was sent")
    return DuetCheck(result=results[-1], verdict=judged[0], interrupted=end.interrupted)


def _profile(options: Namespace) -> Profile:
    profile = chosen_profile(options)
    with errors_name_flags():
        urls = {"base": checked_url(options.against), "head": profile.plan.url}
        variants = tuple(TargetVariant(name=name, url=url) for name, url in urls.items())
        plan = replace(profile.plan, variants=variants)
        longest = options.duration or options.max_duration or LONGEST
        plan = until_verdict(plan, longest, options.margin or TOLERATED_LOSS)
        check_plan(plan)
    return replace(profile, plan=plan)
