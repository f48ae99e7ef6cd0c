"""`cockpit` without a command: show the start screen, and again after each screen opened from it."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from pathlib import Path

from msgspec.structs import replace

from cockpit.cli.appearance_options import appearance_of
from cockpit.cli.arguments import make_parser
from cockpit.cli.commands.replay import show_recording
from cockpit.cli.live import RecordingTarget, on_screen
from cockpit.cli.profile_argument import at_address, check_limits
from cockpit.cli.terminal import on_terminal
from cockpit.cli.typed_load import profile_of
from cockpit.model.errors import EXIT_GOOD, EXIT_INTERRUPTED, EXIT_USAGE, CockpitError, UsageError
from cockpit.model.host.samples import HostConfig
from cockpit.model.text import count_text
from cockpit.profiles.catalogue import listed, stamp
from cockpit.profiles.profile import Profile
from cockpit.profiles.reader import read_profile
from cockpit.profiles.trust import is_trusted
from cockpit.recording.check_history import checked_targets
from cockpit.recording.library import recent
from cockpit.tui.start.choices import Choice, StartChoices
from cockpit.tuning.discovery.local_servers import local_servers

# Recordings that are listed; `cockpit recordings list` has them all.
_RECENT = 30


def start(options: Namespace) -> int:
    """Show the start screen until it is closed or interrupted. Without a terminal print the help; exit 2."""
    if not on_terminal():
        make_parser().print_help(sys.stderr)
        return EXIT_USAGE
    from cockpit.cli.commands.history import document_of
    from cockpit.tui.start.app import StartApp
    from cockpit.tui.start.history import HistoryReader
    from cockpit.tui.start.screen import StartScreen

    message, bad, at = "", False, None
    while True:
        ssh_config = options.ssh_config
        first = StartScreen(
            _start_choices,
            check_url=profile_of,
            stamp=stamp,
            servers=local_servers,
            message=message,
            bad=bad,
            at=at,
            ssh_config=ssh_config,
        )
        app = StartApp(first, appearance_of(options), HistoryReader(checked_targets, document_of))
        choice = app.run()
        if app.interrupted:
            return EXIT_INTERRUPTED
        if choice is None:
            return EXIT_GOOD
        at = choice
        try:
            message, bad = _open(choice, options), False
        except CockpitError as error:
            message, bad = str(error), True
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
        if choice.kind == "demo" and not bad and (newest := recent(1)):
            message, at = "The demo has ended. Enter: replay it", Choice("recording", newest[0].info.path)


def _start_choices() -> StartChoices:
    return StartChoices(listed(), recent(_RECENT))


def _profile_of(choice: Choice) -> Profile:
    """Return the profile of a choice. Of a running server: its URL, its processes, and the settings found for it."""
    if choice.kind == "profile":
        return read_profile(Path(choice.what))
    profile = profile_of(choice.what)
    if choice.kind != "server":
        return profile
    from cockpit.setup.profile_draft import draft_of, survey

    print(f"cockpit: reading the settings of the server at {profile.plan.url} …", file=sys.stderr)
    surveyed = asyncio.run(survey(HostConfig(name="here"), profile.plan.url))
    draft = draft_of(profile.plan.url, [surveyed])
    hosts = tuple(host if host.processes else replace(host, processes=(choice.processes,)) for host in draft.hosts)
    return replace(profile, hosts=hosts, knobs=draft.knobs)


def _open(choice: Choice, options: Namespace) -> str:
    """Open the choice until it is closed; return a line about its end.

    Raises CockpitError, and KeyboardInterrupt if it was interrupted.
    """
    appearance = appearance_of(options)
    if choice.kind == "recording":
        if show_recording(Path(choice.what), appearance):
            raise KeyboardInterrupt
        return ""
    if choice.kind == "demo":
        from cockpit.cli.commands.demo import show_demo

        if asyncio.run(show_demo(RecordingTarget(in_library=True), appearance)).interrupted:
            raise KeyboardInterrupt
        return ""
    profile = at_address(_profile_of(choice), options.ssh_config)
    if not is_trusted(profile):
        raise UsageError(f"{profile.name}: edited since you accepted it; open it again to review its commands")
    check_limits(profile)
    outcome = asyncio.run(
        on_screen(profile, options.ssh_config, RecordingTarget(in_library=True), appearance=appearance)
    )
    if outcome.interrupted:
        raise KeyboardInterrupt
    runs = count_text(outcome.state.runs, "run") if outcome.state.runs else "no run"
    return f"{profile.name}: ended with {runs}; its recording is the first in the list"
