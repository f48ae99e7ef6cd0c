"""Evidence that a running server has the values in its files: values that it shows, and when it last read its files."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import NamedTuple

from cockpit.model.knobs import Knob, Setting
from cockpit.servers.registry import DIRECTIVES, RELOAD_REPLACES, RELOADED
from cockpit.servers.startup import Instance
from cockpit.tuning import files, pending, plan, reload_log, server_check
from cockpit.tuning.change_options import ChangeOptions, Failure
from cockpit.tuning.effect import PACE
from cockpit.tuning.pending import PendingChange
from cockpit.tuning.plan import Plan
from cockpit.tuning.remote import Remote
from cockpit.tuning.scripts import SHOWN_BY, STARTED
from cockpit.tuning.server_check import FileReader

# Seconds by which a file must be newer than a process: start times have whole seconds of an adjusted clock.
_CLOCK_ERROR = 2
# Number of retries to find the servers after a change.
_RETRIES = 3


class ShownValue(NamedTuple):
    """A knob's value as a running server shows it, in its part `source`.

    `agrees`: whether it is the value in the file; None: undecidable, other values would show the same.
    """

    knob: Knob
    source: str
    value: str
    agrees: bool | None

    @property
    def words(self) -> str:
        return f"the running server shows {self.knob.name} {self.knob.shown(self.value, 80)} ({self.source})"


class FileState(NamedTuple):
    """A file compared with the running server that reads it.

    The server shows the values of the knobs `shown`, not of `unseen`. `is_read`: the server read the file after the
    last edit; `is_newer`: the file was edited after the server read it; neither: unknown. `awaiting` are knobs that the
    server reads only at its start, which was before the edit.
    """

    shown: tuple[ShownValue, ...] = ()
    unseen: tuple[Knob, ...] = ()
    is_read: bool = False
    is_newer: bool = False
    awaiting: tuple[Knob, ...] = ()


async def shown_by(
    remote: Remote, instance: Instance, knob: Knob, value: str | None, port: int | None = None
) -> ShownValue | None:
    """Return a knob's value as the server shows it; None: not shown. `port` is the target's. Raises HostError."""
    evidence = knob.known.shown if knob.known and knob.kind in DIRECTIVES else None
    if evidence is None or value is None or knob.secret or instance.process.origin == "container":
        return None
    chosen = port if port in instance.ports else next(iter(instance.ports), 0)
    facts = str(instance.process.pid), str(chosen), instance.startup.file, knob.section or ""
    done = await files.run(remote, f"{SHOWN_BY}{evidence.command}", *facts)
    line = " ".join(done.stdout.decode("utf-8", "replace").split())
    try:
        agrees = evidence.agrees(value, line) if line else None
    except (ValueError, ArithmeticError):
        agrees = None
    words = line if evidence.is_whole else line.partition(" ")[0]
    return ShownValue(knob, evidence.source, words, agrees) if line else None


async def after_change(
    change: PendingChange, planned: Plan, options: ChangeOptions, sign: str, has_old_workers: bool
) -> list[str]:
    """Wait until the running server shows the new values; return a note about each of them.

    A last note lists the values that the server does not show, with the `sign` that it read its files.
    `has_old_workers`: they may still show the old values. Raises Failure if the server keeps showing an old value,
    HostError.
    """
    settings = {setting.knob: setting for setting in planned.settings}
    knobs = {edit.knob.name: edit.knob for edit in planned.edits if edit.new is not None and _is_read(edit.knob)}
    if not knobs or options.readers is None:
        return []
    instances = await _instances(change, planned, options, knobs)
    notes, unseen = [], []
    for name, instance in instances.items():
        setting = settings[name]
        # A value that needs a restart may limit this one until then, like Apache's ServerLimit.
        seconds = 0.0 if has_old_workers or planned.inactive else options.timeouts.effect
        shown = await _settled(change, instance, knobs[name], setting, options, seconds)
        if shown is None or shown.agrees is None or (has_old_workers and not shown.agrees):
            unseen.append(name)
        else:
            notes.append(shown.words if shown.agrees else f"{shown.words}, not {knobs[name].shown(setting.new or '')}")
    if unseen:
        notes.append(f"written and reloaded; {sign} (this server does not report {', '.join(unseen)})")
    return notes


def _is_read(knob: Knob) -> bool:
    """Return whether the server reads the knob from its file at a reload."""
    return knob.kind in DIRECTIVES and not knob.live and not knob.written_only


async def _instances(
    change: PendingChange, planned: Plan, options: ChangeOptions, names: Collection[str]
) -> dict[str, Instance]:
    """Return the servers that certainly read these knobs, by knob name.

    While a server replaces itself during a reload, two servers may seem to read a knob. So search again for knobs whose
    server was certain before the change.
    """
    assert options.readers
    certain: dict[str, Instance] = {}
    for attempt in range(_RETRIES + 1):
        if attempt:
            await asyncio.sleep(PACE)
            await change.poll()
        certain = server_check.certain_servers(await options.readers())
        if set(certain) >= set(names) & set(planned.servers):
            break
    return {name: server for name, server in certain.items() if name in names}


async def _settled(
    change: PendingChange,
    instance: Instance,
    knob: Knob,
    setting: Setting,
    options: ChangeOptions,
    seconds: float,
) -> ShownValue | None:
    """Wait at most `seconds` until the server shows the new value; return the shown value, None: not shown.

    Raises Failure if the server still shows the old value and `seconds` is not 0.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        shown = await shown_by(change.shell, instance, knob, setting.new, options.port)
        if shown is None or shown.agrees is not False:
            return shown
        if loop.time() >= deadline:
            break
        await asyncio.sleep(PACE)
        await change.poll()
    before = await shown_by(change.shell, instance, knob, setting.old, options.port)
    if seconds and before and before.agrees:
        raise Failure(f"it did not become active: {shown.words}, the old value")
    return shown


async def state_of(remote: Remote, reader: FileReader, port: int | None) -> FileState:
    """Compare a file with the running server that reads it. Raises ChangeRefused for an unreadable file, HostError."""
    instance = reader.instance
    if instance is None or reader.knobs[0].kind not in DIRECTIVES:
        return FileState()
    file = await files.read_of(remote, reader.knobs[0].host, reader.knobs[0])
    shown, unseen = [], []
    for knob in reader.knobs:
        value = plan.value_in(file, knob).value
        shown_value = await (_live(remote, knob, value) if knob.live else shown_by(remote, instance, knob, value, port))
        if shown_value and shown_value.agrees is not None:
            shown.append(shown_value)
        elif value is not None:
            unseen.append(knob)
    edited, started, read = await _times(remote, reader, instance)
    is_equal = len(shown) == len(reader.knobs) and all(each.agrees for each in shown)
    is_newer = not is_equal and read is not None and edited > read + _CLOCK_ERROR
    is_read = read is not None and edited <= read
    is_older = started is not None and edited > started + _CLOCK_ERROR
    awaiting = [knob for knob in unseen if knob.needs_restart and is_older]
    return FileState(tuple(shown), tuple(unseen), is_read, is_newer, tuple(awaiting))


async def _live(remote: Remote, knob: Knob, value: str | None) -> ShownValue | None:
    """Return a knob's value in the running server, read by its command; None if its file has no value."""
    if value is None:
        return None
    now = await pending.get(remote, knob.getter())
    return ShownValue(knob, "its command", now, now == knob.printed(value))


async def _times(remote: Remote, reader: FileReader, instance: Instance) -> tuple[int, int | None, int | None]:
    """Return the times (epoch s) of the file's last edit, the server's start, and its last read (None: unknown)."""
    kind, pid = instance.startup.kind, str(instance.process.pid)
    edited, *starts = await _starts(remote, reader.file, pid)
    started = next(iter(starts), None)
    if instance.startup.compare:
        return edited, started, 0 if await server_check.runs_another(remote, instance) else edited
    if kind in RELOADED:
        logged = (await reload_log.last(remote, reader.knobs, kind, pid)).read_at
        return edited, started, max(logged, started or 0) if logged else None
    if not RELOAD_REPLACES.get(kind):
        return edited, started, None if all(knob.live for knob in reader.knobs) else started
    _, *workers = await _starts(remote, reader.file, *map(str, instance.workers))
    return edited, started, min(workers, default=None)


async def _starts(remote: Remote, file: str, *pids: str) -> list[int]:
    """Return the times (epoch s) of a file's last edit and of the starts of processes."""
    done = await files.run(remote, STARTED, file, *pids)
    return [int(line) for line in done.lines if line.isdigit() and len(line) < 12] or [0]
