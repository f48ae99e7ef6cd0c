"""Read the running servers of a host and their configuration files. Nothing is changed there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cockpit.model.errors import ChangeRefused
from cockpit.model.text import sanitize
from cockpit.servers.editing import Grammar
from cockpit.servers.inventory import Inventory, parse_inventory, safe_path
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import FILES, GRAMMARS, INCLUDES, LIBRARIES, PROCESSES, TEXTS, VARIABLES, VERSIONS
from cockpit.servers.startup import Instance, absolute
from cockpit.tuning import files
from cockpit.tuning.remote import Remote
from cockpit.tuning.scripts import ENVIRONMENT, INVENTORY, OWNERS, UNTRUSTED
from cockpit.tuning.scripts import INCLUDES as READ_INCLUDES
from cockpit.tuning.scripts import TEXTS as READ_TEXTS

# Maximum depth of includes, and number of files of one configuration.
_MAX_DEPTH, _MAX_FILES = 10, 2000


class ConfigurationFiles(NamedTuple):
    """The files that a running server reads, main files first: real paths by the names in its configuration.

    `gaps` are reasons why files may be missing. `foreign` are files of which this server sees another version (in a
    container or chroot). Relative includes are relative to `root`. Names and paths of a server in a container are paths
    on the host.
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


async def read_inventory(remote: Remote, host: str) -> Inventory:
    """Read a host's running servers and listening sockets. Raises HostError, ChangeRefused if no command can run."""
    script = INVENTORY.replace("NAMES", "|".join(map(_shell_pattern, PROCESSES)))
    versions = (f"{name}={option}" for name, option in VERSIONS.items())
    variables = (f"{program}={name}" for program, names in VARIABLES.items() for name in names)
    libraries = (f"{program}={pattern}" for program, pattern in LIBRARIES.items())
    done = await files.run(remote, script, *map(" ".join, (FILES, TEXTS, versions, variables, libraries)))
    if done.exit_status != 0 and not done.stdout:
        raise ChangeRefused(f"{host}: {files.error_reason(done)}")
    return parse_inventory(done.stdout.decode("utf-8", "replace"), FILES, TEXTS)


async def untrusted(remote: Remote, paths: Iterable[str]) -> list[str]:
    """Return the paths that a user other than root and the login could replace. Raises HostError."""
    done = await files.run(remote, UNTRUSTED, *paths)
    return done.lines


async def owners(remote: Remote, programs: Sequence[str]) -> tuple[str, ...]:
    """Return the programs with owner and mode, e.g. `/opt/nginx (root, -rwxr-xr-x)`. Raises HostError."""
    done = await files.run(remote, OWNERS, *programs)
    return tuple(f"{path} ({sanitize(line, 80)})" for path, line in zip(programs, done.lines, strict=False) if line)


async def environment_files(remote: Remote, unit: str) -> dict[str, str]:
    """Return, by variable, the last EnvironmentFile of a unit that sets it. Raises HostError."""
    done = await files.run(remote, ENVIRONMENT, unit)
    rows = (line.split("\t") for line in done.lines)
    return {row[0]: path for row in rows if len(row) == 2 and (path := safe_path(row[1]))}


async def configuration_files(remote: Remote, instance: Instance) -> ConfigurationFiles:
    """Follow the includes of a running server's main files. Raises HostError."""
    startup = instance.startup
    root = startup.root
    reals: dict[str, str] = {}
    gaps: list[str] = [startup.uncertainty] if startup.uncertainty else []
    foreign: list[str] = []
    unread = list(startup.files)
    asked: set[str] = set()
    for _ in range(_MAX_DEPTH):
        asked |= set(unread)
        if not unread or len(reals) > _MAX_FILES:
            break
        done = await files.run(remote, READ_INCLUDES, str(instance.process.pid), instance.process.root, *unread)
        unread = []
        for line in done.lines:
            match line.split("\t", 3):
                case ["file", name, real, same] if safe_path(real):
                    reals[name] = real
                    foreign += [name] if same == "no" else []
                case ["unread", name]:
                    gaps.append(f"{name} cannot be read")
                case ["line", *words] if startup.kind in INCLUDES:
                    text = "\t".join(words)
                    root = _server_root(text, root)
                    unread += _included(text, startup.kind, root, gaps)
        unread = [path for path in dict.fromkeys(unread) if path not in asked]
    if unread:
        gaps.append("it has too many includes to follow")
    return ConfigurationFiles(reals, tuple(dict.fromkeys(gaps)), tuple(foreign), root)


async def configuration(remote: Remote, server: RunningServer) -> Configuration:
    """Read the configuration of a running server; no files if its startup is unknown. Raises HostError."""
    if server.startup is None or server.master is None:
        return Configuration(ConfigurationFiles({}), {})
    read = await configuration_files(remote, Instance(server.title, server.master, server.ports, server.startup))
    reals = list(dict.fromkeys(read.files.values()))
    done = await files.run(remote, READ_TEXTS, *reals)
    texts: dict[str, str] = {}
    for row in done.lines:
        number, _, line = row.partition(" ")
        if number.isascii() and number.isdigit() and len(number) < 5 and int(number) < len(reals):
            line = "" if line.lstrip().startswith("#") else line
            texts[reals[int(number)]] = texts.get(reals[int(number)], "") + line + "\n"
    return Configuration(read, texts)


def _server_root(line: str, root: str) -> str:
    name, *value = line.split(maxsplit=1) or [""]
    return absolute(value[0].strip().strip('"'), root) if value and name.lower() == "serverroot" else root


def _included(line: str, kind: str, root: str, gaps: list[str]) -> list[str]:
    """Return the paths and patterns that a line includes; add unresolvable ones to `gaps`."""
    if line.lstrip().startswith("#"):
        return []
    paths = []
    grammar = GRAMMARS.get(kind, Grammar)
    for written in (each for arguments in INCLUDES[kind].findall(line) for each in grammar.paths(arguments)):
        path = absolute(written, root)
        if not path or "$" in path:
            gaps.append(f"include {written[:200]!r} cannot be resolved")
        else:
            paths.append(path)
    return paths


def _shell_pattern(name: str) -> str:
    """Return a pattern for `case` in which only `*` is special."""
    return re.sub(r"[^A-Za-z0-9_*.-]", r"\\\g<0>", name)
