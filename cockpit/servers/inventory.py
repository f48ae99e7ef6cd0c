"""Facts about a host: processes, listeners, readable files, configuration texts. Pure; from what discovery printed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

_USER = re.compile(r'\("([^"]*)",pid=(\d{1,9}),')


class Process(NamedTuple):
    """A process of a known name, with its command line."""

    pid: int
    parent: int
    name: str
    command: tuple[str, ...]


class Listener(NamedTuple):
    """A process that accepts connections on a port."""

    name: str
    pid: int
    port: int


class Inventory(NamedTuple):
    """The facts about a host. `files` are the requested ones that can be read, `texts` requested files by name."""

    user: str = ""
    processes: tuple[Process, ...] = ()
    listening: tuple[Listener, ...] = ()
    files: frozenset[str] = frozenset()
    texts: Mapping[str, str] = {}

    def count(self, *patterns: str) -> int:
        return sum(_matches(process.name, patterns) for process in self.processes)

    def ports(self, *patterns: str) -> tuple[int, ...]:
        return tuple(sorted({listener.port for listener in self.listening if _matches(listener.name, patterns)}))

    def tails(self, *logs: str) -> tuple[str, ...]:
        """Commands that follow the logs that can be read."""
        return tuple(f"tail -n 3 -F {log}" for log in logs if log in self.files)

    def readable(self, *files: str) -> str:
        """The first of the files that can be read; "" if none can."""
        return next((file for file in files if file in self.files), "")

    def text(self, *patterns: str) -> str:
        """The configuration texts in files of these names."""
        return "\n".join(text for file, text in self.texts.items() if _matches(file, patterns))


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def parse_inventory(text: str, files: Collection[str], texts: Collection[str] = ()) -> Inventory:
    """The facts, one per line, their parts separated by tabs; malformed lines are skipped. `files` are the requested
    names, `texts` the requested patterns."""
    user, readable = "", set()
    processes: list[Process] = []
    listening: list[Listener] = []
    contents: dict[str, str] = {}
    for line in text.splitlines():
        match line.split("\t"):
            case ["user", name]:
                user = name
            case ["process", pid, parent, name, *command] if _is_number(pid) and _is_number(parent):
                processes.append(Process(int(pid), int(parent), name, tuple(word for word in command if word)))
            case ["listen", local, users]:
                listening += _listening(local, users)
            case ["file", name] if name in files:
                readable.add(name)
            case ["text", name, *parts] if _matches(name, texts):
                contents[name] = contents.get(name, "") + "\t".join(parts) + "\n"
    return Inventory(user, tuple(processes), tuple(dict.fromkeys(listening)), frozenset(readable), contents)


def _is_number(text: str) -> bool:
    """Whether it is the number of a process or a port, and not one of thousands of digits."""
    return text.isdecimal() and len(text) < 10


def _listening(local: str, users: str) -> Iterator[Listener]:
    """From ss: `0.0.0.0:80` and `users:(("nginx",pid=1,fd=6),…)`."""
    port = local.rpartition(":")[2]
    if _is_number(port):
        for name, pid in _USER.findall(users):
            yield Listener(name, int(pid), int(port))
