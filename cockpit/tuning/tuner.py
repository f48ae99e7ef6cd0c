"""Read, change and undo knobs of hosts.

"Applied" means: the host has the values, the test command passed, the reload command succeeded, the server has new
workers and gives good responses, and the change is confirmed on the host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.model.knobs import Knob, ServerAction
from cockpit.servers.startup import Instance
from cockpit.tuning import files, history, pending, plan, server_check, undo_program
from cockpit.tuning.applied import AppliedChange, ChangeFacts, HistoryEntry, HistoryState
from cockpit.tuning.change_options import Approval, ChangeObserver, ChangeOptions, Guard
from cockpit.tuning.effect import TargetCheck
from cockpit.tuning.files import HostFile
from cockpit.tuning.pending import TIMEOUTS, PendingChange, Timeouts
from cockpit.tuning.plan import CurrentValues, NewValues, Plan
from cockpit.tuning.remote import Remote
from cockpit.tuning.rollback import require_rolled_back
from cockpit.tuning.scripts import HISTORY
from cockpit.tuning.server_check import FileReader
from cockpit.tuning.sysctl_files import overriding_files
from cockpit.tuning.transaction import carry_out


class Tuner:
    """Runs one change at a time on each host, over a Shell, or over `ReconnectingRemote`, which survives a lost
    connection.

    `probe` requests the target before and after a change; `who` is recorded on the host. `port_on` returns the target's
    port on a host, None if the target is elsewhere. A change is refused if the server on that port does not read its
    files, or if its reload acts on another server; without `port_on` this is not checked. ChangeRefused and HostError:
    nothing was touched. ChangeRolledBack: rolled back. ChangeFailed: not rolled back completely; the message has the
    host's state and the commands to restore it.
    """

    def __init__(
        self,
        probe: TargetCheck | None = None,
        timeouts: Timeouts = TIMEOUTS,
        who: str = "",
        port_on: Callable[[str], int | None] | None = None,
    ) -> None:
        self._port_on = port_on
        self._options = ChangeOptions(timeouts=timeouts, probe=probe, who=who)
        self._turns: dict[str, asyncio.Lock] = {}

    async def read(
        self, shell: Remote, knob: Knob, known: dict[tuple[str, bool], HostFile] | None = None
    ) -> str | None:
        """Return the knob's value on the host; None: not set. Raises ChangeRefused if it cannot be read.

        `known`: files that were read for other knobs; read files are added.
        """
        if knob.live:
            return await _value(shell, knob)
        known = {} if known is None else known
        key = knob.file, knob.creates
        if key not in known:
            known[key] = await files.read_of(shell, knob.host, knob)
        return plan.value_in(known[key], knob).value

    async def inactive(self, shell: Remote, host: str, knobs: Iterable[Knob]) -> dict[str, str]:
        """Return why the server does not use the values that knobs have in their files, by name: they are in a section
        whose condition is false, or overridden. Knobs without a known reason are left out."""
        try:
            readers = await self._read_by(shell, host, knobs)
        except CockpitError:
            return {}
        return {knob.name: reader.wrong for reader in readers if reader.inactive for knob in reader.knobs}

    async def prepare(self, shell: Remote, host: str, values: NewValues) -> Plan:
        """Plan a change, without touching anything."""
        knobs = [knob for knob, _ in values]
        planned = plan.forward(host, await _current_values(shell, host, knobs), values)
        readers = await self._read_by(shell, host, knobs)
        server_check.require_target_server(readers, host)
        limits = await server_check.limits_at_listen(shell, host, knobs)
        notes = (*planned.notes, *limits, *await overriding_files(shell, knobs))
        return planned._replace(servers=server_check.certain_servers(readers), notes=notes)

    async def _read_by(
        self, shell: Remote, host: str, knobs: Iterable[Knob], others: frozenset[int] = frozenset()
    ) -> list[FileReader]:
        if self._port_on is None:
            return []
        return await server_check.read_by(shell, host, self._port_on(host), knobs, others)

    async def apply(
        self,
        shell: Remote,
        host: str,
        values: NewValues,
        watch: ChangeObserver | None = None,
        approval: Approval | None = None,
        guard: Guard | None = None,
        *,
        restores: bool = False,
    ) -> AppliedChange:
        """Set knobs of one host (None: unset) as one change, all or none. `restores`: as in ChangeOptions."""
        async with self._turn(host):
            options = self._options._replace(watch=watch, approval=approval, guard=guard, restores=restores)
            return await self._carry_out(shell, await self.prepare(shell, host, values), options)

    async def undo(self, shell: Remote, applied: AppliedChange, watch: ChangeObserver | None = None) -> AppliedChange:
        """Undo a change by another change; files that nobody else wrote since get their original bytes."""
        async with self._turn(applied.host):
            planned = await self.prepare_undo(shell, applied)
            readers = await self._read_by(shell, applied.host, planned.knobs)
            planned = planned._replace(servers=server_check.certain_servers(readers))
            return await self._carry_out(shell, planned, self._options._replace(watch=watch, restores=True))

    async def prepare_undo(self, shell: Remote, applied: AppliedChange) -> Plan:
        """Plan the undo of a change, without touching anything."""
        knobs = {edit.knob.name: edit.knob for edit in applied.edits}
        knobs |= {live_edit.knob.name: live_edit.knob for live_edit in applied.live_edits}
        current = await _current_values(shell, applied.host, list(knobs.values()))
        return plan.backward(applied, current, await _originals(shell, applied))

    async def history(self, shell: Remote, host: str) -> list[HistoryEntry]:
        done = await files.run(shell, HISTORY)
        if done.exit_status != 0:
            raise ChangeRefused(files.error_reason(done), subject=host)
        return history.ordered(past for line in done.lines if (past := _past(line)))

    async def read_record(self, shell: Remote, host: str, past: HistoryEntry) -> AppliedChange:
        """Read the record of a change in the history, for an undo. Raises ChangeRefused if it cannot be read."""
        return replace(await pending.record(shell, host, past.change), host=host)

    async def force_undo(self, shell: Remote, host: str, past: HistoryEntry) -> None:
        """Have the host undo a change that is under way or unfinished. Raises ChangeRefused, also if a newer change
        touched a value of a partial rollback; ChangeFailed."""
        if past.state == HistoryState.PARTIAL:
            history.check_newer(await self.history(shell, host), past)
        change = PendingChange(shell, past.change, self._options.timeouts)
        outcome = await change.undo(600, "given up")
        if outcome.ended:
            raise ChangeRefused(f"the change was already {outcome.ended}", subject=host)
        await require_rolled_back(change, host, past, outcome)

    async def accept(self, shell: Remote, host: str, past: HistoryEntry) -> None:
        """Accept what the rollback of a change left. Raises ChangeRefused if the change was interrupted: its host stays
        locked."""
        if past.state != HistoryState.PARTIAL:
            raise ChangeRefused(f"{past.name} is {past.state}; undo or finish it", subject=host)
        done = await files.run(shell, undo_program.KEEP, past.change)
        if done.exit_status != 0:
            raise ChangeRefused(files.error_reason(done), subject=host)

    async def act(self, shell: Remote, action: ServerAction) -> None:
        """Run an action's command once. Raises ChangeRefused with the command's message if it fails."""
        async with self._turn(action.host):
            directory = await files.open_change(shell, action.host)
            change = PendingChange(shell, directory, self._options.timeouts)
            try:
                ran = await change.run(action.command)
            finally:
                await change.discard()
            if ran.why:
                raise ChangeRefused(f"{action.name}: {action.host}: {ran.why}")

    async def _carry_out(self, shell: Remote, plan: Plan, options: ChangeOptions) -> AppliedChange:
        async def identify(others: frozenset[int]) -> Mapping[str, Instance]:
            try:
                if restarted := await server_check.successors(shell, plan.host, plan.servers, others):
                    return restarted
                # The paths of a container's files are not certain, so search by the knobs' files.
                return server_check.certain_servers(await self._read_by(shell, plan.host, plan.knobs, others))
            except ChangeRefused:
                return {}

        if options.watch:
            options.watch.begun(plan)
        options = options._replace(identify=identify)
        if self._port_on is not None:
            readers = partial(self._read_by, shell, plan.host, plan.knobs)
            options = options._replace(readers=readers, port=self._port_on(plan.host))
        return await carry_out(shell, plan, options)

    def _turn(self, host: str) -> asyncio.Lock:
        return self._turns.setdefault(host, asyncio.Lock())


async def _current_values(shell: Remote, host: str, knobs: Sequence[Knob]) -> CurrentValues:
    """Read the files of the knobs, each path once, and their live values."""
    by_file = {knob.file: knob for knob in knobs if knob.in_file}
    read = {file: await files.read_of(shell, host, knob) for file, knob in by_file.items()}
    return CurrentValues(read, {knob.name: await _value(shell, knob) for knob in knobs if knob.live})


async def _value(shell: Remote, knob: Knob) -> str:
    try:
        value = await pending.get(shell, knob.getter())
    except ChangeRefused as error:
        raise ChangeRefused(str(error), subject=f"{knob.name}: {knob.host}") from None
    if knob.option and value not in knob.choices:
        raise ChangeRefused(
            f"it is {knob.shown(value)!r}, which is not one of {', '.join(knob.choices)}",
            subject=f"{knob.name}: {knob.host}",
        )
    return value


async def _originals(shell: Remote, applied: AppliedChange) -> dict[str, bytes]:
    """Read the backups that still exist, by the path of the backed-up file."""
    kept: dict[str, bytes] = {}
    for change in applied.files:
        try:
            kept[change.real] = (await files.read(shell, applied.host, change.backup)).data
        except ChangeRefused:
            continue
    return kept


def _past(line: str) -> HistoryEntry | None:
    """Parse a line of the history; None if it is invalid, e.g. printed by the login."""
    try:
        change, state, left, facts = line.split("\t", 3)
        return HistoryEntry(
            change=change,
            facts=msgspec.json.decode(facts, type=ChangeFacts),
            state=HistoryState(state),
            left=tuple(left.split()),
        )
    except (msgspec.MsgspecError, ValueError):
        return None
