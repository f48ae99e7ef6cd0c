"""Roll back a failed change: request the host's own undo, and report its outcome."""

from __future__ import annotations

import asyncio
import math
import shlex
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from cockpit.model.errors import ChangeRefused, ChangeRolledBack, CockpitError, HostError
from cockpit.model.knobs import SECRET
from cockpit.model.text import sanitize
from cockpit.tuning import files, pending
from cockpit.tuning.applied import AppliedChange, ChangeFailed, HistoryEntry
from cockpit.tuning.change_options import ChangeOptions, Failure
from cockpit.tuning.effect import wait_for_good_responses
from cockpit.tuning.files import Replacement
from cockpit.tuning.pending import PendingChange
from cockpit.tuning.plan import Plan

_Result = TypeVar("_Result")


async def undo(
    plan: Plan, change: PendingChange, options: ChangeOptions, error: BaseException
) -> BaseException | AppliedChange:
    """Have the host roll everything back; return the exception to raise.

    After an interruption or a bug that is `error` itself. If the change was confirmed before the connection was lost,
    return the change.
    """
    why = _reason(plan, error)
    timeouts = options.timeouts
    try:
        if isinstance(error, files.CommitRefused) and not error.replaced:
            with suppress(HostError):
                await change.discard()
            return ChangeRefused(f"{why}; nothing was changed")
        seconds = math.ceil(timeouts.command) * (1 + len(plan.tests) + len(plan.reloads) + len(plan.live_edits))
        outcome = await retry_while_unreachable(lambda: change.undo(seconds, why), timeouts.reach)
        if outcome.ended == "confirmed":
            return await _confirmed(change)
        replaced = error.replaced if isinstance(error, files.CommitRefused) else plan.replacements
        if lost := _not_rolled_back(plan, change.directory, replaced, outcome):
            return ChangeFailed(f"{why}; and {lost}")
        problem, note = await _after_rollback(plan, options, outcome)
    except HostError as gone:
        # With a guard the wait for the confirmation does not extend the lease.
        waits = math.ceil(options.approval.seconds) if options.approval and options.guard is None else 0
        longest = math.ceil(timeouts.command) + max(change.timeouts.lease, waits)
        unless = ", unless the confirmation reached it" if isinstance(error, pending.ConfirmationLost) else ""
        by_hand = f"sh {shlex.quote(f'{change.directory}/undo')}"
        return ChangeFailed(
            f"{why}; and {plan.host} is unreachable ({gone}). It rolls the change back by itself, within {longest} s "
            f"of the last message from here{unless}. {change.directory}/log there shows how it ended; "
            f"to roll back by hand: {by_hand}"
        )
    except ChangeRefused as stuck:
        return ChangeFailed(f"{why}; and the undo on {plan.host} did not finish: {stuck}")
    if problem:
        return ChangeFailed(f"{why}; rolled back, but {problem}")
    if isinstance(error, Failure | CockpitError):
        return ChangeRolledBack(f"{why}; rolled back{note}")
    return error


async def _confirmed(change: PendingChange) -> AppliedChange:
    """Read the record of a change whose confirmation reached the host, but whose response was lost."""
    try:
        return await pending.record(change.shell, "", change.directory)
    except ChangeRefused as error:
        raise ChangeRefused(f"it was confirmed, but {error}") from None


async def _after_rollback(plan: Plan, options: ChangeOptions, outcome: pending.UndoOutcome) -> tuple[str, str]:
    """Return the problem that remains after the rollback ("": none), and a note."""
    for word, number, why in outcome.failed:
        if word == "reload":
            command = _command(plan.reloads, number, "the reload")
            return plan.redacted(f"{command} fails with the original files too: {why}"), ""
    if outcome.reloaded:
        if wrong := await wait_for_good_responses(options.probe, options.timeouts.effect):
            return f"the server is not serving: {wrong}", ""
        return "", " and reloaded"
    for _, number, _ in outcome.failed:
        return "", plan.redacted(f" ({_command(plan.tests, number, 'the test')} fails without the change too)")
    return "", ""


def _command(commands: Sequence[str], number: int, name: str) -> str:
    """Return the command with this number, or `name` if the host reported an unknown number."""
    return sanitize(commands[number], 200) if number < len(commands) else name


def _reason(plan: Plan, error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return f"{plan.names}: interrupted"
    if isinstance(error, HostError):
        return f"{plan.names}: connection lost during the change ({plan.redacted(str(error))})"
    return f"{plan.names}: {plan.redacted(str(error))}"


def _not_rolled_back(plan: Plan, change: str, replaced: Sequence[Replacement], outcome: pending.UndoOutcome) -> str:
    """Describe files and values that were not rolled back, and the commands to restore the files; "" if all were."""
    lost = []
    for replacement in replaced:
        if why := files.rollback_problem(outcome.files.get(str(replacement.number), "")):
            lost.append(f"{replacement.before.file} {why}")
    by_hand = files.restore_by_hand(change, replaced) if lost else ""
    for number, live_edit in enumerate(plan.live_edits):
        knob = live_edit.knob
        state, _, rest = outcome.values.get(str(number), "").partition(" ")
        if state == "foreign":
            lost.append(f"{knob.name} was not rolled back: set to {knob.shown(rest)} elsewhere")
        elif state == "stuck":
            why = plan.redacted(pending.failure_reason(rest))
            lost.append(f"{knob.name} could not be restored to {knob.shown(live_edit.old)}: {why}")
    if not lost:
        return ""
    return "; ".join(lost) + (f". To restore the original, run on {plan.host}: {by_hand}" if by_hand else "")


async def require_rolled_back(
    change: PendingChange, host: str, past: HistoryEntry, outcome: pending.UndoOutcome
) -> None:
    """Raise ChangeFailed if the host's undo left files, values or the running server as changed."""
    problems = []
    for backup, file in await files.backups(change.shell, host, change.directory):
        if why := files.rollback_problem(outcome.files.get(backup.partition("-")[0], "")):
            problems.append(f"{sanitize(file)} {why} (original: {change.directory}/{backup})")
    names = ", ".join(setting.knob for setting in past.facts.settings)
    hidden = any(SECRET in (setting.old, setting.new) for setting in past.facts.settings)
    for report in outcome.values.values():
        state, _, rest = report.partition(" ")
        if state == "foreign":
            problems.append(f"{names}: not rolled back: set elsewhere")
        elif state == "stuck":
            problems.append(f"{names}: could not be restored" + ("" if hidden else f": {pending.failure_reason(rest)}"))
    problems += [
        f"the reload fails with the original files too: {why}" for word, _, why in outcome.failed if word == "reload"
    ]
    if problems:
        again = f"remove the cause, then repeat it: cockpit tune PROFILE undo {past.name}; or U, `leave` on the screen"
        raise ChangeFailed(f"{past.name}: not rolled back completely: {'; '.join(problems)}; {again}", subject=host)


async def retry_while_unreachable(step: Callable[[], Awaitable[_Result]], seconds: float) -> _Result:
    """Repeat a step while the host is unreachable, for at most `seconds`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        try:
            return await step()
        except HostError:
            if loop.time() >= deadline:
                raise
        await asyncio.sleep(min(1.0, seconds / 10))
