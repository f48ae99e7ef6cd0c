"""Plan a change or its undo, before anything is touched. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import SECRET, Knob, Setting, highest_cost
from cockpit.model.text import sanitize
from cockpit.servers.editing import BYTE_ORDER_MARK, ConfigError, ConfigValue
from cockpit.servers.startup import Instance
from cockpit.tuning.applied import AppliedChange, Edit, LiveEdit, name_of
from cockpit.tuning.discovery import configuration
from cockpit.tuning.files import HostFile, Replacement, sha256
from cockpit.tuning.scripts import ABSENT

# Knobs of one host with their new values; None: not set.
NewValues = Sequence[tuple[Knob, str | None]]
NOTHING_TO_CHANGE = "nothing to change: the host has these values already"
_MARKED = "{} starts with a byte order mark, which its server may read as part of the first line"


class CurrentValues(NamedTuple):
    """The state before a change: files by their path in the knobs, live values by knob name."""

    files: Mapping[str, HostFile]
    values: Mapping[str, str]


class Plan(NamedTuple):
    """A planned change: files to write, values to set, and commands to run (each once, in the order of the knobs).

    `undoes` is the directory of the undone change, "" if the change is not an undo. `servers` are the
    servers that certainly read the files, by knob name.
    """

    host: str
    settings: tuple[Setting, ...]
    edits: tuple[Edit, ...]
    live_edits: tuple[LiveEdit, ...]
    replacements: tuple[Replacement, ...]
    notes: tuple[str, ...]
    undoes: str = ""
    servers: Mapping[str, Instance] = {}

    @property
    def knobs(self) -> tuple[Knob, ...]:
        touched = (*(edit.knob for edit in self.edits), *(live_edit.knob for live_edit in self.live_edits))
        return tuple({knob.name: knob for knob in touched}.values())

    @property
    def places(self) -> tuple[str, ...]:
        """Identities of the changed values, independent of knob names."""
        in_files = [configuration.place(edit.knob, edit.real) for edit in self.edits]
        return tuple(dict.fromkeys((*in_files, *(live_edit.knob.live_place() for live_edit in self.live_edits))))

    @property
    def shown_settings(self) -> tuple[Setting, ...]:
        secret = {knob.name for knob in self.knobs if knob.secret}
        return tuple(s.hidden() if s.knob in secret else s for s in self.settings)

    def redacted(self, text: str) -> str:
        """Return the text without the secret values of the change."""
        secret = {knob.name for knob in self.knobs if knob.secret}
        values = {value for s in self.settings if s.knob in secret for value in (s.old, s.new) if value}
        values |= {_text(raw) for edit in self.edits if edit.knob.secret for raw in (edit.old, edit.new) if raw}
        for value in sorted(values, key=len, reverse=True):
            text = text.replace(value, SECRET)
        return text

    @property
    def names(self) -> str:
        return ", ".join(setting.knob for setting in self.settings) or f"undo {name_of(self.undoes)}"

    @property
    def inactive(self) -> tuple[Knob, ...]:
        """Knobs whose value is written without becoming active."""
        return tuple(knob for knob in self.knobs if knob.written_only)

    @property
    def tests(self) -> list[str]:
        return [command for command in dict.fromkeys(knob.test for knob in self.knobs) if command]

    @property
    def reloads(self) -> list[str]:
        """Reload commands, restarts first: Apache exits at a reload that changes its MPM, and the children that it
        leaves would block its restart."""
        in_order = sorted(self.knobs, key=lambda knob: knob.effective_cost != "restart")
        return [command for command in dict.fromkeys(knob.reload for knob in in_order) if command]

    @property
    def cost(self) -> str:
        return highest_cost(self.knobs)

    @property
    def diff(self) -> str:
        """A diff without context lines, which may contain secrets."""
        parts = [_diff(replacement) for replacement in self.replacements]
        parts += [f"{s.knob.name} on {self.host}\n-{s.old}\n+{s.new}\n" for s in self.live_edits]
        return self.redacted("".join(parts))


def value_in(file: HostFile, knob: Knob) -> ConfigValue:
    """Return the knob's value in the file. Raises ChangeRefused with the file's name."""
    try:
        return configuration.read(knob, file.data)
    except ConfigError as error:
        raise ChangeRefused(f"{file.host}:{file.file}: {sanitize(str(error))}") from None


def forward(host: str, current: CurrentValues, values: NewValues) -> Plan:
    """Return the plan that sets each knob (None: removed from its file).

    Raises ChangeRefused for a value that is not allowed, a missing section, or a knob named twice.
    """
    edited = {file.real: file.data for file in current.files.values()}
    settings, edits, live_edits, notes = [], [], [], []
    _check(host, current.files, values)
    for knob, value in values:
        setting = None
        if knob.live:
            setting, live_edit = _live_edit(knob, current.values[knob.name], value)
            live_edits += [live_edit] if live_edit else []
        if knob.in_file:
            file = current.files[knob.file]
            edit, in_file, note = _file_edit(knob, file, edited, value)
            edits += [edit] if edit else []
            notes += [note] if note else []
            setting = setting or in_file
        assert setting is not None
        settings.append(setting)
    replacements = _replacements(current.files.values(), edited)
    notes += _corrections(edits, edited)
    notes += [_MARKED.format(each.file) for each in current.files.values() if each.data.startswith(BYTE_ORDER_MARK)]
    return Plan(host, tuple(settings), tuple(edits), tuple(live_edits), replacements, tuple(notes))


def _corrections(edits: Iterable[Edit], edited: Mapping[str, bytes]) -> list[str]:
    """Return notes about values that the server silently corrects, each once."""
    notes = (configuration.coerced(edit.knob, edited[edit.real]) for edit in edits)
    return list(dict.fromkeys(note for note in notes if note))


def _live_edit(knob: Knob, old: str, value: str | None) -> tuple[Setting, LiveEdit | None]:
    if value is None:
        raise ChangeRefused(f"{knob.name}: it always has a value; it cannot be removed")
    new = knob.printed(value)
    knob.check_live(new)
    return Setting(knob=knob.name, old=old, new=new), None if old == new else LiveEdit(knob=knob, old=old, new=new)


def _file_edit(
    knob: Knob, file: HostFile, edited: dict[str, bytes], value: str | None
) -> tuple[Edit | None, Setting, str]:
    """Change the file's text in `edited`; return the edit (None: no change), the setting and a note."""
    text = edited[file.real]
    try:
        old = configuration.read(knob, text)
        new = None if value is None else configuration.encode(knob, text, value)
        if new != old.raw:
            edited[file.real] = configuration.change(knob, text, new)
        shown = configuration.read(knob, edited[file.real]).value
    except ConfigError as error:
        raise ChangeRefused(f"{knob.name}: {file.host}:{file.file}: {sanitize(str(error))}") from None
    edit = Edit(knob=knob, real=file.real, old=old.raw, new=new) if new != old.raw else None
    name = knob.directive or knob.key
    note = f"{name} is set {old.times} times in {knob.file}; line {old.line} is effective"
    return edit, Setting(knob=knob.name, old=old.value, new=shown), note if old.times > 1 else ""


def backward(applied: AppliedChange, current: CurrentValues, originals: Mapping[str, bytes]) -> Plan:
    """Return the plan that undoes `applied`. `originals` are the readable backups, by real path.

    A file that nobody else wrote gets its original bytes; in other files only the values are restored, with a note.
    Raises ChangeRefused if one of these values was modified elsewhere.
    """
    edited = {file.real: file.data for file in current.files.values()}
    settings: dict[str, Setting] = {}
    edits, live_edits = [], []
    for edit in reversed(applied.edits):
        file = current.files[edit.knob.file]
        try:
            text = edited[file.real]
            now = configuration.read(edit.knob, text)
            if now.raw == edit.old:
                continue
            if now.raw != edit.new:
                is_now, new = (edit.knob.shown(_text(raw)) for raw in (now.raw, edit.new))
                raise ConfigError(f"modified elsewhere; current value {is_now}, expected {new}")
            edited[file.real] = configuration.change(edit.knob, text, edit.old)
            old = configuration.read(edit.knob, edited[file.real])
        except ConfigError as error:
            why = f"{applied.host}:{file.file}: {sanitize(str(error))}"
            raise ChangeRefused(f"{edit.knob.name}: {why}; nothing was changed") from None
        edits.append(Edit(knob=edit.knob, real=file.real, old=edit.new, new=edit.old))
        settings[edit.knob.name] = Setting(knob=edit.knob.name, old=now.value, new=old.value)
    for live_edit in reversed(applied.live_edits):
        is_now = current.values[live_edit.knob.name]
        if is_now == live_edit.old:
            continue
        if is_now not in (live_edit.new, live_edit.got):
            raise ChangeRefused(
                f"{live_edit.knob.name} is {live_edit.knob.shown(is_now)} on {applied.host}, "
                f"not {live_edit.knob.shown(live_edit.new)}: modified elsewhere; nothing was changed"
            )
        live_edits.append(LiveEdit(knob=live_edit.knob, old=is_now, new=live_edit.old))
        settings[live_edit.knob.name] = Setting(knob=live_edit.knob.name, old=is_now, new=live_edit.old)
    notes = _whole_files(applied, current, originals, edited)
    removed = _to_remove(applied, current, edited)
    notes += _corrections(edits, edited)
    if not edits and not live_edits:
        notes.append(NOTHING_TO_CHANGE)
    edits.reverse()
    order = [setting.knob for setting in applied.settings if setting.knob in settings]
    kept = tuple(settings[name] for name in order)
    replacements = _replacements(current.files.values(), edited, removed)
    return Plan(applied.host, kept, tuple(edits), tuple(live_edits), replacements, tuple(notes), applied.change)


def _whole_files(
    applied: AppliedChange, current_values: CurrentValues, originals: Mapping[str, bytes], edited: dict[str, bytes]
) -> list[str]:
    """Replace the edited text by the original bytes if nobody else wrote the file since; return notes about others."""
    now = {file.real: file for file in current_values.files.values()}
    notes = []
    for change in applied.files:
        current = now.get(change.real)
        if current is None:
            notes.append(f"{change.file} is now a link to another file; only the values of this change were undone")
        elif current.digest == change.after and sha256(originals.get(change.real, b"")) == change.before:
            edited[change.real] = originals[change.real]
        elif change.before == ABSENT and (current.digest == change.after or not edited[change.real]):
            edited[change.real] = b""
        elif sha256(edited[change.real]) != change.before:
            notes.append(f"{change.file} was written by others since; only the values of this change were undone")
    return notes


def _to_remove(applied: AppliedChange, current: CurrentValues, edited: Mapping[str, bytes]) -> frozenset[str]:
    """Return the real paths of files that the change created and that have no other content."""
    created = {change.real for change in applied.files if change.before == ABSENT}
    return frozenset(real for real in created & {file.real for file in current.files.values()} if not edited[real])


def _check(host: str, files: Mapping[str, HostFile], values: NewValues) -> None:
    seen: dict[tuple[str | None, ...], str] = {}
    for knob, value in values:
        if why := "" if value is None else knob.format_error(value):
            raise ChangeRefused(why)
        if knob.host != host:
            raise ChangeRefused(f"{knob.name} is a knob of {knob.host}, not of {host}; change one host at a time")
        if knob.directive and not configuration.has_name(knob):
            raise ChangeRefused(f"{knob.name}: {knob.directive!r} cannot be the name of a directive")
        place: tuple[str | None, ...] = ("live", knob.name)
        if knob.in_file:
            place = (files[knob.file].real, knob.section, knob.directive.lower() or knob.key)
        if place in seen:
            raise ChangeRefused(f"{seen[place]} and {knob.name} are the same directive; give it one value")
        seen[place] = knob.name


def _replacements(
    files: Iterable[HostFile], edited: Mapping[str, bytes], removed: frozenset[str] = frozenset()
) -> tuple[Replacement, ...]:
    """Return the files whose bytes change; a file with several names only once."""
    changed = {file.real: file for file in files if edited[file.real] != file.data}
    return tuple(
        Replacement(number, file, edited[real], ABSENT if real in removed else sha256(edited[real]))
        for number, (real, file) in enumerate(changed.items())
    )


def _diff(replacement: Replacement) -> str:
    name = replacement.before.file
    sides = ((replacement.before.digest, replacement.before.data), (replacement.digest, replacement.data))
    old, new = ("/dev/null" if digest == ABSENT else name for digest, _ in sides)
    before, after = (data.decode("utf-8", "backslashreplace").split("\n") for _, data in sides)
    return "".join(f"{line}\n" for line in difflib.unified_diff(before, after, old, new, n=0, lineterm=""))


def _text(raw: bytes | None) -> str:
    return "unset" if raw is None else raw.decode("utf-8", "backslashreplace")
