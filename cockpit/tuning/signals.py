"""Find the processes that a reload command signals: kill, pkill, killall and service in their usual forms. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# "$(cat FILE)", $(<FILE) or `cat FILE`.
_PID_FILE = re.compile(r'"?(?:\$\((?:cat |<)|`cat ) ?([^()`"\'\s]+)[)`]"?')
_PREFIXES = ("sudo", "exec", "command", "env")
# Options of kill, pkill and killall with an argument.
_WITH_ARGUMENT = ("-s", "-n", "--signal")
# Options with which pkill selects processes by name alone.
_BY_NAME = re.compile(r"-x|--exact|-\d+|-[A-Z]{2}[A-Z0-9]*")
_NAME = re.compile(r"[\w.-]+")
# Usual PID files of service scripts.
_SERVICE_FILES = ("/run/{0}.pid", "/run/{0}/{0}.pid", "/run/php/{0}.pid")


class Signalled(NamedTuple):
    """Processes by PID, by PID file and by name; `exact`: the whole name must match."""

    pids: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    exact: bool = False


def signalled(command: str) -> Iterator[Signalled]:
    """Yield the signalled processes per simple command of a shell command."""
    written = _PID_FILE.sub(lambda match: shlex.quote(f"@{match[1]}"), command)
    lexer = shlex.shlex(written, posix=True, punctuation_chars=";&|\n")
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        for word in (*lexer, ";"):
            if not word.strip(";&|\n"):
                yield from _of_words(words)
                words = []
            else:
                words.append(word)
    except ValueError:
        return


def _of_words(words: Sequence[str]) -> Iterator[Signalled]:
    rest = list(words)
    while rest and rest[0] in _PREFIXES:
        rest.pop(0)
        while rest and rest[0].startswith("-"):
            rest.pop(0)
    program, given = (rest[0].rpartition("/")[2], rest[1:]) if rest else ("", [])
    plain = [word for at, word in enumerate(given) if given[at - 1 : at] not in ([each] for each in _WITH_ARGUMENT)]
    operands = [word for word in plain if not word.startswith("-")]
    options = [word for word in plain if word.startswith("-") and word not in _WITH_ARGUMENT]
    if program == "kill":
        pids = tuple(int(word) for word in operands if word.isdecimal() and len(word) < 10)
        yield Signalled(pids, tuple(word[1:] for word in operands if word.startswith("@/")))
    elif program == "service" and operands and _NAME.fullmatch(operands[0]):
        yield Signalled(files=tuple(file.format(operands[0]) for file in _SERVICE_FILES))
    elif program in ("pkill", "killall") and all(_BY_NAME.fullmatch(option) for option in options):
        names = tuple(word for word in operands if _NAME.fullmatch(word))
        yield Signalled(names=names, exact=program == "killall" or not {"-x", "--exact"}.isdisjoint(options))
    elif program == "pkill" and len(given) > 1 and (at := _pid_file_option(given)) is not None:
        yield Signalled(files=tuple(given[at + 1 : at + 2]))


def _pid_file_option(words: Sequence[str]) -> int | None:
    """Return the position of the option -F (FILE follows); None without it."""
    return next((at for at, word in enumerate(words) if word in ("-F", "--pidfile")), None)
