"""`cockpit duet`: load two targets at the same time, until the verdict which is better."""

from __future__ import annotations

import sys
from argparse import Namespace

from msgspec.structs import replace

from cockpit.analysis.duet import on_one_host
from cockpit.cli.commands.run import run_profile
from cockpit.cli.live import RecordingTarget, headless
from cockpit.cli.load_plan import errors_name_flags
from cockpit.cli.profile_argument import chosen_profile
from cockpit.metrics.results import all_results
from cockpit.model.errors import TargetError, UsageError
from cockpit.model.load.checks import check_plan
from cockpit.model.load.plan import VERSUS, TargetVariant
from cockpit.profiles.plan import LONGEST_DUET, checked_url, until_verdict
from cockpit.profiles.profile import Profile

# Connections and seconds of the pilot; the share of its rate that each target gets.
_PILOT_CONNECTIONS, _PILOT, _SHARE = 10, 5.0, 0.25


def duet(options: Namespace) -> int:
    """Show the screen on a terminal; otherwise, or with --no-tui, run the duet and print its verdict."""
    if options.control and options.second_target:
        raise UsageError("--control loads the first target twice; leave the second URL out")
    profile = duet_profile(options, options.target if options.control else options.second_target)
    return run_profile(without_competition(profile, options), options)


def duet_profile(options: Namespace, second_target: str | None) -> Profile:
    """Return the profile of a duet of its target, or of its [[variant]] blocks. Raises UsageError, ProfileError."""
    profile = chosen_profile(options)
    plan = profile.plan
    if second_target:
        with errors_name_flags():
            urls = (plan.url, checked_url(second_target))
        variants = tuple(TargetVariant(name=name, url=url) for name, url in zip("AB", urls, strict=True))
        plan = until_verdict(replace(plan, variants=variants), options.duration or LONGEST_DUET)
        names = (Profile.of_url(replace(plan, url=url)).name for url in urls)
        profile = profile if profile.source else replace(profile, name=VERSUS.join(names))
    if not plan.variants:
        raise UsageError("a duet needs a second URL, --control, or two [[variant]] blocks in the profile")
    plan = replace(plan, margin=options.margin)
    with errors_name_flags():
        check_plan(plan)
    return replace(profile, plan=plan)


def without_competition(profile: Profile, options: Namespace) -> Profile:
    """Return a duet at a fixed rate if both targets are on one machine and no load is given: together they get half of
    what a pilot found that the first one can do, so that they do not take CPU from each other."""
    plan = profile.plan
    if profile.source is not None or options.concurrency is not None or plan.open or not on_one_host(plan):
        return profile
    pilot = replace(plan.parts[0], concurrency=_PILOT_CONNECTIONS, duration=_PILOT, extend=0.0)
    end = headless(replace(profile, plan=pilot), options.ssh_config, RecordingTarget(), quiet=True)
    results = all_results(end.state)
    if end.interrupted or not results or not results[0].counts.completed:
        raise TargetError(f"{pilot.without_secrets().url}: the pilot has no response; set a rate with -q")
    most = results[0].rate
    rate = float(f"{most * _SHARE:.2g}")
    print(
        f"cockpit: both targets are on one machine: {rate:g}/s for each, as {profile.plan.variants[0].name} can do "
        f"{most:.0f}/s; -q or -c set another load",
        file=sys.stderr,
    )
    return replace(profile, plan=replace(plan, rate=rate, concurrency=1))
