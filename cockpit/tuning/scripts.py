"""The sh programs that run on a host, concatenated from the files in `sh/`.

They need a POSIX sh and coreutils (or busybox). Arguments are positional or quoted by shlex; content is read from
stdin. Exit 4: refused, the reason is the last line on stderr; exit 5: a file has changed since it was read; exit 6: no
such file. `$change` is the directory of a change. The link `settled` there names the end of the change (`confirmed`,
`undo-IDENTITY`, `dropped`), because creating a link is atomic and works on a full disk.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from cockpit.hosts.status.unix_socket import REQUEST_PROGRAM

REFUSED = 4
FOREIGN = 5
MISSING = 6
# Replaces the digest of a missing file.
ABSENT = "absent"
# Numbers of changes on a host above which the oldest are removed: any that have ended; those that were rolled back.
MOST_APPLIED, MOST_KEPT = 200, 100


def program(*names: str) -> str:
    """Concatenate the named files, without comments."""
    return "".join(map(_text, names))


@cache
def _text(name: str) -> str:
    text = (files("cockpit.tuning") / "sh" / f"{name}.sh").read_text(encoding="utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))


HEAD = program("login")
READ = program("login", "read")
GET = program("login", "flush", "get")
OPEN = f"most_kept={MOST_KEPT} most_applied={MOST_APPLIED}\n" + program(
    "login", "process", "machine", "paths", "state", "phase", "open"
)
STAGE = program("login", "paths", "stage")
GIVE = f"give={shlex.quote(program('give'))}\n"
RUN = f"busy={shlex.quote(program('process', 'busy'))}\n{GIVE}{program('login', 'lease', 'flush', 'run')}"
PROCESSES = program("login", "lease", "processes")
LOG_END = program("log_end")
LOG_SINCE = program("log_since")
HISTORY = program("login", "process", "machine", "paths", "state", "phase", "history")
INVENTORY = program("login", "row", "trusted", "inventory")
UNTRUSTED = program("login", "trusted", "untrusted")
OWNERS = program("login", "owners")
INCLUDES = program("login", "row", "includes")
TEXTS = program("texts")
ENVIRONMENT = program("login", "row", "environment")
OWNER = program("login", "trusted", "owner")
SAME_FILE = program("login", "mounted", "same_file")
STARTED = program("login", "started")
SHOWN_BY = f"{program('login', 'shown')}ask() (\n{REQUEST_PROGRAM})\n"
LOGGED = program("login", "shown", "logged")
DETACH = program("process", "phase", "detach")


def commit(change: str, lease: int, jobs: Sequence[Sequence[str]]) -> str:
    """Return a program that replaces all files, or none if one cannot be prepared.

    A job is NUMBER FILE REAL WAS SOURCE BECOMES (see sh/replace.sh).
    """
    calls = [shlex.join((step, *job)) for step in ("prepare", "swap") for job in jobs]
    head = (
        program("login", "lease", "process", "paths", "flush", "mounted", "replace"),
        f"change={shlex.quote(change)}",
        sweep(jobs),
        program("commit"),
        f"renew {lease} || exit 4",
    )
    return "\n".join((*head, *calls))


def sweep(jobs: Sequence[Sequence[str]]) -> str:
    return f"sweep() {{ :; {'; '.join(shlex.join(('clean', *job)) for job in jobs)}{';' if jobs else ''} }}"
