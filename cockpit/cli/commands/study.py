"""`cockpit study`: run a planned series of runs, from its plan to its verdicts."""

from __future__ import annotations

import asyncio
import secrets
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.analysis.capacity.levels import parse_limits
from cockpit.cli.appearance_options import appearance_of
from cockpit.cli.commands.report import study_as
from cockpit.cli.launcher import launcher_of
from cockpit.cli.live import RecordingTarget, report_gaps, run_headless
from cockpit.cli.profile_argument import addresses_of, named_profile
from cockpit.cli.study_folder import PAGE, RESULTS, StudyFolder, locked, open_folder, result_in, sessions_of
from cockpit.cli.study_progress import plan_text, schedule_lines, show_study
from cockpit.cli.terminal import emit, emit_text, on_terminal
from cockpit.cli.trust_prompt import require_trust
from cockpit.files import write_private
from cockpit.hosts.ssh.prompts import PromptQueue
from cockpit.model.errors import (
    EXIT_GOOD,
    EXIT_INTERRUPTED,
    EXIT_UNSTABLE,
    CockpitError,
    ProfileError,
    UsageError,
    naming,
)
from cockpit.model.load.checks import conflict
from cockpit.model.load.plan import url_without_password
from cockpit.model.state import State
from cockpit.model.study import Study, host_names, with_address
from cockpit.profiles.profile import Profile
from cockpit.recording.secrets import Secrets
from cockpit.session.capacity import searchable
from cockpit.session.controls import Mode
from cockpit.session.live_session import LiveSession
from cockpit.study.collecting import collect
from cockpit.study.history import keep_spread
from cockpit.study.journal import Journal, read_journal, write_journal
from cockpit.study.restorer import restore_recording, restore_settings
from cockpit.study.runner import StudyRunner

if TYPE_CHECKING:
    from cockpit.tui.terminal.appearance import Appearance


def study(options: Namespace) -> int:
    """Run a study. Exit 0: done; 4: done, and the A/A control differs; 5: a change rolled back; 130: interrupted."""
    profile, chosen = _chosen_study(options)
    if options.dry_run and options.json:
        raise UsageError(conflict("--json", "leave out --json: the plan is text"), "--dry-run")
    if options.dry_run:
        emit(plan_text(profile, chosen))
        return EXIT_GOOD
    require_trust(profile, options.profile, accepted=options.trust)
    folder = open_folder(options, profile.name, chosen)
    try:
        with Secrets(profile).redact_errors():
            return asyncio.run(_study(options, profile, chosen, folder))
    finally:
        folder.lock.release()


def _chosen_study(options: Namespace) -> tuple[Profile, Study]:
    """Return the profile and its study in the requested form, with the addresses of its URLs."""
    profile = named_profile(options.profile)
    chosen = profile.short_study if options.short else profile.study
    if chosen is None:
        raise ProfileError(f"{profile.name}: has no [study]; add one, or use: cockpit run {options.profile}")
    if chosen.until:
        _check_search(profile, chosen)
    addresses = addresses_of(host_names(chosen), options.ssh_config)
    seed = chosen.seed if options.seed is None else options.seed
    chosen = replace(chosen, addresses=tuple(addresses.items()), seed=seed)
    return replace(profile, plan=with_address(chosen.plan, addresses)), chosen


def _check_search(profile: Profile, chosen: Study) -> None:
    """Raise ProfileError for limits or a load that do not suit a capacity search."""
    try:
        parse_limits(chosen.until)
        searchable(chosen.plan)
    except CockpitError as error:
        raise ProfileError(f"{profile.name}: study.until: {error}") from None


async def _study(options: Namespace, profile: Profile, chosen: Study, folder: StudyFolder) -> int:
    """Restore the settings that a killed study left, run the remaining rounds, and print the result."""
    if folder.left is not None:
        await _restore_replaced(folder.left)
    if folder.journal.touched:
        print(f"cockpit: {folder.path}: restoring the settings of a killed study", file=sys.stderr)
        folder = folder._replace(
            journal=await restore_settings(folder.path, folder.journal, restore_recording(folder.path))
        )
    chosen = replace(chosen, seed=_seed(options, chosen, folder))
    fingerprint = chosen.fingerprint
    earlier = [state for state in sessions_of(folder.path) if state.study and state.study.fingerprint == fingerprint]
    known = collect(earlier, profile.name)
    interrupted = False
    if known is None or not known.ended:
        print(*schedule_lines(profile, chosen, known), sep="\n", file=sys.stderr)
        interrupted = await _run(options, profile, chosen, folder, earlier)
    elif not folder.journal.finished:
        write_journal(folder.path, replace(folder.journal, finished=True))
    result = result_in(folder.path)
    if result is None:
        return EXIT_INTERRUPTED if interrupted else EXIT_GOOD
    for name, form in RESULTS.items():
        with naming(folder.path / name, "be written"):
            write_private(folder.path / name, study_as(result, form).encode())
    form = "json" if options.json else "text"
    emit_text(lambda paint: study_as(result, form, paint).rstrip("\n"))
    print(f"cockpit: recorded in {folder.path}; charts are in {folder.path / PAGE}", file=sys.stderr)
    if interrupted:
        return EXIT_INTERRUPTED
    if result.ended and result.spread is not None:
        keep_spread(result.name, result.study.form, result.spread)
    return EXIT_UNSTABLE if result.control_differs else EXIT_GOOD


def _seed(options: Namespace, chosen: Study, folder: StudyFolder) -> int:
    """Return the seed of the order: that of an unfinished study, else --seed, else a random seed.

    Raises UsageError if --seed differs from the seed of the unfinished study.
    """
    known = folder.journal.seed if folder.continued else None
    if known is not None and options.seed not in (None, known):
        raise UsageError(f"{folder.path}: the unfinished study has seed {known}; leave out --seed, or add --fresh")
    if known is not None:
        return known
    return secrets.randbelow(1_000_000) if chosen.seed is None else chosen.seed


async def _restore_replaced(folder: Path) -> None:
    lock = locked(folder)
    try:
        journal = read_journal(folder)
        if journal is not None:
            print(f"cockpit: {folder}: restoring the settings of a killed study", file=sys.stderr)
            await restore_settings(folder, journal, restore_recording(folder))
    finally:
        lock.release()


async def _run(
    options: Namespace, profile: Profile, chosen: Study, folder: StudyFolder, earlier: Sequence[State]
) -> bool:
    """Run the remaining rounds, with the screen on a terminal; return whether they were interrupted."""
    screen = not options.no_tui and not options.json and on_terminal()
    questions = PromptQueue() if screen else None
    async with launcher_of(profile, options.ssh_config) as launcher:
        recorder = RecordingTarget(folder.recording).recorder(profile.name)
        live = LiveSession(profile, recorder, ssh_config=options.ssh_config, questions=questions, launcher=launcher)
        journal = _journal(options, profile, chosen, folder.journal)
        runner = StudyRunner(live, chosen, folder.path, journal, earlier)
        try:
            if not screen:
                return await _headless(live, runner)
            live.source.controls.mode = Mode.STUDY
            return await _on_screen(live, runner, appearance_of(options))
        finally:
            report_gaps(recorder)
            if not live.state.runs and not live.state.markers:
                folder.recording.unlink(missing_ok=True)


async def _headless(live: LiveSession, runner: StudyRunner) -> bool:
    async def rounds() -> bool:
        await runner.run()
        return True

    return await run_headless(live, rounds, show_study(live.session, runner)) is None


async def _on_screen(live: LiveSession, runner: StudyRunner, appearance: Appearance) -> bool:
    from cockpit.tui.study.screen import StudyApp

    app = StudyApp(live.session, runner, appearance)
    await app.run_async()
    return app.interrupted


def _journal(options: Namespace, profile: Profile, chosen: Study, journal: Journal) -> Journal:
    """Return the journal with everything needed to restore the settings of this session."""
    by_name = {action.name: action for action in profile.actions}
    return replace(
        journal,
        name=profile.name,
        fingerprint=chosen.fingerprint,
        seed=chosen.seed,
        finished=False,
        originals={},
        target=url_without_password(profile.plan.url),
        hosts=tuple(host.without_secrets() for host in profile.hosts),
        knobs=tuple(knob for knob in profile.knobs if knob.name in chosen.knobs),
        actions=tuple(by_name[name] for name in chosen.after),
        ssh_config=str(options.ssh_config.absolute()) if options.ssh_config else "",
    )
