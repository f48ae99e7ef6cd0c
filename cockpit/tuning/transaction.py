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

from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.model.events import Stage
from cockpit.model.text import sanitize
from cockpit.servers import systemd
from cockpit.tuning import evidence, files, live, pending, reload_log, undo_program
from cockpit.tuning.applied import AppliedChange, ChangeFacts, FileChange, LiveChange
from cockpit.tuning.change_options import ChangeOptions, Failure, whoami
from cockpit.tuning.effect import PACE, EffectWatch, require_good_response
from cockpit.tuning.generation import generations_of
from cockpit.tuning.plan import NOTHING_TO_CHANGE, Plan, value_in
from cockpit.tuning.remote import Remote
from cockpit.tuning.rollback import undo


async def carry_out(shell: Remote, plan: Plan, options: ChangeOptions) -> AppliedChange:
    """Make the plan active.

    Raises ChangeRefused (nothing touched), ChangeRolledBack (rolled back), ChangeFailed (not rolled back completely),
    HostError (connection lost before anything was touched).
    """
    if not plan.replacements and not plan.switches and not plan.undoes:
        return AppliedChange(host=plan.host, settings=plan.settings, notes=(*plan.notes, NOTHING_TO_CHANGE))
    await require_good_response(options.probe)
    change = await _armed(shell, plan, options)
    options.report("armed")
    try:
        if plan.replacements:
            await uninterrupted(files.commit(shell, change, options.timeouts.lease, plan.replacements))
        return await _activated(shell, plan, change, options)
    except (Exception, asyncio.CancelledError) as error:
        options.report("undoing")
        rollback = asyncio.ensure_future(undo(shell, plan, change, options, error))
        await wait_despite_cancellation(rollback)
        ending = rollback.result()
        if isinstance(ending, AppliedChange):
            return ending
        if ending is error:
            raise
        raise ending from error


async def _armed(shell: Remote, plan: Plan, options: ChangeOptions) -> str:
    """Back up the originals and send the new files into a new directory on the host, and arm the undo there.

    Return the directory. It is removed on failure.
    """
    change = await files.open_change(shell, plan.host)
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
        if plan.undoes and posixpath.dirname(plan.undoes) != posixpath.dirname(change):
            raise ChangeRefused("the change was made on another machine with the same home; undo it there")
        for replacement in plan.replacements:
            await files.stage(shell, change, replacement)
        owner = sanitize(f"{who} ({plan.names})", 200).replace(": ", " ")
        program = _undo_program(change, plan, options)
        await pending.arm(shell, change, options.timeouts.lease, program, owner, msgspec.json.encode(facts))
    except (CockpitError, asyncio.CancelledError) as error:
        with suppress(CockpitError):
            await pending.discard(shell, change)
        if isinstance(error, ChangeRefused):
            why = plan.redacted(_on(plan.host, error))
            raise ChangeRefused(f"{plan.names}: {why}; nothing was changed") from None
        raise
    return change


def _on(host: str, error: CockpitError) -> str:
    return str(error) if error.subject else f"{host}: {error}"


def _undo_program(change: str, plan: Plan, options: ChangeOptions) -> str:
    values = [
        (str(number), live.getter(s.knob), live.setter(s.knob, s.old), s.old, s.new)
        for number, s in enumerate(plan.switches)
    ]
    jobs = files.rollback_jobs(change, plan.replacements)
    seconds = math.ceil(options.timeouts.command)
    return undo_program.undo(change, jobs, values, plan.tests, plan.reloads, seconds)


async def _activated(shell: Remote, plan: Plan, change: str, options: ChangeOptions) -> AppliedChange:
    """Set, test, reload, wait, read back, confirm. Raises Failure with the failed command and its message.

    Live values that are also in a file are set after the file has passed its test.
    """
    timeouts = options.timeouts
    watched = shell, plan.knobs, change, timeouts.lease, timeouts.effect, options.probe
    masters = {name: server.process.pid for name, server in plan.servers.items()}
    effect = EffectWatch(*watched, generations_of(plan.knobs, masters), options.identify)
    await effect.begin()
    is_set = {n: await _set(shell, plan, change, n, options) for n, s in enumerate(plan.switches) if not s.knob.in_file}
    options.report("written")
    for command in plan.tests:
        await _run(shell, change, command, options, effect)
    if plan.tests:
        options.report("tested")
    for number, switch in enumerate(plan.switches):
        if switch.knob.in_file and not switch.knob.set_by_reload:
            is_set[number] = await _set(shell, plan, change, number, options)
    for command in plan.reloads:
        await _run(shell, change, command, options, effect, mark="reloading")
    if plan.reloads:
        options.report("reloaded")
    if why := await effect.wait():
        raise Failure(f"it did not become active: {why}")
    sign = await reload_log.confirm(shell, plan, options, effect) if plan.reloads else ""
    for number, switch in enumerate(plan.switches):
        if switch.knob.set_by_reload:
            is_set[number] = await _reloaded(shell, switch, change, options)
    switches = tuple(is_set[number] for number in sorted(is_set))
    notes = await _read_back(shell, plan, switches)
    notes += await evidence.after_change(shell, change, plan, options, sign, effect.has_old_workers)
    await effect.listen()
    notes = [*plan.notes, *dict.fromkeys(notes), *map(plan.redacted, effect.notes)]
    applied = _applied(plan, change, switches, tuple(notes))
    await _approved(shell, change, options, "not yet active" if applied.outcome == "written" else "active")
    await pending.confirm(shell, change, msgspec.json.encode(applied))
    options.report("confirmed")
    return applied


async def _set(shell: Remote, plan: Plan, change: str, number: int, options: ChangeOptions) -> LiveChange:
    """Set a live value; return the switch with the value that the host reports."""
    switch = plan.switches[number]
    name = switch.knob.name
    try:
        is_now = await pending.get(shell, live.getter(switch.knob))
        # A command that sets one value may also load the others from the file.
        if is_now != switch.old and not (switch.knob.in_file and is_now == switch.new):
            raise Failure(f"set to {switch.knob.shown(is_now)} elsewhere after cockpit read it; repeat the change")
        lease, seconds = options.timeouts.lease, options.timeouts.command
        ran = await pending.run(
            shell, change, lease, live.setter(switch.knob, switch.new), seconds, switch.new, f"begun-{number}"
        )
        if ran.why:
            raise Failure(f"setting it to {switch.knob.shown(switch.new, 80)} failed: {ran.why}")
        got = await pending.get(shell, live.getter(switch.knob), f"{change}/got-{number}")
    except (ChangeRefused, Failure) as error:
        raise Failure(f"{name}: {error}") from None
    if got == switch.old:
        raise Failure(f"{name}: {_ignored(switch, got)}")
    return switch if got == switch.new else replace(switch, got=got)


async def _reloaded(shell: Remote, switch: LiveChange, change: str, options: ChangeOptions) -> LiveChange:
    """Wait until a value that a reload sets has changed; return the switch with the value that the host reports."""
    knob, timeouts = switch.knob, options.timeouts
    deadline = asyncio.get_running_loop().time() + timeouts.effect
    while True:
        try:
            got = await pending.get(shell, live.getter(knob))
        except ChangeRefused as error:
            raise Failure(f"{knob.name}: {error}") from None
        if got != switch.old:
            return switch if got == switch.new else replace(switch, got=got)
        if asyncio.get_running_loop().time() >= deadline:
            raise Failure(f"{knob.name}: {_ignored(switch, got)}")
        await asyncio.sleep(PACE)
        await pending.poll(shell, change, timeouts.lease)


def _ignored(switch: LiveChange, got: str) -> str:
    knob = switch.knob
    unit = systemd.unit_of(knob.file) if knob.kind == systemd.KIND else ""
    todo = f"; systemctl cat {sanitize(unit, 200)} shows what else sets it" if unit else ""
    return f"it is still {knob.shown(got)}: the host ignored {knob.shown(switch.new)}{todo}"


async def _run(
    shell: Remote, change: str, command: str, options: ChangeOptions, effect: EffectWatch, mark: str = ""
) -> None:
    ran = await pending.run(shell, change, options.timeouts.lease, command, options.timeouts.command, mark=mark)
    if ran.why:
        raise Failure(f"{sanitize(command, 200)} failed: {ran.why}")
    effect.note_corrections(ran.output)


async def _read_back(shell: Remote, plan: Plan, switches: tuple[LiveChange, ...]) -> list[str]:
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
    for switch in switches:
        value = await pending.get(shell, live.getter(switch.knob))
        if value != (switch.got or switch.new):
            is_now, new = switch.knob.shown(value), switch.knob.shown(switch.new)
            raise Failure(f"{switch.knob.name} is {is_now} after it was set to {new}")
    notes = [
        f"{plan.host} corrected {s.knob.name} {s.knob.shown(s.new)} to {s.knob.shown(s.got)}" for s in switches if s.got
    ]
    return notes + [
        f"{file.file} was modified elsewhere during the change; its values are unchanged"
        for file in now.values()
        if file.digest != after.get(file.real)
    ]


def _applied(plan: Plan, change: str, switches: tuple[LiveChange, ...], notes: tuple[str, ...]) -> AppliedChange:
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
    got = {switch.knob.name: switch.got for switch in switches if switch.got}
    return AppliedChange(
        host=plan.host,
        settings=tuple(replace(s, new=got.get(s.knob, s.new)) for s in plan.settings),
        files=written,
        edits=plan.edits,
        switches=switches,
        notes=notes,
        change=change,
        inactive=plan.inactive,
    )


async def _approved(shell: Remote, change: str, options: ChangeOptions, reached: Stage) -> None:
    """Wait for the confirmation, if one is required, and extend the host's lease by that time. Raises Failure."""
    if options.approval is None:
        options.report(reached)
        return
    seconds = options.approval.seconds
    await pending.poll(shell, change, math.ceil(seconds))
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
