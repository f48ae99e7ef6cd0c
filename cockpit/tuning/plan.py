"""What a change is going to write, worked out before anything is touched. No I/O: files come in as they were read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob, Setting
from cockpit.tuning import directive
from cockpit.tuning.applied import Applied, Edit
from cockpit.tuning.files import HostFile, Replacement, sha256
from cockpit.tuning.syntax import ConfigError

_DIRECTIVE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


class Plan(NamedTuple):
    """A change worked out: what to write, and what to run (each command once, in the order of the knobs)."""

    host: str
    settings: tuple[Setting, ...]
    edits: tuple[Edit, ...]
    replacements: tuple[Replacement, ...]
    notes: tuple[str, ...]

    @property
    def knobs(self) -> tuple[Knob, ...]:
        return tuple(edit.knob for edit in self.edits)

    @property
    def names(self) -> str:
        return ", ".join(setting.knob for setting in self.settings)

    @property
    def tests(self) -> list[str]:
        return list(dict.fromkeys(knob.test for knob in self.knobs))

    @property
    def reloads(self) -> list[str]:
        return list(dict.fromkeys(knob.reload for knob in self.knobs))


def value_in(file: HostFile, knob: Knob) -> directive.Reading:
    """The knob's directive as it stands in the file. Raises ChangeRefused naming the file."""
    try:
        return directive.read(file.data, knob.directive, knob.section)
    except ConfigError as error:
        raise ChangeRefused(f"{file.host}:{file.file}: {error}") from None


def forward(host: str, files: Mapping[str, HostFile], assignments: Sequence[tuple[Knob, str | None]]) -> Plan:
    """The plan that gives each knob its value (None: its directive is taken out). `files` are by knob.file.

    Raises ChangeRefused: a value that the knob does not allow, a section that is not there, a knob named twice.
    """
    texts = {file.real: file.data for file in files.values()}
    settings, edits, notes = [], [], []
    _check(host, files, [knob for knob, _ in assignments])
    for knob, value in assignments:
        file = files[knob.file]
        try:
            old = directive.read(texts[file.real], knob.directive, knob.section)
            new = None if value is None else _spelled(knob, value, old.raw)
            if new != old.raw:
                texts[file.real] = directive.change(texts[file.real], knob.directive, knob.section, new)
                edits.append(Edit(knob=knob, real=file.real, old=old.raw, new=new))
        except ConfigError as error:
            raise ChangeRefused(f"{knob.name}: {host}:{file.file}: {error}") from None
        settings.append(Setting(knob=knob.name, old=old.value, new=None if new is None else directive.shown(new)))
        if old.times > 1:
            notes.append(f"{knob.directive} stands {old.times} times in {knob.file}; the last, line {old.line}, counts")
    return Plan(host, tuple(settings), tuple(edits), _replacements(files.values(), texts), tuple(notes))


def backward(applied: Applied, files: Mapping[str, HostFile], originals: Mapping[str, bytes]) -> Plan:
    """The plan that takes `applied` back. `originals` are the backups that could be read, by real path.

    A file that nobody wrote since gets its original bytes; in one that somebody did write, only our directives go
    back, and a note says so. Raises ChangeRefused when somebody else changed one of these directives too.
    """
    now = {file.real: file for file in files.values()}
    texts = {file.real: file.data for file in files.values()}
    edits, notes = [], []
    for edit in reversed(applied.edits):
        file = files[edit.knob.file]
        try:
            found = directive.read(texts[file.real], edit.knob.directive, edit.knob.section)
            if found.raw == edit.old:
                continue
            if found.raw != edit.new:
                raise ConfigError(
                    f"it is {_said(found.raw)} there, not {_said(edit.new)}: somebody else changed it since"
                )
            texts[file.real] = directive.change(texts[file.real], edit.knob.directive, edit.knob.section, edit.old)
        except ConfigError as error:
            raise ChangeRefused(f"{edit.knob.name}: {applied.host}:{file.file}: {error}; nothing was changed") from None
        edits.append(Edit(knob=edit.knob, real=file.real, old=edit.new, new=edit.old))
    for change in applied.files:
        current = now.get(change.real)
        if current is None:
            notes.append(f"{change.file} leads to another file now; only its directives were taken back")
        elif current.digest == change.after and sha256(originals.get(change.real, b"")) == change.before:
            texts[change.real] = originals[change.real]
        elif sha256(texts[change.real]) != change.before:
            notes.append(f"somebody else wrote {change.file} since; only its directives were taken back")
    edits.reverse()
    settings = tuple(Setting(knob=edit.knob.name, old=_text(edit.old), new=_text(edit.new)) for edit in edits)
    return Plan(applied.host, settings, tuple(edits), _replacements(files.values(), texts), tuple(notes))


def _check(host: str, files: Mapping[str, HostFile], knobs: Sequence[Knob]) -> None:
    seen: dict[tuple[str, str | None, str], str] = {}
    for knob in knobs:
        if knob.host != host:
            raise ChangeRefused(f"{knob.name} is a knob of {knob.host}, not of {host}; change one host at a time")
        if not _DIRECTIVE.fullmatch(knob.directive):
            raise ChangeRefused(f"{knob.name}: {knob.directive!r} cannot be the name of a directive")
        place = (files[knob.file].real, knob.section, knob.directive.lower())
        if place in seen:
            raise ChangeRefused(f"{seen[place]} and {knob.name} are the same directive; give it one value")
        seen[place] = knob.name


def _spelled(knob: Knob, value: str, old: bytes | None) -> bytes:
    directive.allowed(knob.directive, value, knob.values)
    if old is not None and directive.shown(old) == directive.shown(directive.spell(value)):
        return old
    return directive.spell(value, like=old)


def _replacements(files: Iterable[HostFile], texts: Mapping[str, bytes]) -> tuple[Replacement, ...]:
    """The files whose bytes change, each once however many names lead to it."""
    changed = {file.real: file for file in files if texts[file.real] != file.data}
    return tuple(
        Replacement(number, file, texts[real], sha256(texts[real]))
        for number, (real, file) in enumerate(changed.items())
    )


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else directive.shown(raw)


def _said(raw: bytes | None) -> str:
    return "unset" if raw is None else directive.shown(raw)
