"""`cockpit tune`: use a profile's knobs and actions without the screen."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from cockpit.analysis.intervals import FIRST_TEST
from cockpit.analysis.rounds import Order, RoundsPlan, rounds_verdict
from cockpit.analysis.words.rounds import announcement_words, ended_words, window_words
from cockpit.analysis.words.verdicts import verdict_line
from cockpit.cli.launcher import launcher_of
from cockpit.cli.live import RecordingTarget, close_recording, run_headless
from cockpit.cli.load_plan import errors_name_flags
from cockpit.cli.profile_argument import at_address, named_profile
from cockpit.cli.progress import print_lines
from cockpit.cli.terminal import emit, typed_line
from cockpit.cli.trust_prompt import require_trust
from cockpit.cli.tune_output import (
    ActionJson,
    ChangeProgress,
    await_change,
    knob_json,
    knob_table,
    past_change_json,
    past_line,
    resolve_interrupted,
    value_text,
)
from cockpit.document.model import Document
from cockpit.document.text import to_text
from cockpit.model.errors import EXIT_GOOD, EXIT_INTERRUPTED, ChangeRefused, CockpitError, HostError, UsageError
from cockpit.model.knobs import Knob, ServerAction
from cockpit.model.load.checks import conflict
from cockpit.model.state import State
from cockpit.model.text import sanitize
from cockpit.profiles.plan import checked_url
from cockpit.profiles.profile import Profile
from cockpit.recording.secrets import Secrets
from cockpit.report.encoding import struct_from, to_json
from cockpit.report.verdicts import verdict_blocks, verdict_json
from cockpit.session.live_session import LiveSession
from cockpit.session.loop import Listener
from cockpit.session.tuning import FinalSide, RoundsResult, check_rounds
from cockpit.setup.profile_draft import hosts_named
from cockpit.tuning import history
from cockpit.tuning.applied import AppliedChange, HistoryEntry


def tune(options: Namespace) -> int:
    """Run a subcommand. Exit 5: the change was refused or rolled back; 3: a host is unreachable."""
    subcommands: dict[str, Callable[[Namespace, Profile], Coroutine[Any, Any, int | None]]] = {
        "show": _show,
        "set": _set,
        "undo": _undo,
        "history": _history,
        "rounds": measure_rounds,
        "action": _action,
    }
    return asyncio.run(subcommands[options.action](options, _profile(options))) or EXIT_GOOD


def _profile(options: Namespace) -> Profile:
    """Return the profile, with the target of --target. Raises UsageError, ProfileError."""
    profile = named_profile(options.profile)
    require_trust(profile, options.profile, accepted=options.trust)
    if url := getattr(options, "url", None):
        with errors_name_flags({"target.url": "--target"}):
            profile = replace(profile, plan=replace(profile.plan, url=checked_url(url)))
    hosts = getattr(options, "host", None)
    if profile.hosts and hosts:
        raise UsageError(conflict("the hosts of the profile", "leave it out, or name a URL"), "--host")
    if not profile.hosts and options.action in ("undo", "history"):
        profile = replace(profile, hosts=tuple(hosts_named(options.host)))
        if not profile.hosts:
            raise UsageError(f"tune {options.action}: no host; add --host, or name a profile with hosts")
    return at_address(profile, options.ssh_config)


@asynccontextmanager
async def _live(
    profile: Profile,
    options: Namespace,
    knobs: Sequence[Knob],
    actions: Sequence[ServerAction] = (),
    *,
    every_host: bool = False,
    record: bool = False,
    listen: Listener | None = None,
) -> AsyncIterator[LiveSession]:
    """Yield a session with the hosts of these knobs and actions. With `record` its changes are recorded in the library.
    With `every_host` it has all hosts of the profile, and does not wait for them.

    Raises HostError, UsageError if a host cannot be reached.
    """
    hosts = {knob.host for knob in knobs} | {action.host for action in actions}
    if every_host:
        hosts = {host.name for host in profile.hosts}
    part = replace(
        profile,
        hosts=tuple(replace(host, tail=(), status=()) for host in profile.hosts if host.name in hosts),
        knobs=tuple(knobs),
        actions=tuple(actions),
    )
    recorder = RecordingTarget(in_library=record).recorder(profile.name)
    check_target = not getattr(options, "no_probe", True)
    live = LiveSession(part, recorder, ssh_config=options.ssh_config, listen=listen, check_target=check_target)
    with Secrets(profile).redact_errors():
        try:
            async with live:
                await live.hosts_up(() if every_host else hosts)
                yield live
        finally:
            close_recording(recorder, live.state)


async def _show(options: Namespace, profile: Profile) -> None:
    """Print all knobs, or the named ones. An unreadable knob is an error only if it is named."""
    knobs = [_knob(profile, name) for name in options.names] or profile.knobs
    rows = []
    async with _live(profile, options, knobs) as live:
        for knob in knobs:
            value, problem = None, ""
            try:
                value = (await live.tuning.read([knob.name]))[knob.name]
            except HostError:
                raise
            except CockpitError as error:
                if options.names:
                    raise
                problem = str(error)
            rows.append(knob_json(knob, value, problem))
    if options.json:
        emit(to_json(rows))
    elif len(options.names) == 1:
        emit(value_text(rows[0]))
    else:
        emit("\n".join(knob_table(rows)) if rows else "the profile has no knobs; add a [[knob]] block to it")


async def _set(options: Namespace, profile: Profile) -> None:
    values = _assignments(options, profile)
    hosts = {_knob(profile, name).host for name in values}
    # Finishing an interrupted change may need any knob of its host.
    knobs = [knob for knob in profile.knobs if knob.host in hosts]
    progress = ChangeProgress(knobs, as_json=options.json)
    async with _live(profile, options, knobs, record=not options.dry_run, listen=progress.feed) as live:
        await resolve_interrupted(live.tuning, hosts)
        if options.dry_run:
            rows = [progress.preview(preview) for preview in await live.tuning.preview(values)]
        else:
            await live.knobs_read()
            changes = live.tuning.apply(values, options.confirm_within, _typed_yes)
            rows = progress.rows(await _await_outcomes(live, await await_change(changes)))
    if options.json:
        emit(to_json(rows))


async def _undo(options: Namespace, profile: Profile) -> None:
    """Undo the named change, else an interrupted one, else the newest applied one, else an incomplete rollback."""
    progress = ChangeProgress(profile.knobs, as_json=options.json)
    async with _live(profile, options, profile.knobs, every_host=True, record=True, listen=progress.feed) as live:
        histories, unread = await _histories(live)
        if options.change:
            host, past = history.find_change(_newest_first(histories), options.change)
        elif unread:
            step = f"name a change of cockpit tune {sanitize(options.profile)} history"
            raise ChangeRefused(f"the newest change may be on {', '.join(unread)}; {step}")
        else:
            host, past = _next_to_undo(histories)
        if past.state.is_unfinished:
            await live.tuning.interrupted.undo(host, past)
            rows = [progress.rolled_back(host)]
            if not options.json:
                emit(f"{host}: {past.name} is rolled back")
        else:
            history.check_newer(histories[host], past)
            await live.knobs_read(host)
            rows = progress.rows(await _await_outcomes(live, [await await_change(live.tuning.undo_past(host, past))]))
            if not options.json:
                print(f"{host}: {past.name} undone; repeat the command to undo the change before it", file=sys.stderr)
    if options.json:
        emit(to_json([replace(row, undoes=past.name) for row in rows]))


async def _await_outcomes(live: LiveSession, changes: Sequence[AppliedChange]) -> Sequence[AppliedChange]:
    await live.session.until(lambda state: sum(bool(change.outcome) for change in state.changes) >= len(changes))
    return changes


def _next_to_undo(histories: Mapping[str, Sequence[HistoryEntry]]) -> tuple[str, HistoryEntry]:
    """Return the host and the change to undo next. Raises ChangeRefused at the end of the history."""
    candidates = [(host, past) for host, each in histories.items() if (past := history.next_to_undo(each))]
    if not candidates:
        hosts = ", ".join(histories)
        raise ChangeRefused(f"nothing to undo: this user has no applied change on {hosts}")
    return max(candidates, key=lambda each: (history.urgency(each[1]), each[1].facts.when))


async def _histories(live: LiveSession) -> tuple[dict[str, list[HistoryEntry]], list[str]]:
    """Return the histories by host, and the tuned hosts without one. Warn of each host whose history cannot be read;
    raise its HostError, UsageError, ChangeRefused if there is no other."""
    histories: dict[str, list[HistoryEntry]] = {}
    errors: dict[str, CockpitError] = {}
    for host in live.profile.hosts:
        try:
            with Secrets(live.profile).redact_errors():
                await live.hosts_up((host.name,))
                histories[host.name] = await live.tuning.history(host.name)
        except CockpitError as error:
            errors[host.name] = error
    if not histories:
        raise next(iter(errors.values()))
    for problem in errors.values():
        print(f"cockpit: {sanitize(str(problem), 400)}; its changes are not listed", file=sys.stderr)
    tuned = {knob.host for knob in live.profile.knobs} or errors.keys()
    return histories, [host for host in errors if host in tuned]


def _newest_first(histories: Mapping[str, Sequence[HistoryEntry]]) -> list[tuple[str, HistoryEntry]]:
    changes = [(host, past) for host, each in histories.items() for past in each]
    return sorted(changes, key=lambda each: each[1].facts.when, reverse=True)


async def _history(options: Namespace, profile: Profile) -> None:
    async with _live(profile, options, (), every_host=True) as live:
        histories, _ = await _histories(live)
    past = _newest_first(histories)
    if options.json:
        emit(to_json([past_change_json(host, change) for host, change in past]))
    elif not past:
        emit("no changes yet")
    else:
        emit("\n".join(past_line(host, change) for host, change in past))


async def _action(options: Namespace, profile: Profile) -> None:
    """Run the named actions in this order; without names list all actions."""
    if not options.names:
        if options.json:
            emit(to_json([struct_from(ActionJson, each, done=False) for each in profile.actions]))
            return
        lines = [f"{each.name}  {each.host}  {each.times} x  {sanitize(each.command, 100)}" for each in profile.actions]
        emit("\n".join(lines) or "the profile has no actions; add an [[action]] block to it")
        return
    known = {action.name: action for action in profile.actions}
    for name in options.names:
        if name not in known:
            raise UsageError(f"unknown action {name!r}; the profile has: {', '.join(known) or 'none'}")
    done = []
    actions = [known[name] for name in options.names]
    async with _live(profile, options, (), actions, record=True) as live:
        for action in actions:
            await live.tuning.commands.act(action.name)
            done.append(struct_from(ActionJson, action, done=True))
            if not options.json:
                emit(f"{action.host}: {action.name} done{f' {action.times} times' if action.times > 1 else ''}")
    if options.json:
        emit(to_json(done))


async def measure_rounds(options: Namespace, profile: Profile) -> int:
    """Run rounds and print their verdict. Exit 0 with any verdict; 130: interrupted, the old values are active."""
    check_rounds(options.rounds, options.seconds)
    values = _assignments(options, profile)
    order = Order.MIRRORED if options.mirrored else Order.RANDOM
    plan = RoundsPlan(options.rounds, options.seconds, order, options.seed)
    async with launcher_of(profile, options.ssh_config) as launcher:
        recorder = RecordingTarget(options.record, in_library=True).recorder(profile.name)
        live = LiveSession(profile, recorder, ssh_config=options.ssh_config, launcher=launcher)
        try:
            return await _rounds(options, live, values, plan)
        finally:
            close_recording(recorder, live.state)


async def _rounds(options: Namespace, live: LiveSession, values: Mapping[str, str], plan: RoundsPlan) -> int:
    async def compare() -> RoundsResult:
        await live.hosts_read()
        afterwards = FinalSide.CHOSEN if options.keep else FinalSide.RESTORED
        return await live.tuning.compare_in_rounds(values, plan, afterwards)

    with Secrets(live.profile).redact_errors():
        proven = await run_headless(live, compare, print_lines(live.session, _round_lines))
    if proven is None:
        print("cockpit: interrupted; the old values are active again", file=sys.stderr)
        return EXIT_INTERRUPTED
    known = live.state.rounds[-1]
    verdict = rounds_verdict(live.state, known)
    if known.ended is not None:
        print(f"cockpit: {sanitize(ended_words(known, known.ended, verdict), 400)}", file=sys.stderr)
    if options.json:
        emit(to_json(None if verdict is None else verdict_json(verdict)))
    elif verdict is None:
        emit("inconclusive: no complete round")
    else:
        emit(to_text(Document("", verdict_blocks(verdict))))
    return EXIT_GOOD


def _round_lines(state: State) -> list[str]:
    if not state.rounds:
        return []
    rounds = state.rounds[-1]
    lines = [announcement_words(rounds.begun), *(window_words(rounds, window) for window in rounds.windows)]
    interim = rounds.ended is None and len(rounds.complete) >= FIRST_TEST
    if verdict := rounds_verdict(state, rounds) if interim else None:
        lines.append(f"after {len(rounds.complete)} rounds: {verdict_line(verdict)}")
    return lines


async def _typed_yes() -> bool:
    return await typed_line() in ("y", "yes")


def _assignments(options: Namespace, profile: Profile) -> dict[str, str]:
    """Return the values of NAME=VALUE arguments by knob. Raises UsageError, ChangeRefused for a value not allowed."""
    values: dict[str, str] = {}
    for text in options.names:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"tune {options.action}: {text!r}: write NAME=VALUE")
        knob = _knob(profile, name)
        if sanitize(value) != value:
            raise ChangeRefused(f"{knob.name}: a value is one line of text, without control characters")
        if why := knob.format_error(value):
            raise ChangeRefused(why)
        if why := knob.value_error(value):
            raise ChangeRefused(f"{knob.name}: {knob.shown(value, 80)!r} {why}")
        values[knob.name] = value
    return values


def _knob(profile: Profile, name: str) -> Knob:
    for knob in profile.knobs:
        if knob.name == name:
            return knob
    known = ", ".join(knob.name for knob in profile.knobs) or "none"
    raise UsageError(f"unknown knob {name!r}; the profile has: {known}")
