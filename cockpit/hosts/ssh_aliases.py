"""The hosts that somebody has names for: the plain `Host` names of ssh_config and of what it includes."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Iterator
from pathlib import Path

from cockpit.hosts.ssh_settings import SYSTEM_CONFIG, USER_CONFIG

# Includes within includes that are followed, as OpenSSH follows them.
_DEEPEST = 16
_PATTERN = frozenset("*?!")


def aliases(explicit: Path | None = None) -> list[str]:
    """Names in the order of the files, each once; patterns are none. A file that does not read has none."""
    files = (explicit,) if explicit else (Path(USER_CONFIG).expanduser(), Path(SYSTEM_CONFIG))
    return list(dict.fromkeys(name for file in files for name in _named_in(file, _DEEPEST)))


def _named_in(file: Path, deeper: int) -> Iterator[str]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        keyword, values = _parted(line)
        if keyword == "host":
            yield from (value for value in values if value and not _PATTERN & set(value))
        elif keyword == "include" and deeper:
            for value in values:
                for included in _files(value, file):
                    yield from _named_in(included, deeper - 1)


def _parted(line: str) -> tuple[str, list[str]]:
    """A line's keyword in small letters, and its values."""
    try:
        words = shlex.split(line.strip().replace("=", " ", 1), comments=True)
    except ValueError:
        return "", []
    return (words[0].lower(), words[1:]) if words else ("", [])


def _files(pattern: str, includer: Path) -> list[Path]:
    """What an Include names; one that is not absolute is looked for where its includer's kind keeps such files."""
    path = Path(pattern).expanduser()
    place = path if path.is_absolute() else includer.parent / path
    return [Path(name) for name in sorted(glob.glob(str(place)))]  # noqa: PTH207
