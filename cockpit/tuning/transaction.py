"""Carrying a plan out on its host so that it ends in one of two ways: in force, or every file as it was.

Back up, send, replace, test, reload, wait for the effect, read back. Whatever goes wrong after the first file may
have been replaced (a failing command, a lost connection, Ctrl-C) leads to `_undo`, which can be repeated safely.
The undo is driven from here: when the cockpit dies or the connection stays away, the host keeps the new files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from cockpit.model.errors import ChangeRefused, ChangeUndone, CockpitError, HostError
from cockpit.model.knobs import Knob
from cockpit.model.text import neutral
from cockpit.tuning import files
from cockpit.tuning.applied import Applied, ChangeFailed, FileChange
from cockpit.tuning.plan import Plan, value_in
from cockpit.tuning.remote import Remote

# Called before the reload; what it returns is awaited after it, and gives "" once the change is in force, or why it
# is not. It bounds its own time.
InForce = Callable[[Remote, Sequence[Knob]], Awaitable[Callable[[], Awaitable[str]]]]


class Patience(NamedTuple):
    """Seconds: for a test or reload command, and for reaching a lost host again to put its files back."""

    command: float = 60.0
    reach: float = 45.0


PATIENCE = Patience()


class _Failure(Exception):
    """A step of the change failed; the message goes to the user after the files are back."""


class _State:
    """How far a change has come, for the way back."""

    def __init__(self) -> None:
        self.reload_begun = False


async def carry_out(shell: Remote, plan: Plan, in_force: InForce | None, patience: Patience) -> Applied:
    """Puts the plan into force. Raises ChangeRefused (nothing touched), ChangeUndone (all put back), ChangeFailed
    (could not be put back whole), HostError (lost before anything was touched)."""
    if not plan.replacements:
        note = "nothing to change: the files hold these values already"
        return Applied(host=plan.host, settings=plan.settings, notes=(*plan.notes, note))
    change = await _prepared(shell, plan)
    state = _State()
    try:
        await _to_its_end(files.commit(shell, change, plan.replacements))
        notes = await _into_force(shell, plan, change, in_force, patience, state)
    except (Exception, asyncio.CancelledError) as error:
        way_back = asyncio.ensure_future(_undo(shell, plan, change, patience, state, error))
        await _see_through(way_back)
        if way_back.result() is error:
            raise
        raise way_back.result() from error
    written = tuple(
        FileChange(
            file=r.before.file,
            real=r.before.real,
            before=r.before.digest,
            after=r.digest,
            backup=files.backup(change, r),
        )
        for r in plan.replacements
    )
    return Applied(host=plan.host, settings=plan.settings, files=written, edits=plan.edits, notes=(*plan.notes, *notes))


async def _prepared(shell: Remote, plan: Plan) -> str:
    """Originals kept and new content sent, in a directory of the change's own. On failure that directory goes."""
    change = await files.open_change(shell, plan.host)
    try:
        for replacement in plan.replacements:
            await files.stage(shell, change, replacement)
    except (CockpitError, asyncio.CancelledError):
        with suppress(CockpitError):
            await files.discard(shell, change)
        raise
    return change


async def _into_force(
    shell: Remote, plan: Plan, change: str, in_force: InForce | None, patience: Patience, state: _State
) -> list[str]:
    """Test, reload, wait, read back; remarks. Raises _Failure naming the command that failed and what it says."""
    for command in plan.tests:
        if said := await files.run(shell, change, command, patience.command):
            raise _Failure(f"{neutral(command, 200)} says: {said}")
    effect = await in_force(shell, plan.knobs) if in_force else None
    state.reload_begun = True
    for command in plan.reloads:
        if said := await files.run(shell, change, command, patience.command):
            raise _Failure(f"{neutral(command, 200)} says: {said}")
    if effect and (why := await effect()):
        raise _Failure(f"it did not come into force: {why}")
    return await _read_back(shell, plan)


async def _read_back(shell: Remote, plan: Plan) -> list[str]:
    """Holds what the files say now against what was written; a remark for each file that somebody else wrote."""
    after = {r.before.real: r.digest for r in plan.replacements}
    now = {knob.file: await files.read(shell, plan.host, knob.file) for knob in plan.knobs}
    for edit in plan.edits:
        found = value_in(now[edit.knob.file], edit.knob)
        if found.raw != edit.new:
            value = "unset" if found.value is None else found.value
            raise _Failure(f"somebody else set it to {neutral(value, 200)} in {edit.knob.file} meanwhile")
    return [
        f"somebody else wrote {file.file} while it was put into force; the values stand"
        for file in now.values()
        if file.digest != after.get(file.real)
    ]


async def _undo(
    shell: Remote, plan: Plan, change: str, patience: Patience, state: _State, error: BaseException
) -> BaseException:
    """Puts the files back and says, as the exception to raise, how the change ended; an interruption or a bug goes on
    as what it was."""
    why = _reason(plan, error)
    replaced = error.replaced if isinstance(error, files.CommitRefused) else plan.replacements
    try:
        if not replaced:
            with suppress(HostError):
                await files.discard(shell, change)
            return ChangeRefused(f"{why}; nothing was changed")
        outcome = await _persistently(lambda: files.put_back(shell, change, replaced), patience.reach)
        if lost := _not_back(plan.host, outcome, files.restore_by_hand(change, replaced)):
            return ChangeFailed(f"{why}; and {lost}")
        trouble, remark = await _settle(shell, plan, change, patience, state)
    except HostError as gone:
        return ChangeFailed(
            f"{why}; and {plan.host} is out of reach ({gone}), so the change may stand there half done. "
            f"Look at it; the original comes back with: {files.restore_by_hand(change, replaced)}"
        )
    if trouble:
        return ChangeFailed(f"{why}; put back, but {trouble}")
    if isinstance(error, _Failure | CockpitError):
        return ChangeUndone(f"{why}; put back{remark}")
    return error


async def _settle(shell: Remote, plan: Plan, change: str, patience: Patience, state: _State) -> tuple[str, str]:
    """With the original files in place: reloads again where a reload was begun, or sees whether they pass the test.
    What is wrong now, and what else there is to say."""
    if state.reload_begun:
        for command in plan.reloads:
            if said := await files.run(shell, change, command, patience.command):
                return f"{neutral(command, 200)} fails with the original files too: {said}", ""
        return "", " and reloaded"
    for command in plan.tests:
        if await files.run(shell, change, command, patience.command):
            return "", f" ({neutral(command, 200)} fails without the change too)"
    return "", ""


def _reason(plan: Plan, error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return f"{plan.names}: interrupted"
    if isinstance(error, HostError):
        return f"{plan.names}: connection lost in the middle of the change ({error})"
    return f"{plan.names}: {error}"


def _not_back(host: str, outcome: list[files.PutBack], by_hand: str) -> str:
    """Which files did not get their original bytes again, and what a person can do; "" when all did."""
    said = []
    for back in outcome:
        if back.state == "foreign":
            said.append(f"{back.file.file} was written by somebody else meanwhile and left as it is")
        elif back.state == "stuck":
            said.append(f"{back.file.file} could not be put back: {back.reason}")
    if not said:
        return ""
    return f"{'; '.join(said)}. The original comes back with, on {host}: {by_hand}"


async def _persistently(step: Callable[[], Awaitable[list[files.PutBack]]], seconds: float) -> list[files.PutBack]:
    """Repeats a step while the host is out of reach, for at most `seconds`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        try:
            return await step()
        except HostError:
            if loop.time() >= deadline:
                raise
        await asyncio.sleep(min(1.0, seconds / 10))


async def _to_its_end(step: Coroutine[None, None, None]) -> None:
    """Awaits a step that must not be left half done. A cancellation counts once it is over."""
    task = asyncio.ensure_future(step)
    cancelled = await _see_through(task)
    failure = None if task.cancelled() else task.exception()
    if cancelled or task.cancelled():
        raise asyncio.CancelledError
    if failure:
        raise failure


async def _see_through(task: asyncio.Task[Any]) -> bool:
    """Waits until the task is done, whatever happens to this one meanwhile; whether this one was cancelled."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    return cancelled
