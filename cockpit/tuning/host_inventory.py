"""Reads which servers run on a host, and the files of their configuration. Nothing is changed there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from cockpit.model.errors import ChangeRefused
from cockpit.servers.inventory import Inventory, lines_of, parse_inventory, safe_path
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import FILES, INCLUDES, LIBRARIES, PROCESSES, TEXTS, VARIABLES, VERSIONS
from cockpit.servers.startup import Instance, absolute
from cockpit.tuning import files
from cockpit.tuning.remote import Remote
from cockpit.tuning.scripts import ENVIRONMENT, INVENTORY, UNTRUSTED
from cockpit.tuning.scripts import INCLUDES as READ_INCLUDES

# Includes within includes, and files of one configuration, that are followed.
_DEEPEST, _MOST_FILES = 10, 2000
# Lines behind the numbers of their files; at most 64 KiB of a file, 1 MiB of all.
_TEXTS = 'n=0; for file; do head -c 65536 -- "$file" | sed "s/^/$n /"; echo; n=$((n + 1)); done | head -c 1048576'


class ConfigurationFiles(NamedTuple):
    """The files that a running server reads, main ones first: their real paths by the names in its configuration.

    `gaps` are reasons why files may be missing. `foreign` are files that this server sees with another content (a
    container, a chroot). Relative includes begin at `root`. Names and paths of a
    server in a container are those by which the host sees them.
    """

    files: dict[str, str]
    gaps: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    root: str = ""

    def has(self, file: str, real: str) -> bool:
        return file in self.files or real in self.files.values()


class Configuration(NamedTuple):
    """The files of a running server, and their texts without comments by their real paths."""

    read: ConfigurationFiles
    texts: dict[str, str]

    @property
    def text(self) -> str:
        return "".join(self.texts.values())


async def take_inventory(remote: Remote, host: str) -> Inventory:
    """Raises HostError, ChangeRefused if no command can be run there."""
    script = INVENTORY.replace("NAMES", "|".join(map(_shell_pattern, PROCESSES)))
    versions = (f"{name}={option}" for name, option in VERSIONS.items())
    variables = (f"{program}={name}" for program, names in VARIABLES.items() for name in names)
    libraries = (f"{program}={pattern}" for program, pattern in LIBRARIES.items())
    done = await files.run(remote, script, *map(" ".join, (FILES, TEXTS, versions, variables, libraries)))
    if done.exit_status != 0 and not done.stdout:
        raise ChangeRefused(f"{host}: {files.why(done)}")
    return parse_inventory(done.stdout.decode("utf-8", "replace"), FILES, TEXTS)


async def untrusted(remote: Remote, paths: Iterable[str]) -> list[str]:
    """Those of the paths that another user than root and the login could replace. Raises HostError."""
    done = await files.run(remote, UNTRUSTED, *paths)
    return done.stdout.decode("utf-8", "replace").splitlines()


async def environment_files(remote: Remote, unit: str) -> dict[str, str]:
    """The last EnvironmentFile of a unit that sets a variable, by the variable. Raises HostError."""
    done = await files.run(remote, ENVIRONMENT, unit)
    rows = (line.split("\t") for line in done.stdout.decode("utf-8", "replace").splitlines())
    return {row[0]: path for row in rows if len(row) == 2 and (path := safe_path(row[1]))}


async def configuration_files(remote: Remote, instance: Instance) -> ConfigurationFiles:
    """Follow the includes of a running server's main files. Raises HostError."""
    startup = instance.startup
    include, root = INCLUDES.get(startup.kind), startup.root
    found: dict[str, str] = {}
    gaps: list[str] = [startup.doubt] if startup.doubt else []
    foreign: list[str] = []
    wanted = list(startup.files)
    asked: set[str] = set()
    for _ in range(_DEEPEST):
        asked |= set(wanted)
        if not wanted or len(found) > _MOST_FILES:
            break
        done = await files.run(remote, READ_INCLUDES, str(instance.process.pid), instance.process.root, *wanted)
        wanted = []
        for line in lines_of(done.stdout.decode("utf-8", "replace")):
            match line.split("\t", 3):
                case ["file", name, real, same] if safe_path(real):
                    found[name] = real
                    foreign += [name] if same == "no" else []
                case ["unread", name]:
                    gaps.append(f"{name} cannot be read")
                case ["line", *words] if include:
                    text = "\t".join(words)
                    root = _server_root(text, root)
                    wanted += _included(text, include, root, gaps)
        wanted = [path for path in dict.fromkeys(wanted) if path not in asked]
    if wanted:
        gaps.append("it has too many includes to follow")
    return ConfigurationFiles(found, tuple(dict.fromkeys(gaps)), tuple(foreign), root)


async def configuration(remote: Remote, server: RunningServer) -> Configuration:
    """The configuration of a running server; no files if it is unknown. Raises HostError."""
    if server.startup is None or server.master is None:
        return Configuration(ConfigurationFiles({}), {})
    read = await configuration_files(remote, Instance(server.title, server.master, server.ports, server.startup))
    reals = list(dict.fromkeys(read.files.values()))
    done = await files.run(remote, _TEXTS, *reals)
    texts: dict[str, str] = {}
    for row in lines_of(done.stdout.decode("utf-8", "replace")):
        number, _, line = row.partition(" ")
        if number.isascii() and number.isdigit() and len(number) < 5 and int(number) < len(reals):
            line = "" if line.lstrip().startswith("#") else line
            texts[reals[int(number)]] = texts.get(reals[int(number)], "") + line + "\n"
    return Configuration(read, texts)


def _server_root(line: str, root: str) -> str:
    name, *value = line.split(maxsplit=1) or [""]
    return absolute(value[0].strip().strip('"'), root) if value and name.lower() == "serverroot" else root


def _included(line: str, include: re.Pattern[str], root: str, gaps: list[str]) -> list[str]:
    """The paths and patterns that a line includes; adds a gap for one that cannot be resolved."""
    if line.lstrip().startswith("#"):
        return []
    paths = []
    for written in include.findall(line):
        path = absolute(written.strip("\"'"), root)
        if not path or "$" in path:
            gaps.append(f"include {written[:200]!r} cannot be resolved")
        else:
            paths.append(path)
    return paths


def _shell_pattern(name: str) -> str:
    """A pattern for `case`: all but `*` is literal."""
    return re.sub(r"[^A-Za-z0-9_*.-]", r"\\\g<0>", name)
