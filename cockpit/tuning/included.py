"""Settings of a server that an included file sets: the candidate of that file replaces the one of the main file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob
from cockpit.servers.editing import ConfigError
from cockpit.servers.kind import CandidateKnob, RunningServer
from cockpit.servers.startup import Instance, absolute
from cockpit.tuning import configuration, files
from cockpit.tuning.files import HostFile
from cockpit.tuning.host_inventory import configuration_files
from cockpit.tuning.remote import Remote

_NAMING = 'name=$1; shift; grep -liE -- "$name" "$@"'


async def follow_includes(remote: Remote, host: str, server: RunningServer) -> tuple[CandidateKnob, ...]:
    """The server's candidates, each in the file whose value is active. Raises HostError."""
    startup = server.startup
    if startup is None or server.master is None or all(one.file != startup.file for one in server.candidates):
        return server.candidates
    read = await configuration_files(remote, Instance(server.title, server.master, server.ports, startup))
    try:
        main = await files.read(remote, host, startup.file)
        included = await _naming(remote, host, server.candidates, set(read.files.values()) - {main.real})
    except ChangeRefused:
        return server.candidates
    by_name = {name: included[real] for name, real in read.files.items() if real in included}
    return tuple(
        _active(one, host, main, by_name, read.root) if one.file == startup.file else one for one in server.candidates
    )


async def _naming(
    remote: Remote, host: str, candidates: Sequence[CandidateKnob], reals: Iterable[str]
) -> dict[str, HostFile]:
    """Those of the files that contain the name of a candidate's directive."""
    names = "|".join(sorted({one.directive.replace(".", "[.]") for one in candidates}))
    wanted = sorted(reals)
    done = await files.run(remote, _NAMING, names, *wanted) if wanted else None
    found = done.stdout.decode("utf-8", "replace").splitlines() if done else []
    return {real: await files.read(remote, host, real) for real in found if real in wanted}


def _active(
    candidate: CandidateKnob, host: str, main: HostFile, included: Mapping[str, HostFile], root: str
) -> CandidateKnob:
    """The candidate in the last file that sets it, by the order of the includes in its section of the main file."""
    knob = Knob(name=candidate.name, host=host, kind=candidate.kind, file=main.file, directive=candidate.directive)
    in_section = replace(knob, section=candidate.section)
    active = candidate
    try:
        line = configuration.read(in_section, main.data).line
        includes = configuration.includes(in_section, main.data)
    except ConfigError:
        return candidate
    for pattern, at in includes:
        if at < line:
            continue
        path = absolute(pattern, root)
        for name in sorted(name for name in included if fnmatchcase(name, path)):
            if _is_set(knob, included[name]):
                active = candidate._replace(file=included[name].real, section=None)
    return active


def _is_set(knob: Knob, file: HostFile) -> bool:
    try:
        return configuration.read(knob, file.data).value is not None
    except ConfigError:
        return False
