"""Carry out a plan on its host as a transaction: all of it becomes active, or all of it is rolled back.

Steps: back up, send, arm the undo there, replace, set, test, reload, wait for the effect, read back, confirm. Any
failure after arming (a failed command, a lost connection, Ctrl-C) makes the host undo the change, on request if it can
be reached, else by itself when the lease expires.
"""

from __future__ import annotations

import asyncio
import math
import posixpath
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.model.errors import ChangeRefused, CockpitError, HostError
from cockpit.model.events import StageName
from cockpit.model.text import sanitize
from cockpit.servers import systemd
from cockpit.tuning import evidence, files, pending, reload_log, undo_program
from cockpit.tuning.applied import AppliedChange, ChangeFacts, ChangeFailed, FileChange, LiveEdit
from cockpit.tuning.change_options import ChangeOptions, Failure, whoami
from cockpit.tuning.effect import PACE, EffectWatch, require_good_response
from cockpit.tuning.generation import generations_of
from cockpit.tuning.guarding import guarded
from cockpit.tuning.pending import ConfirmationLost, PendingChange
from cockpit.tuning.plan import NOTHING_TO_CHANGE, Plan, value_in
from cockpit.tuning.remote import Remote
from cockpit.tuning.rollback import undo


async def carry_out(shell: Remote, plan: Plan, options: ChangeOptions) -> AppliedChange:
    """Make the plan active.

    Raises ChangeRefused (nothing touched), ChangeRolledBack (rolled back), ChangeFailed (not rolled back completely),
    HostError (connection lost before anything was touched).
    """
    if not plan.replacements and not plan.live_edits and not plan.undoes:
        return AppliedChange(host=plan.host, settings=plan.settings, notes=(*plan.notes, NOTHING_TO_CHANGE))
    if not options.restores:
        await require_good_response(options.probe)
    change = await _armed(shell, plan, options)
    if options.guard is not None:
        change = change._replace(timeouts=change.timeouts._replace(lease=options.guard.lease))
    options.report("armed")
    try:
        applied = await guarded(_carried_out(plan, change, options), change, options.guard)
        await _confirmed(applied, change, options)
        return applied
    except (Exception, asyncio.CancelledError) as error:
        options.report("undoing")
        rollback = asyncio.ensure_future(undo(plan, change, options, error))
        cancelled = await wait_despite_cancellation(rollback)
        ending = rollback.result()
        if isinstance(ending, AppliedChange):
            return ending
        if ending is error:
            raise
        if cancelled and not isinstance(ending, ChangeFailed):
            raise asyncio.CancelledError from ending
        raise ending from error


async def _armed(shell: Remote, plan: Plan, options: ChangeOptions) -> PendingChange:
    """Back up the originals and send the new files into a new directory on the host, and arm the undo there.

    The directory is removed on failure.
    """
    directory = await files.open_change(shell, plan.host)
    change = PendingChange(shell, directory, options.timeouts)
    who = options.who or whoami()
    facts = ChangeFacts(
        who=who,
        when=time.time(),
        settings=plan.shown_settings,
        places=plan.places,
        undoes=plan.undoes,
        inactive=tuple(knob.name for knob in plan.inactive),
    )
    try:
        if plan.undoes and posixpath.dirname(plan.undoes) != posixpath.dirname(directory):
            raise ChangeRefused("the change was made on another machine with the same home; undo it there")
        for replacement in plan.replacements:
            await files.stage(shell, directory, replacement)
        owner = sanitize(f"{who} ({plan.names})", 200).replace(": ", " ")
        await change.arm(_undo_program(directory, plan, options), owner, msgspec.json.encode(facts))
    except (CockpitError, asyncio.CancelledError) as error:
        with suppress(CockpitError):
            await change.discard()
        if isinstance(error, ChangeRefused):
            why = plan.redacted(_on(plan.host, error))
            raise ChangeRefused(f"{plan.names}: {why}; nothing was changed") from None
        raise
    return change


def _on(host: str, error: CockpitError) -> str:
    return str(error) if error.subject else f"{host}: {error}"


def _undo_program(change: str, plan: Plan, options: ChangeOptions) -> str:
    values = [
        (str(number), s.knob.getter(), s.knob.setter(s.old), s.old, s.new) for number, s in enumerate(plan.live_edits)
    ]
    jobs = files.rollback_jobs(change, plan.replacements)
    seconds = math.ceil(options.timeouts.command)
    return undo_program.undo(change, jobs, values, plan.tests, plan.reloads, seconds)


async def _carried_out(plan: Plan, change: PendingChange, options: ChangeOptions) -> AppliedChange:
    if plan.replacements:
        await uninterrupted(files.commit(change.shell, change.directory, change.timeouts.lease, plan.replacements))
    return await _activated(plan, change, options)


async def _activated(plan: Plan, change: PendingChange, options: ChangeOptions) -> AppliedChange:
    """Set, test, reload, wait, read back, wait for approval. Raises Failure with the failed command and its message.

    Live values that are also in a file are set after the file has passed its test.
    """
    masters = {name: server.process.pid for name, server in plan.servers.items()}
    generations = generations_of(plan.knobs, masters)
    effect = EffectWatch(change, plan.knobs, options.probe, generations, options.identify, restores=options.restores)
    await effect.begin()
    is_set = {n: await _set(plan, change, n) for n, s in enumerate(plan.live_edits) if not s.knob.in_file}
    options.report("written")
    for command in plan.tests:
        await _run(change, command, effect)
    if plan.tests:
        options.report("tested")
    for number, live_edit in enumerate(plan.live_edits):
        if live_edit.knob.in_file and not live_edit.knob.set_by_reload:
            is_set[number] = await _set(plan, change, number)
    for command in plan.reloads:
        await _run(change, command, effect, mark="reloading")
    if plan.reloads:
        options.report("reloaded")
    if why := await effect.wait():
        raise Failure(f"it did not become active: {why}")
    sign = await reload_log.confirm(change, plan, effect) if plan.reloads else ""
    for number, live_edit in enumerate(plan.live_edits):
        if live_edit.knob.set_by_reload:
            is_set[number] = await _reloaded(change, live_edit)
    live_edits = tuple(is_set[number] for number in sorted(is_set))
    notes = await _read_back(change.shell, plan, live_edits)
    notes += await evidence.after_change(change, plan, options, sign, effect.has_old_workers)
    await effect.listen()
    notes = [*plan.notes, *dict.fromkeys(notes), *map(plan.redacted, effect.notes)]
    applied = _applied(plan, change.directory, live_edits, tuple(notes))
    await _approved(change, options, "not yet active" if applied.outcome == "written" else "active")
    return applied


async def _confirmed(applied: AppliedChange, change: PendingChange, options: ChangeOptions) -> None:
    """Confirm the change on its host. Raises ChangeRefused if the host has rolled it back, Failure if a limit is
    exceeded before, ConfirmationLost."""
    try:
        await guarded(change.confirm(applied), change, options.guard)
    except HostError as error:
        raise ConfirmationLost(*error.args) from error
    options.report("confirmed")


async def _set(plan: Plan, change: PendingChange, number: int) -> LiveEdit:
    """Set a live value; return the live_edit with the value that the host reports."""
    live_edit = plan.live_edits[number]
    name = live_edit.knob.name
    try:
        is_now = await pending.get(change.shell, live_edit.knob.getter())
        # A command that sets one value may also load the others from the file.
        if is_now != live_edit.old and not (live_edit.knob.in_file and is_now == live_edit.new):
            raise Failure(f"set to {live_edit.knob.shown(is_now)} elsewhere after cockpit read it; repeat the change")
        ran = await change.run(live_edit.knob.setter(live_edit.new), live_edit.new, f"begun-{number}")
        if ran.why:
            raise Failure(f"setting it to {live_edit.knob.shown(live_edit.new, 80)} failed: {ran.why}")
        got = await pending.get(change.shell, live_edit.knob.getter(), f"{change.directory}/got-{number}")
    except (ChangeRefused, Failure) as error:
        raise Failure(f"{name}: {error}") from None
    if got == live_edit.old:
        raise Failure(f"{name}: {_ignored(live_edit, got)}")
    return live_edit if got == live_edit.new else replace(live_edit, got=got)


async def _reloaded(change: PendingChange, live_edit: LiveEdit) -> LiveEdit:
    """Wait until a value that a reload sets has changed; return the live_edit with the value that the host reports."""
    knob = live_edit.knob
    deadline = asyncio.get_running_loop().time() + change.timeouts.effect
    while True:
        try:
            got = await pending.get(change.shell, knob.getter())
        except ChangeRefused as error:
            raise Failure(f"{knob.name}: {error}") from None
        if got != live_edit.old:
            return live_edit if got == live_edit.new else replace(live_edit, got=got)
        if asyncio.get_running_loop().time() >= deadline:
            raise Failure(f"{knob.name}: {_ignored(live_edit, got)}")
        await asyncio.sleep(PACE)
        await change.poll()


def _ignored(live_edit: LiveEdit, got: str) -> str:
    knob = live_edit.knob
    unit = systemd.unit_of(knob.file) if knob.kind == systemd.KIND else ""
    todo = f"; systemctl cat {sanitize(unit, 200)} shows what else sets it" if unit else ""
    return f"it is still {knob.shown(got)}: the host ignored {knob.shown(live_edit.new)}{todo}"


async def _run(change: PendingChange, command: str, effect: EffectWatch, mark: str = "") -> None:
    ran = await change.run(command, mark=mark)
    if ran.why:
        raise Failure(f"{sanitize(command, 200)} failed: {ran.why}")
    effect.note_corrections(ran.output)


async def _read_back(shell: Remote, plan: Plan, live_edits: tuple[LiveEdit, ...]) -> list[str]:
    """Compare the current values with the written ones.

    Return notes about values that the host corrected, and files that others wrote. Raises Failure for another value.
    """
    after = {r.before.real: r.digest for r in plan.replacements}
    now = {edit.knob.file: await files.read_of(shell, plan.host, edit.knob) for edit in plan.edits}
    for edit in plan.edits:
        current = value_in(now[edit.knob.file], edit.knob)
        if current.raw != edit.new:
            value = "unset" if current.value is None else edit.knob.shown(current.value)
            raise Failure(f"set to {value} elsewhere, in {edit.knob.file}, after cockpit wrote it")
    notes = []
    for live_edit in live_edits:
        knob, new, got = live_edit.knob, live_edit.new, live_edit.got
        value = await pending.get(shell, knob.getter())
        if value != (got or new):
            raise Failure(f"{knob.name} is {knob.shown(value)} after it was set to {knob.shown(new)}")
        if got:
            notes.append(f"{plan.host} corrected {knob.name} {knob.shown(new)} to {knob.shown(got)}")
    return notes + [
        f"{file.file} was modified elsewhere during the change; its values are unchanged"
        for file in now.values()
        if file.digest != after.get(file.real)
    ]


def _applied(plan: Plan, change: str, live_edits: tuple[LiveEdit, ...], notes: tuple[str, ...]) -> AppliedChange:
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
    got = {live_edit.knob.name: live_edit.got for live_edit in live_edits if live_edit.got}
    return AppliedChange(
        host=plan.host,
        settings=tuple(replace(s, new=got.get(s.knob, s.new)) for s in plan.settings),
        files=written,
        edits=plan.edits,
        live_edits=live_edits,
        notes=notes,
        change=change,
        inactive=plan.inactive,
    )


async def _approved(change: PendingChange, options: ChangeOptions, reached: StageName) -> None:
    """Wait for the confirmation, if one is required, and extend the host's lease by that time. Raises Failure."""
    if options.approval is None:
        options.report(reached)
        return
    seconds = options.approval.seconds
    if options.guard is None:
        await change.poll(lease=math.ceil(seconds))
    options.report(reached, seconds if options.approval.asked else None)
    try:
        async with asyncio.timeout(seconds):
            given = await options.approval.given()
    except TimeoutError:
        raise Failure(f"not confirmed within {seconds:g} s") from None
    if not given:
        raise Failure("it was not confirmed")


async def uninterrupted(step: Coroutine[None, None, None]) -> None:
    """Await a step that must not be interrupted; raise a cancellation after it."""
    task = asyncio.ensure_future(step)
    cancelled = await wait_despite_cancellation(task)
    failure = None if task.cancelled() else task.exception()
    if cancelled or task.cancelled():
        raise asyncio.CancelledError
    if failure:
        raise failure


async def wait_despite_cancellation(task: asyncio.Task[Any]) -> bool:
    """Wait until the task is done; return whether the caller was cancelled before that."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    return cancelled
