"""`cockpit check HEAD --against BASE`: load both at the same time; exit 0, 4 or 99."""

from __future__ import annotations

import sys
from argparse import Namespace

from msgspec.structs import replace

from cockpit.analysis.verdicts.segments import verdicts
from cockpit.cli.commands.duet import without_competition
from cockpit.cli.live import RecordingTarget, headless, hlog_into
from cockpit.cli.load_plan import errors_name_flags
from cockpit.cli.profile_argument import chosen_profile, print_replay
from cockpit.metrics.margins import TOLERATED_LOSS
from cockpit.metrics.results import all_results
from cockpit.model.errors import TargetError
from cockpit.model.load.checks import check_plan
from cockpit.model.load.plan import TargetVariant
from cockpit.profiles.plan import LONGEST_DUET, checked_url, until_verdict
from cockpit.profiles.profile import Profile
from cockpit.report.check import CheckResult


def run_against(options: Namespace) -> CheckResult | None:
    """Load target and base until it is known whether the target is worse; return None if interrupted before any load.
    Raises TargetError, HostError."""
    profile = without_competition(_profile(options), options)
    print_replay(profile.plan)
    with hlog_into(options.hlog) as listen:
        end = headless(profile, options.ssh_config, RecordingTarget(options.record), listen=listen)
    results, judged = all_results(end.state), verdicts(end.state)
    if results and judged:
        target = results[-1].plan.variants[1].url
        return CheckResult(target=target, result=results[-1], verdict=judged[0], interrupted=end.interrupted)
    if end.interrupted:
        return None
    raise TargetError(f"{profile.plan.without_secrets().url}: no load was sent")


def _profile(options: Namespace) -> Profile:
    profile = chosen_profile(options)
    if profile.thresholds or profile.abort_on or profile.baseline:
        print(f"cockpit: {profile.name}: [check] is not used: only --against decides", file=sys.stderr)
    with errors_name_flags():
        urls = {"base": checked_url(options.against), "head": profile.plan.url}
        variants = tuple(TargetVariant(name=name, url=url) for name, url in urls.items())
        plan = replace(profile.plan, variants=variants, margin=options.margin or TOLERATED_LOSS)
        plan = until_verdict(plan, options.duration or options.max_duration or LONGEST_DUET)
        check_plan(plan)
    return replace(profile, plan=plan)
