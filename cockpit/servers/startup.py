"""How a running server was started: its configuration files, and the commands that act on it alone. Pure."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from cockpit.servers.inventory import Process, safe_path

_SPECIAL = re.compile(r"[.^$*+?{}\[\]\\|()]")


class Startup(NamedTuple):
    """`kind` is the kind of its knobs; `files` are its main configuration files; relative includes begin at `root`,
    relative logs at `prefix`, "" as includes. `log` is its error log if its command line names it.

    `test` and `reload` are commands that act on this server alone, "" if unknown. `doubt` says why the files are only
    assumed, "" if they are certain; `fixed` why no setting can be changed in them, "" if they can. `compare` is a
    command that prints `no` if the server runs another configuration than that of its files, "" if it cannot be asked.
    `overridden` are settings that its command line or its environment sets, with that place: their values in the files
    have no effect.
    """

    kind: str
    files: tuple[str, ...]
    root: str
    test: str = ""
    reload: str = ""
    doubt: str = ""
    prefix: str = ""
    log: str = ""
    fixed: str = ""
    compare: str = ""
    overridden: tuple[tuple[str, str], ...] = ()

    @property
    def file(self) -> str:
        return self.files[0] if self.files else ""

    @property
    def listed(self) -> str:
        """The files for a person, at most three; "" without any."""
        return ", ".join((*self.files[:3], *(["…"] if len(self.files) > 3 else ())))


class Instance(NamedTuple):
    """A running server: its master process, the ports of its processes, how it was started, and its workers without
    those that finish their last requests."""

    title: str
    process: Process
    ports: tuple[int, ...]
    startup: Startup
    workers: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """Name, PID and files, for a person."""
        return f"{self.title} (PID {self.process.pid}, {self.startup.listed or 'configuration unknown'})"


def options(words: Sequence[str], taking: str) -> dict[str, list[str]]:
    """Short options with their values, as getopt(3) reads them; `taking` are the letters that take a value."""
    found: dict[str, list[str]] = {}
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
            found.setdefault(letter, []).append(value)
    return found


def last(found: dict[str, list[str]], letter: str) -> str:
    return found.get(letter, [""])[-1]


def absolute(path: str, directory: str) -> str:
    """The path, relative ones from the directory; "" if it is not known."""
    if not path or not (path.startswith("/") or directory):
        return ""
    return safe_path(posixpath.join(directory, path))


def doubt(process: Process, file: str, default: bool) -> str:
    """Why a configuration file is only assumed; `default`: no option of the command line names it."""
    if process.origin == "container":
        return "it runs in a container, with files of its own"
    if not file:
        return "its command line names no file that can be found"
    if default and not process.is_certain:
        return "its program cannot be read by this user: log in as root, or set sudo = true"
    return ""


def command_line(process: Process) -> str:
    """A pattern for `pgrep -x -f` that matches the command line of a process."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", " ".join(process.command))


def signal_command(name: str, process: Process) -> str:
    """The command that signals a master by its command line; its workers may have the same, it is the oldest."""
    return f"pkill -{name} -o -x -f -- {shlex.quote(command_line(process))}"


def command(*words: str) -> str:
    return shlex.join(word for word in words if word)
