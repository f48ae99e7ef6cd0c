"""Settings that an included file sets: the candidate in that file replaces the one in the main file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob
from cockpit.servers.editing import AmbiguousValue, ConfigError, ConfigValue
from cockpit.servers.kind import CandidateKnob, RunningServer
from cockpit.servers.registry import GRAMMARS
from cockpit.servers.startup import absolute
from cockpit.tuning import files
from cockpit.tuning.discovery import configuration
from cockpit.tuning.discovery.host_inventory import ConfigurationFiles
from cockpit.tuning.files import HostFile
from cockpit.tuning.remote import Remote

# Includes of included files that are followed.
_DEEPEST = 4
_NAMING = 'name=$1; shift; grep -liE -- "$name" "$@"'


async def follow_includes(
    remote: Remote, host: str, server: RunningServer, read: ConfigurationFiles
) -> tuple[CandidateKnob, ...]:
    """Return the server's candidates, each in the file whose value is active. Raises HostError."""
    startup = server.startup
    if startup is None or all(candidate.file != startup.file for candidate in server.candidates):
        return server.candidates
    try:
        main = await files.read(remote, host, startup.file)
        included = await _naming(remote, host, server.candidates, set(read.files.values()) - {main.real})
    except ChangeRefused:
        return server.candidates
    by_name = {name: included[real] for name, real in read.files.items() if real in included}
    return tuple(_followed(candidate, host, main, by_name, startup.files, read.root) for candidate in server.candidates)


async def _naming(
    remote: Remote, host: str, candidates: Sequence[CandidateKnob], reals: Iterable[str]
) -> dict[str, HostFile]:
    """Return the files that contain the name of a candidate's directive or section."""
    # A file may have a section without any of the settings, or only include other files.
    sections = {each.section for each in candidates if each.section and GRAMMARS[each.kind].keeps_section}
    grammars = {GRAMMARS[each.kind] for each in candidates if each.kind in GRAMMARS}
    including = {name for grammar in grammars for name in grammar.including}
    terms = {each.directive for each in candidates} | sections | including | {"!include"}
    # MariaDB accepts "_" and "-" in names.
    names = "|".join(sorted(name.replace(".", "[.]").replace("_", "[_-]") for name in terms))
    paths = sorted(reals)
    done = await files.run(remote, _NAMING, names, *paths) if paths else None
    return {real: await files.read(remote, host, real) for real in (done.lines if done else ()) if real in paths}


def _followed(
    candidate: CandidateKnob,
    host: str,
    main: HostFile,
    included: Mapping[str, HostFile],
    mains: Sequence[str],
    root: str,
) -> CandidateKnob:
    """Return the candidate in the last of the main and included files that sets it.

    If no file sets it, return it in the first file that has its section.
    """
    if candidate.file not in mains:
        return candidate
    known = {**included, **{file.real: file for file in included.values()}, main.file: main}
    active, has_place = candidate, False
    for name in mains[mains.index(candidate.file) :]:
        if name not in known:
            continue
        moved = _active(candidate._replace(file=name), host, known[name], included, root)
        value = _value(_knob(moved, host, moved.section), known[moved.file])
        if value and (value.value is not None or not has_place):
            active, has_place = moved, True
    return active


def _active(
    candidate: CandidateKnob, host: str, main: HostFile, included: Mapping[str, HostFile], root: str, depth: int = 0
) -> CandidateKnob:
    """Return the candidate in the last included file that sets it, in the order of includes in its section of `main`;
    `depth`: of includes in included files.

    If no file sets it, return it in the first file that has its section.
    """
    files_by_real = {file.real: file for file in included.values()}
    own, keeps = _knob(candidate, host, candidate.section), GRAMMARS[candidate.kind].keeps_section
    inner = own if keeps else replace(own, section=None)
    now = _value(own, main)
    if now is None and not keeps:
        return candidate
    active, homes = candidate, []
    for pattern, at in configuration.includes(own, main.data):
        if now and at < now.line:
            continue
        path = absolute(pattern, root)
        for name in sorted(name for name in included if _is_included(name, path)):
            moved = candidate._replace(file=included[name].real, section=inner.section)
            if depth < _DEEPEST:
                moved = _active(moved, host, included[name], included, root, depth + 1)
            value = _value(_knob(moved, host, moved.section), files_by_real[moved.file])
            if value and value.value is not None:
                active = moved
            homes += [moved] if value and keeps and now is None else []
    return homes[0] if homes and active is candidate else active


def _is_included(name: str, path: str) -> bool:
    """Return whether a file matches a pattern, or is in a directory that is included."""
    return fnmatchcase(name, path) or name.startswith(f"{path.rstrip('/')}/")


def _knob(candidate: CandidateKnob, host: str, section: str | None) -> Knob:
    return Knob(
        name=candidate.name,
        host=host,
        kind=candidate.kind,
        file=candidate.file,
        directive=candidate.directive,
        section=section,
    )


def _value(knob: Knob, file: HostFile | None) -> ConfigValue | None:
    """Return the knob's value in a file; None if the file, or the knob's section in it, does not exist.

    An ambiguous value counts as set: the knob stays in that file, where a change is refused.
    """
    try:
        return configuration.read(knob, file.data) if file else None
    except AmbiguousValue as error:
        return ConfigValue("", b"", error.line, 1)
    except ConfigError:
        return None
