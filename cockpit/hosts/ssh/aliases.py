"""The `Host` names of ssh_config and its included files, without patterns."""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cockpit.hosts.ssh.settings import SYSTEM_CONFIG, USER_CONFIG

# Maximum depth of nested includes, as in ssh(1).
_DEPTH = 16
_LINE = re.compile(r"(?im)^[ \t]*(host|include)\b[ \t]*=?[ \t]*(.*)$")
_PATTERN = frozenset("*?!")


def aliases(explicit: Path | None = None) -> list[str]:
    """Return the names in the order of the files, without duplicates; unreadable files and lines are skipped."""
    files = (explicit,) if explicit else (Path(USER_CONFIG).expanduser(), Path(SYSTEM_CONFIG))
    return list(dict.fromkeys(name for file in files for name in _names(file, _DEPTH)))


def _names(file: Path, depth: int) -> Iterator[str]:
    text = ""
    with suppress(OSError):
        text = file.read_text(encoding="utf-8", errors="replace")
    for keyword, rest in _LINE.findall(text):
        values: list[str] = []
        with suppress(ValueError):
            values = shlex.split(rest, comments=True)
        if keyword.lower() == "host":
            yield from (value for value in values if value and not _PATTERN & set(value))
        elif depth:
            system = Path(SYSTEM_CONFIG).parent
            base = system if file.is_relative_to(system) else Path(USER_CONFIG).expanduser().parent
            for value in values:
                for included in sorted(glob.glob(str(base / Path(value).expanduser()))):  # noqa: PTH207
                    yield from _names(Path(included), depth - 1)
