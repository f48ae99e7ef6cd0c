"""Find the reason in the output of a failed command. Pure."""

from __future__ import annotations

import re

from cockpit.model.text import sanitize
from cockpit.servers.registry import CHATTER

# Words of errors that warnings do not have.
_ERROR = re.compile(
    r"error|invalid|fail|emerg|fatal|denied|cannot|can't|could not|not allowed|unknown|no such|not found|must", re.I
)
_CHATTER = re.compile(rf"{CHATTER}|\bwarn", re.I)


def useful_line(stderr: bytes, stdout: bytes = b"") -> str:
    """Return the first error line, joined with the next one after a colon or "!"; else the first line; else ""."""
    for output in (stderr, stdout):
        lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
        relevant = [line for line in lines if not _CHATTER.search(line)]
        for index, line in enumerate(relevant):
            if _ERROR.search(line):
                following = relevant[index + 1 : index + 2] if line.endswith((":", "!")) else []
                return sanitize(" ".join((line, *following)), 400)
        if lines:
            return sanitize((relevant or lines)[0], 400)
    return ""


def last_part(complaint: str) -> str:
    """Return the reason alone: `No such file or directory` of `cp: cannot stat 'x': No such file or directory`."""
    return sanitize(complaint.strip().rpartition(": ")[2], 400)
