"""The hosts that somebody has names for: the plain `Host` names of ssh_config and of what it includes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cockpit.hosts.ssh_config import DEPTH, included_files, read_lines
from cockpit.hosts.ssh_settings import SYSTEM_CONFIG, USER_CONFIG

_PATTERN = frozenset("*?!")


def aliases(explicit: Path | None = None) -> list[str]:
    """Names in the order of the files, each once, without patterns; of a file that does not read, those before that."""
    files = (explicit,) if explicit else (Path(USER_CONFIG).expanduser(), Path(SYSTEM_CONFIG))
    return list(dict.fromkeys(name for file in files for name in _named_in(file, DEPTH)))


def _named_in(file: Path, deeper: int) -> Iterator[str]:
    with suppress(OSError, ValueError):
        for line in read_lines(file):
            if line.keyword == "host":
                yield from (value for value in line.values if value and not _PATTERN & set(value))
            elif line.keyword == "include" and deeper:
                for included in included_files(line):
                    yield from _named_in(included, deeper - 1)
