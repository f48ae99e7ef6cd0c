"""Inventory of a host: processes, listeners, readable files, configuration texts. Pure; parsed from the output of the
discovery script."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Literal, NamedTuple, get_args

_UNIT = re.compile(r"[\w@:.\\-]{1,200}\.service")
# Fields of a line about a master: program, directory, whether both are certain, unit, origin.
_MASTER_FACTS = 5
_LONGEST_PATH = 4096
_TITLE = re.compile(r"/proc/(\d{1,9})/cmdline:(.*)")
# Addresses of listeners that accept connections to any address.
_ANY = ("*", "0.0.0.0", "::")
_USER = re.compile(r'\("([^"]*)",pid=(\d{1,9}),')


# host: a process of root or of the login; container: in a container; user: of another user, also a root process that
# dropped its privileges.
ProcessOrigin = Literal["host", "container", "user"]
_ORIGINS: dict[str, ProcessOrigin] = {origin: origin for origin in get_args(ProcessOrigin)}


class Process(NamedTuple):
    """A process of a server. `command` is its command line; of a process whose parent has the same name, its title.

    `program` is the path of its executable and `directory` its working directory, "" if unknown. `is_certain`: both
    were read from /proc/PID. `unit` is its systemd unit. `facts` are environment variables that its kind of server
    reads (ServerKind.variables), and under `library` the loaded libraries that match ServerKind.library.
    """

    pid: int
    parent: int
    name: str
    command: tuple[str, ...]
    program: str = ""
    directory: str = ""
    is_certain: bool = False
    unit: str = ""
    origin: ProcessOrigin = "host"
    facts: tuple[tuple[str, str], ...] = ()

    def fact(self, name: str) -> str:
        """Return the value of a fact; "" if it is unknown."""
        return dict(self.facts).get(name, "")

    @property
    def root(self) -> str:
        """The path of its root directory on the host; "" for the root directory of the host."""
        return f"/proc/{self.pid}/root" if self.origin == "container" else ""


class PortListener(NamedTuple):
    """A process that accepts connections on a port. `queue` is the limit of its accept queue; None: unknown. `address`
    is its IP address, "" if it accepts connections to any or if it is unknown."""

    name: str
    pid: int
    port: int
    queue: int | None = None
    address: str = ""


class UnixListener(NamedTuple):
    """A process that accepts connections on a Unix socket."""

    name: str
    pid: int
    path: str


class Inventory(NamedTuple):
    """The inventory of a host. `files` are the readable ones of the requested files, `texts` the contents of requested
    files by name. `builds` are the compiled defaults that programs print, by program path. `addresses` are the IP
    addresses of the host."""

    user: str = ""
    processes: tuple[Process, ...] = ()
    listening: tuple[PortListener, ...] = ()
    files: frozenset[str] = frozenset()
    texts: Mapping[str, str] = {}
    builds: Mapping[str, str] = {}
    sockets: tuple[UnixListener, ...] = ()
    addresses: frozenset[str] = frozenset()

    def masters(self, *patterns: str) -> tuple[Process, ...]:
        """Return the processes whose names match and whose parents' names do not."""
        matching = {process.pid: process for process in self.processes if _matches(process.name, patterns)}
        return tuple(process for process in matching.values() if process.parent not in matching)

    def tree(self, master: int) -> frozenset[int]:
        """Return the process and its known descendants."""
        tree = {master}
        while children := {process.pid for process in self.processes if process.parent in tree} - tree:
            tree |= children
        return frozenset(tree)

    def workers(self, master: int) -> tuple[int, ...]:
        """Return the known children of a master, without nginx workers that are shutting down."""
        children = (process for process in self.processes if process.parent == master)
        return tuple(child.pid for child in children if "shutting down" not in " ".join(child.command))

    def pids_named(self, names: Collection[str], exact: bool) -> set[int]:
        """Return the processes with one of these names; unless `exact`, a part of the process name is enough."""
        return {
            process.pid
            for process in self.processes
            if any(name == process.name or (not exact and name in process.name) for name in names)
        }

    def ports_of(self, master: int) -> tuple[int, ...]:
        """Return the ports on which a process or its descendants accept connections."""
        tree = self.tree(master)
        return tuple(sorted({listener.port for listener in self.listening if listener.pid in tree}))

    def tails(self, *logs: str) -> tuple[str, ...]:
        """Return a command per readable log that follows it."""
        return tuple(f"tail -n 3 -F {log}" for log in logs if log in self.files)

    def readable(self, *files: str) -> str:
        """Return the first readable file; "" if there is none."""
        return next((file for file in files if file in self.files), "")

    def text(self, *patterns: str) -> str:
        """Return the texts of the files whose names match, joined."""
        return "\n".join(text for file, text in self.texts.items() if _matches(file, patterns))


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def parse_inventory(text: str, files: Collection[str], texts: Collection[str] = ()) -> Inventory:
    """Parse the output of the discovery script: one fact per line, fields separated by tabs. Malformed lines are
    skipped. `files` are the requested names, `texts` the requested patterns."""
    user, readable = "", set()
    processes: list[Process] = []
    titles = _titles(text)
    listening: list[PortListener] = []
    contents: dict[str, str] = {}
    masters: dict[int, Sequence[str]] = {}
    known_facts: dict[int, dict[str, str]] = {}
    builds: dict[str, str] = {}
    sockets: list[UnixListener] = []
    addresses: set[str] = set()
    # One line of a text after the other has the same name.
    is_requested = cache(lambda name: _matches(name, texts))
    for line in lines_of(text):
        match line.split("\t"):
            case ["user", name]:
                user = name
            case ["process", pid, parent, name, *command] if _is_number(pid) and _is_number(parent):
                processes.append(Process(int(pid), int(parent), name, tuple(word for word in command if word)))
            case ["master", pid, *facts] if _is_number(pid) and len(facts) == _MASTER_FACTS:
                masters[int(pid)] = facts
            case ["fact", pid, name, value] if _is_number(pid) and value:
                known_facts.setdefault(int(pid), {})[name] = value
            case ["built", program, *parts]:
                builds[program] = builds.get(program, "") + " ".join(parts) + "\n"
            case ["listen", local, users, *queue]:
                listening += _listening(local, users, int(queue[0]) if queue and _is_number(queue[0]) else None)
            case ["unix", path, users]:
                sockets += [UnixListener(name, int(pid), safe_path(path)) for name, pid in _USER.findall(users)]
            case ["address", *words]:
                addresses |= set(words)
            case ["file", name] if name in files:
                readable.add(name)
            case ["text", name, *parts] if is_requested(name):
                contents[name] = contents.get(name, "") + "\t".join(parts) + "\n"
    known = tuple(
        _with_facts(process, masters.get(process.pid))._replace(
            command=process.command or titles.get(process.pid, ()),
            facts=tuple(known_facts.get(process.pid, {}).items()),
        )
        for process in processes
    )
    return Inventory(
        user,
        known,
        tuple(dict.fromkeys(listening)),
        frozenset(readable),
        contents,
        builds,
        tuple(dict.fromkeys(sockets)),
        frozenset(addresses),
    )


def _titles(text: str) -> dict[int, tuple[str]]:
    """Return the titles of processes, which their parents of the same name do not have in their rows."""
    rows = filter(None, map(_TITLE.fullmatch, lines_of(text)))
    return {int(row[1]): (row[2],) for row in rows}


def lines_of(text: str) -> list[str]:
    """Split the output of a program at line feeds only. str.splitlines would also split at other separators, which are
    valid characters of a command line or a configuration."""
    return [line.removesuffix("\r") for line in text.split("\n")]


def _with_facts(process: Process, facts: Sequence[str] | None) -> Process:
    if facts is None:
        return process
    program, directory, certain, unit, origin = facts
    return process._replace(
        program=safe_path(program.removesuffix(" (deleted)")),
        directory=safe_path(directory),
        is_certain=certain == "yes",
        unit=unit if _UNIT.fullmatch(unit) else "",
        origin=_ORIGINS.get(origin, "user"),
    )


# Directories whose programs belong to the system.
_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/etc/")


def foreign_programs(*words: str) -> list[str]:
    """Return the absolute paths among words of commands that are outside the system's directories."""
    return [word for word in dict.fromkeys(words) if word.startswith("/") and not word.startswith(_SYSTEM)]


def safe_path(text: str) -> str:
    """Normalise an absolute path; "" if the text is no absolute path, too long, or contains unprintable characters."""
    if not text.startswith("/") or not text.isprintable() or len(text) > _LONGEST_PATH:
        return ""
    return posixpath.normpath(text).replace("//", "/")


def _is_number(text: str) -> bool:
    """Return whether the text is a pid, port or queue length. At most 9 digits: int() of longer ones is slow."""
    return text.isdecimal() and len(text) < 10


def _listening(local: str, users: str, queue: int | None) -> Iterator[PortListener]:
    """Parse the output of ss: `0.0.0.0:80` and `users:(("nginx",pid=1,fd=6),…)`."""
    host, _, port = local.rpartition(":")
    address = host.partition("%")[0].strip("[]").removeprefix("::ffff:")
    if _is_number(port):
        for name, pid in _USER.findall(users):
            yield PortListener(name, int(pid), int(port), queue, "" if address in _ANY else address)
