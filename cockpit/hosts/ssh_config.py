"""The lines of ssh_config that apply to a destination, as ssh(1) finds them: by Host, Match and Include.

asyncssh would split `Match exec "test 1 = 1"` at the equals sign and refuse it, and expands no tokens in it. So it is
given only the lines that apply; it and `Options` take the first value of an option.
"""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

SYSTEM = Path("/etc/ssh")
# Includes within includes that are followed, as ssh(1) does.
DEPTH = 16
# Seconds that a command of Match exec may take.
EXEC_TIMEOUT = 30.0
# Options whose value is the rest of the line, quotes included.
_WHOLE = frozenset({"proxycommand", "remotecommand", "knownhostscommand", "localcommand"})
_SETTING = re.compile(r"([^\s#=\"]+)\s*=?\s*(.*)", re.DOTALL)
_WORD = re.compile(r"""\s*((?!#)(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\])+)""")
_CRITERIA_ALONE = frozenset({"all", "canonical", "final"})


class SshConfigLine(NamedTuple):
    """A line of a file: its keyword in small letters, and its values without quotes."""

    file: Path
    number: int
    keyword: str
    values: tuple[str, ...]

    @property
    def text(self) -> str:
        """As asyncssh reads it, without a comment."""
        values = self.values if self.keyword in _WHOLE else map(shlex.quote, self.values)
        return " ".join((self.keyword, *values))

    def error(self, problem: str) -> ValueError:
        return ValueError(f"{self.file} line {self.number}: {problem}")


class Options:
    """The options of a destination; names in small letters."""

    def __init__(self, lines: Sequence[SshConfigLine]) -> None:
        self.lines = tuple(lines)

    def values(self, name: str) -> tuple[str, ...] | None:
        """All values of the first line that sets the option; None: it is not set."""
        return next((line.values for line in self.lines if line.keyword == name), None)

    def value(self, name: str) -> str | None:
        """The first value; None if it is not set, or set to none."""
        found = self.values(name)
        return None if found is None or found[0].lower() == "none" else found[0]

    def each(self, name: str) -> list[str] | None:
        """The values of all lines that set the option, for those that add up; None: it is not set."""
        found = [value for line in self.lines if line.keyword == name for value in line.values]
        return [value for value in found if value.lower() != "none"] if found else None

    def is_on(self, name: str) -> bool:
        """Whether it is set to yes."""
        return (self.value(name) or "").lower() in ("yes", "true")

    @property
    def text(self) -> str:
        """An ssh_config without conditions."""
        return "".join(f"{line.text}\n" for line in self.lines)

    def located(self, error: ValueError) -> ValueError:
        """An error of asyncssh about a line of `text`, naming the line's own file."""
        found = re.fullmatch(r"\S+ line (\d+): (.*)", str(error), re.DOTALL)
        return self.lines[int(found[1]) - 1].error(found[2]) if found else error


class Evaluation:
    """Evaluates files for one destination. `user` and `port` are those it is given with, "" and 0 if none."""

    def __init__(self, host: str, user: str, port: int, local_user: str) -> None:
        self._host = host
        self._user = user
        self._port = port
        self._local_user = local_user
        self._found: list[SshConfigLine] = []
        self._again = False
        self._final = False

    def options(self, files: Sequence[Path]) -> Options:
        """Raises OSError, or ValueError naming the line that does not read."""
        self._read_all(files)
        canonical = (Options(self._found).value("canonicalizehostname") or "no").lower() != "no"
        if self._again or canonical:
            self._final = True
            self._read_all(files)
        return Options(self._found)

    def _read_all(self, files: Sequence[Path]) -> None:
        for file in files:
            self._read(file, True, DEPTH)

    def _read(self, file: Path, active: bool, deeper: int) -> None:
        """Add the lines that apply. In a file that is included where nothing applies, nothing does."""
        applies = active
        for line in read_lines(file):
            if not line.values:
                if applies:
                    raise line.error(f"{line.keyword} has no value")
            elif line.keyword == "host":
                applies = active and _matches(self._host.lower(), [value.lower() for value in line.values])
            elif line.keyword == "match":
                applies = active and self._match(line)
            elif line.keyword == "include":
                for included in included_files(line) if applies and deeper else ():
                    self._read(included, applies, deeper - 1)
            elif applies and line not in self._found:
                self._found.append(line)

    def _match(self, line: SshConfigLine) -> bool:
        """Whether all criteria hold; after one that does not, no command is run."""
        words = list(line.values)
        result = True
        while words:
            word = words.pop(0)
            criterion, _, value = word.partition("=")
            negated, criterion = criterion.startswith("!"), criterion.removeprefix("!").lower()
            if criterion not in _CRITERIA_ALONE and not value:
                if not words:
                    raise line.error(f"Match {criterion} has no value")
                value = words.pop(0)
            holds = result and self._holds(line, criterion, value)
            self._again = self._again or criterion == "final"
            result = result and holds != negated
        return result

    def _holds(self, line: SshConfigLine, criterion: str, value: str) -> bool:
        options = Options(self._found)
        if criterion == "all":
            return True
        if criterion in ("final", "canonical"):
            return self._final
        if criterion == "exec":
            return self._succeeds(line, value)
        subjects = {
            "host": self.tokens["h"],
            "originalhost": self._host,
            "user": self.tokens["r"],
            "localuser": self._local_user,
            "tagged": options.value("tag") or "",
            "command": "",
            "sessiontype": "exec",
        }
        if criterion not in subjects:
            raise line.error(f"Match {criterion} is not supported")
        if criterion in ("host", "originalhost"):
            return _matches(subjects[criterion].lower(), value.lower().split(","))
        return _matches(subjects[criterion], value.split(","))

    def _succeeds(self, line: SshConfigLine, command: str) -> bool:
        shell = os.environ.get("SHELL") or "/bin/sh"
        try:
            done = subprocess.run(
                [shell, "-c", expanded(command, self.tokens)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=EXEC_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise line.error(f"Match exec: {command!r} took longer than {EXEC_TIMEOUT:g} s") from None
        except OSError as error:
            raise line.error(f"Match exec: {shell}: {error.strerror}") from None
        return done.returncode == 0

    @property
    def tokens(self) -> dict[str, str]:
        """What stands for %h and the like, by the options found so far."""
        options = Options(self._found)
        host = expanded(options.value("hostname") or self._host, {"h": self._host, "%": "%"})
        port = str(self._port or options.value("port") or 22)
        user = self._user or options.value("user") or self._local_user
        local, jump = socket.gethostname(), options.value("proxyjump") or ""
        return {
            "%": "%",
            "C": hashlib.sha1("".join((local, host, port, user, jump)).encode()).hexdigest(),
            "d": str(Path.home()),
            "h": host,
            "i": str(os.getuid()),
            "j": jump,
            "k": options.value("hostkeyalias") or host,
            "L": local.partition(".")[0],
            "l": local,
            "n": self._host,
            "p": port,
            "r": user,
            "u": self._local_user,
        }


def expanded(text: str, tokens: Mapping[str, str]) -> str:
    """The text with its tokens and `${VARIABLES}` replaced; one that is not known stays."""
    text = re.sub(r"%(.)", lambda token: tokens.get(token[1], token[0]), text)
    return re.sub(r"\$\{(\w+)\}", lambda name: os.environ.get(name[1], name[0]), text)


def read_lines(file: Path) -> Iterator[SshConfigLine]:
    """All lines of a file but comments. Raises OSError, or ValueError for a quote that is not closed."""
    for number, text in enumerate(file.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
        parted = _SETTING.match(text.strip())
        if parted is None:
            continue
        keyword, rest = parted[1].lower(), parted[2]
        values = (rest,) if keyword in _WHOLE and rest else _words(rest)
        if values is None:
            raise ValueError(f"{file} line {number}: a quote is not closed")
        yield SshConfigLine(file, number, keyword, values)


def _words(text: str) -> tuple[str, ...] | None:
    """The words up to a comment, without quotes; None if a quote is not closed."""
    words: list[str] = []
    at = 0
    while match := _WORD.match(text, at):
        words += shlex.split(match[1])
        at = match.end()
    rest = text[at:].strip()
    return None if rest and not rest.startswith("#") else tuple(words)


def included_files(line: SshConfigLine) -> list[Path]:
    """The files that an Include names; relative names are of the directory of the user's or the system's ssh_config."""
    base = SYSTEM if line.file.is_relative_to(SYSTEM) else Path("~/.ssh").expanduser()
    patterns = [base / Path(value).expanduser() for value in line.values]
    found = [Path(name) for pattern in patterns for name in sorted(glob.glob(str(pattern)))]  # noqa: PTH207
    return [file for file in found if file.is_file()]


def _matches(subject: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns fits (`*` and `?`), and none that begins with `!`."""
    fitting = [pattern for pattern in patterns if _fits(subject, pattern.removeprefix("!"))]
    return bool(fitting) and not any(pattern.startswith("!") for pattern in fitting)


def _fits(subject: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(subject, pattern.replace("[", "[[]"))
