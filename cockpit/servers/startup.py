"""How a running server was started: its configuration files, and the commands that test and reload it. Pure."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cockpit.servers.inventory import Process, safe_path

_SPECIAL = re.compile(r"[.^$*+?{}\[\]\\|()]")


class Startup(NamedTuple):
    """The configuration of a running server. `kind` is the kind of its knobs; `files` are its main configuration files.
    Relative includes are resolved from `root`, relative logs from `prefix` ("": also from `root`). `log` is the error
    log if the command line names it.

    `test` and `reload` are commands that affect this server only, "" if unknown. `uncertainty` is the reason why
    `files` are only assumed, "" if they are certain. `read_only_reason` is the reason why their settings cannot be
    changed, "" if they can. `compare` is a command that prints `no` if the running configuration differs from the
    files, "" if there is none. `overridden` are pairs of a setting and a place (command line or environment) that
    overrides its value in the files. `conditions` are known conditions of its files, by the headers of their sections.
    """

    kind: str
    files: tuple[str, ...]
    root: str
    test: str = ""
    reload: str = ""
    uncertainty: str = ""
    prefix: str = ""
    log: str = ""
    read_only_reason: str = ""
    compare: str = ""
    overridden: tuple[tuple[str, str], ...] = ()
    conditions: tuple[tuple[str, bool], ...] = ()

    @property
    def file(self) -> str:
        return self.files[0] if self.files else ""

    def unmet(self, sections: Iterable[str]) -> str:
        """Return the first of these sections whose condition is false, or not known to be true, as text; "" if all are
        true."""
        known = {_normalized(section): holds for section, holds in self.conditions}
        for section in sections:
            if not (holds := known.get(_normalized(section))):
                return f"<{section}> {'cannot be decided' if holds is None else 'is false'}"
        return ""

    @property
    def listed(self) -> str:
        """The names of at most three files as text; "" if there is none."""
        return ", ".join((*self.files[:3], *(["…"] if len(self.files) > 3 else ())))


def _normalized(section: str) -> str:
    """Return a header with its kind in lower case; arguments are case-sensitive."""
    kind, _, argument = section.partition(" ")
    return f"{kind.lower()} {argument}"


class Instance(NamedTuple):
    """A running server: its master process, the ports of its processes, how it was started, and its workers except
    those that are shutting down."""

    title: str
    process: Process
    ports: tuple[int, ...]
    startup: Startup
    workers: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """The server as text: name, PID and files."""
        return f"{self.title} (PID {self.process.pid}, {self.startup.listed or 'configuration unknown'})"


def options(words: Sequence[str], taking: str) -> dict[str, list[str]]:
    """Parse short options as getopt(3) does. `taking` are the letters of the options with a value."""
    values: dict[str, list[str]] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if not word.startswith("-") or word.startswith("--"):
            continue
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            value = ""
            if letter in taking:
                value, letters = letters or (rest.pop(0) if rest else ""), ""
            values.setdefault(letter, []).append(value)
    return values


def last(values: dict[str, list[str]], letter: str) -> str:
    return values.get(letter, [""])[-1]


def absolute(path: str, directory: str) -> str:
    """Return the absolute path, resolved from the directory; "" if it cannot be resolved."""
    if not path or not (path.startswith("/") or directory):
        return ""
    return safe_path(posixpath.join(directory, path))


def uncertainty(process: Process, file: str, default: bool, *, built: bool = True) -> str:
    """Return why a configuration file is only assumed; `default`: no option of the command line names it; `built`: the
    compiled defaults of the program are known."""
    if process.origin == "container":
        return "it runs in a container with separate files"
    if not file:
        return "its configuration file cannot be found by its command line"
    if default and not (built and process.is_certain):
        return "this user cannot read its program: log in as root, or set sudo = true"
    return ""


def command_line(process: Process) -> str:
    """Return a pattern for `pgrep -x -f` that matches the command line of a process."""
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", " ".join(process.command))


def signal_command(name: str, process: Process) -> str:
    """Return the command that signals a master by its command line. Its workers can have the same command line;
    the master is the oldest process (-o)."""
    return f"pkill -{name} -o -x -f -- {shlex.quote(command_line(process))}"


def program_of(process: Process, name: str) -> str:
    """Return the program of a process, by its name if it is the system's, which is always in the PATH."""
    return process.program if process.program not in ("", f"/usr/sbin/{name}") else name


def command(*words: str) -> str:
    return shlex.join(word for word in words if word)
