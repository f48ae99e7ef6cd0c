"""`cockpit run`: load a target, on the screen or headless."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from cockpit.cli.profile_argument import chosen_profile, print_replay
from cockpit.cli.streams import streams_of
from cockpit.load.preflight import Preflight, preflight
from cockpit.model.errors import CockpitError
from cockpit.profiles.profile import Profile


def run(options: Namespace) -> int:
    """Show the screen on a terminal; otherwise, or with --no-tui, run the load once and print its summary."""
    return run_profile(chosen_profile(options), options, options.until)


def run_profile(profile: Profile, options: Namespace, until: str | None = None) -> int:
    """Run a profile as `cockpit run` does: contact the target, then load all modules of a session and run it. `until`:
    limits of a capacity search instead of the plan."""
    print_replay(profile.plan)
    if until is not None:
        from cockpit.cli.run_session import check_search

        check_search(profile, options, until)
    streams = streams_of(options)
    contact = _first_contact(profile)
    from cockpit.cli.run_session import run_session

    return run_session(profile, options, streams, contact, until or "")


def _first_contact(profile: Profile) -> Preflight | None:
    """Contact the target of a plan; None if users are its load, or if other machines load it, which contact it with
    their own limits. Raises TargetError, UsageError.
    """
    if profile.plan.traffic or profile.load_elsewhere:
        return None
    try:
        return asyncio.run(preflight(profile.plan))
    except CockpitError:
        # Imported here: the module takes as long as all of the contact.
        from cockpit.recording.secrets import Secrets

        with Secrets(profile).redact_errors():
            raise
