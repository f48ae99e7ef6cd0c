"""Session of `cockpit run`, on the screen or headless, and its results."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cockpit.analysis.capacity.levels import parse_limits
from cockpit.analysis.capacity.result import capacity_result
from cockpit.analysis.words.capacity import capacity_words
from cockpit.cli.appearance_options import appearance_of
from cockpit.cli.live import RecordingTarget, SessionEnd, headless, hlog_into, on_screen, report_recording
from cockpit.cli.terminal import emit, emit_text, is_headless
from cockpit.export.follow import Stream
from cockpit.hosts.feed import check_host
from cockpit.load.preflight import Preflight
from cockpit.metrics.results import all_results
from cockpit.model.errors import (
    EXIT_ALL_FAILED,
    EXIT_BUG,
    EXIT_GOOD,
    EXIT_INTERRUPTED,
    EXIT_THRESHOLD,
    EXIT_UNSTABLE,
    AuthRefused,
    CredentialsRequired,
    HostError,
    HostKeyChanged,
    UsageError,
)
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.checks import conflict
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.recording.secrets import Secrets
from cockpit.session.capacity import searchable


def run_session(
    profile: Profile, options: Namespace, streams: Sequence[Stream], contact: Preflight | None, until: str
) -> int:
    """Run a profile as `cockpit run` does. `contact`: the result of a contact with the target just before, if any.
    `until`: limits of a capacity search instead of the plan."""
    record_to = RecordingTarget.of(options)
    limit = options.duration if until else None
    with hlog_into(options.hlog) as listen:
        if is_headless(options):
            outcome = headless(
                profile,
                options.ssh_config,
                record_to,
                limit=limit,
                until=until,
                listen=listen,
                streams=streams,
                contact=contact,
            )
        else:
            appearance = appearance_of(options)
            with Secrets(profile).redact_errors():
                asyncio.run(check_hosts(profile.hosts, options.ssh_config))
            outcome = asyncio.run(
                on_screen(
                    profile,
                    options.ssh_config,
                    record_to,
                    start=options.start,
                    limit=limit,
                    until=until,
                    listen=listen,
                    appearance=appearance,
                    streams=streams,
                )
            )
    code = _print_results(outcome, options)
    report_recording(outcome.recording)
    return code


def check_search(profile: Profile, options: Namespace, until: str) -> None:
    """Check a capacity search within the limits `until` before anything starts. Raises UsageError."""
    parse_limits(until)
    searchable(profile.plan)
    if options.levels or options.requests:
        raise UsageError(conflict("--levels and -n, since it sets the load of each level"), "--until")


async def check_hosts(hosts: Sequence[HostConfig], ssh_config: Path | None) -> None:
    """Check hosts before the screen opens. Raises HostError.

    Unreachable hosts and hosts that ask a question are no errors: the screen shows them as lost, or shows the prompt.
    """
    problems = await asyncio.gather(*(check_host(config, ssh_config) for config in hosts), return_exceptions=True)
    for problem in problems:
        if isinstance(problem, BaseException) and not _shown_on_screen(problem):
            raise problem


def _shown_on_screen(problem: BaseException) -> bool:
    refused = isinstance(problem, HostKeyChanged | AuthRefused) and not isinstance(problem, CredentialsRequired)
    return isinstance(problem, HostError) and not refused


def _print_results(outcome: SessionEnd, options: Namespace) -> int:
    # Imported after the load, so that it starts sooner.
    from cockpit.analysis.verdicts.segments import verdicts
    from cockpit.report.encoding import to_json
    from cockpit.report.run import run_text
    from cockpit.report.run_json import run_json

    results = all_results(outcome.state)
    judged = verdicts(outcome.state)
    # The lines of --ndjson contain the results.
    for result in () if options.ndjson else results:
        if options.json:
            emit(to_json(run_json(result, verdicts=judged, state=outcome.state)))
        else:
            emit_text(partial(run_text, result, judged, outcome.state))
    if outcome.interrupted:
        return EXIT_INTERRUPTED
    if any(result.reason == "failed" for result in results):
        return EXIT_BUG
    if outcome.state.capacities and outcome.state.capacities[-1].ended is not None:
        return _search_code(outcome.state)
    return EXIT_ALL_FAILED if any(result.counts.all_failed for result in results) else EXIT_GOOD


def _search_code(state: State) -> int:
    """Return the exit code of the last capacity search; print why it found no capacity."""
    result = capacity_result(state, state.capacities[-1])
    if result.outcome in ("found", "generator", "budget"):
        return EXIT_GOOD
    print(f"cockpit: {capacity_words(result)}", file=sys.stderr)
    return EXIT_THRESHOLD if result.outcome == "lowest" else EXIT_UNSTABLE
