"""`cockpit duet`: load two targets at the same time, until the verdict which is better."""

from __future__ import annotations

from argparse import Namespace

from msgspec.structs import replace

from cockpit.analysis.verdict_wait import FIRST
from cockpit.analysis.windows import GUARD
from cockpit.cli.load_plan import errors_name_flags
from cockpit.cli.profile_argument import chosen_profile
from cockpit.cli.run import run_profile
from cockpit.model.errors import UsageError
from cockpit.model.load import VERSUS, LoadPlan, Variant
from cockpit.model.load_checks import check_plan
from cockpit.profiles.plan import checked_url
from cockpit.profiles.profile import Profile

# Default maximum duration (s), and the shortest time in which a duet can conclude.
LONGEST = 120.0
SHORTEST = FIRST + GUARD + 1.0


def duet(options: Namespace) -> int:
    """Show the screen on a terminal; otherwise, or with --no-tui, run the duet and print its verdict."""
    if options.control and options.other:
        raise UsageError("--control loads the first target twice; leave the second URL out")
    return run_profile(duet_profile(options, options.target if options.control else options.other), options)


def duet_profile(options: Namespace, other: str | None) -> Profile:
    """Return the profile of a duet of its target, or of its [[variant]] blocks. Raises UsageError, ProfileError."""
    profile = chosen_profile(options)
    plan = profile.plan
    if other:
        with errors_name_flags():
            urls = (plan.url, checked_url(other))
        plan = replace(plan, variants=tuple(Variant(name=name, url=url) for name, url in zip("AB", urls, strict=True)))
        names = (Profile.of_url(replace(plan, url=url)).name for url in urls)
        profile = profile if profile.source else replace(profile, name=VERSUS.join(names))
    if not plan.variants:
        raise UsageError("a duet needs a second URL, --control, or two [[variant]] blocks in the profile")
    plan = until_verdict(plan, options.duration or LONGEST, options.margin)
    with errors_name_flags():
        check_plan(plan)
    return replace(profile, plan=plan)


def until_verdict(plan: LoadPlan, longest: float, margin: float | None) -> LoadPlan:
    """Return the plan of a duet that ends with its verdict, after `longest` seconds of load at the latest."""
    duration = min(longest, SHORTEST)
    return replace(plan, requests=None, duration=duration, extend=longest - duration, margin=margin)
