"""Read, back up, replace and restore files on a host. Every step is one command there.

A change has its own directory on the host, readable by this user only and outside of any configuration
(`~/.local/state/webcockpit/changes/MACHINE/` or `/var/tmp/webcockpit-UID/changes/MACHINE/`), with the original files,
the new files, and a list `files`.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from cockpit.hosts.shell import Completed
from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob
from cockpit.model.text import sanitize
from cockpit.tuning import scripts
from cockpit.tuning.reason import last_part
from cockpit.tuning.remote import Remote

MOST_BYTES = 8 << 20
CHANGED_SINCE = "modified elsewhere after cockpit read it (repeat the change)"
CHANGE_DIRECTORY = re.compile(r"/.*/webcockpit[^/]*/changes/[0-9a-f]{16}/[0-9TZ]+-\w+", re.DOTALL)


class HostFile(NamedTuple):
    """A file on a host, as read. `file` is the requested path, `real` the path behind links.

    A missing file has no `data` and the `digest` scripts.ABSENT.
    """

    host: str
    file: str
    real: str
    data: bytes
    digest: str


class Replacement(NamedTuple):
    """A file and its new bytes, or its removal (`digest` is scripts.ABSENT).

    `number` is part of the names of its copies in the change's directory.
    """

    number: int
    before: HostFile
    data: bytes
    digest: str


class CommitRefused(ChangeRefused):
    """Not all files could be replaced; `replaced` are the replaced ones, usually none."""

    def __init__(self, problem: str, host: str, replaced: Sequence[Replacement]) -> None:
        super().__init__(problem, host)
        self.replaced = replaced


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def read(shell: Remote, host: str, file: str, may_be_missing: bool = False) -> HostFile:
    """Read a file. `may_be_missing`: a missing file in an existing directory has the digest scripts.ABSENT.

    Raises ChangeRefused with file and reason, HostError.
    """
    if not file.startswith("/") or sanitize(file) != file:
        raise ChangeRefused(f"{sanitize(file, 200)}: write a knob's file as an absolute path", subject=host)
    done = await run(shell, scripts.READ, file, str(MOST_BYTES))
    path, _, data = done.stdout.partition(b"\0")
    if may_be_missing and done.exit_status == scripts.MISSING:
        return HostFile(host, file, _real(host, file, path), b"", scripts.ABSENT)
    if done.exit_status != 0:
        raise ChangeRefused(f"{file}: {error_reason(done)}", subject=host)
    return HostFile(host, file, _real(host, file, path), data, sha256(data))


async def read_of(shell: Remote, host: str, knob: Knob) -> HostFile:
    """Read a knob's file; the file may be missing if a change may create it."""
    return await read(shell, host, knob.file, knob.creates)


def _real(host: str, file: str, path: bytes) -> str:
    """Return the path behind links. Raises ChangeRefused if it is not printable."""
    real = path.decode("utf-8", "surrogateescape")
    if sanitize(real) != real:
        problem = "it is a link to a file whose name has control characters or is not UTF-8"
        raise ChangeRefused(f"{file}: {problem}", subject=host)
    return real


async def open_change(shell: Remote, host: str) -> str:
    """Create the directory of a new change on the host; return its path."""
    done = await run(shell, scripts.OPEN)
    path = done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")
    if done.exit_status != 0 or not CHANGE_DIRECTORY.fullmatch(path):
        raise ChangeRefused(f"no backup possible: {error_reason(done)}; nothing was changed", subject=host)
    return path


async def stage(shell: Remote, change: str, replacement: Replacement) -> None:
    """Back up the original in the change's directory and send the new content; the file itself is not touched."""
    number, file, data, digest = replacement
    name = posixpath.basename(backup(change, replacement))
    texts = (str(number), file.real, file.digest, digest, name, file.file)
    done = await run(shell, scripts.STAGE, change, *texts, input=data)
    if done.exit_status != 0:
        raise ChangeRefused(_refusal(file, done), subject=file.host)


async def commit(shell: Remote, change: str, lease: int, replacements: Sequence[Replacement]) -> None:
    """Replace all files by the staged ones; `lease` as in pending.arm.

    Raises CommitRefused with the file that could not be replaced.
    """
    jobs = [
        (str(r.number), r.before.file, r.before.real, r.before.digest, f"{change}/{r.number}.new", r.digest)
        for r in replacements
    ]
    done = await run(shell, scripts.commit(change, lease, jobs))
    if done.exit_status == 0:
        return
    steps = [line.split(" ") for line in done.lines]
    at = next((row[1] for row in steps if row[0] == "at" and len(row) == 2), "")
    culprit = next((r for r in replacements if str(r.number) == at), replacements[0])
    # A killed program may have replaced a file without reporting it.
    refused = done.exit_status in (scripts.REFUSED, scripts.FOREIGN)
    replaced = [r for r in replacements if not refused or ["did", str(r.number)] in steps]
    raise CommitRefused(_refusal(culprit.before, done), culprit.before.host, replaced)


def rollback_jobs(change: str, replacements: Sequence[Replacement]) -> list[tuple[str, ...]]:
    """Return the jobs of the undo program that restore every file (see sh/replace.sh)."""
    return [
        (str(r.number), r.before.real, r.before.real, r.digest, backup(change, r), r.before.digest)
        for r in replacements
    ]


def rollback_problem(report: str) -> str:
    """Return why a file was not rolled back, by its line in the report of an undo; "" if it has its original bytes."""
    state, _, rest = report.partition(" ")
    if state in ("kept", "restored"):
        return ""
    status, _, reason = rest.partition(" ")
    if status == str(scripts.FOREIGN):
        return "was not rolled back: modified elsewhere after cockpit wrote it"
    return f"could not be rolled back: {last_part(reason) or 'the undo did not reach it'}"


def backup(change: str, replacement: Replacement) -> str:
    """Return the path of the original's backup."""
    return f"{change}/{replacement.number}-{posixpath.basename(replacement.before.real)}"


async def backups(shell: Remote, host: str, change: str) -> list[tuple[str, str]]:
    """Return the files of a change: name of the backup in its directory, path behind links."""
    try:
        listed = await read(shell, host, f"{change}/files")
    except ChangeRefused:
        return []  # only live values
    rows = (line.partition("\t") for line in listed.data.decode("utf-8", "surrogateescape").split("\n"))
    return [(name, file) for name, tab, file in rows if tab]


def restore_by_hand(change: str, replacements: Sequence[Replacement]) -> str:
    return "; ".join(_restore_one(change, replacement) for replacement in replacements)


def _restore_one(change: str, replacement: Replacement) -> str:
    real = shlex.quote(replacement.before.real)
    if replacement.before.digest == scripts.ABSENT:
        return f"rm -f {real}"
    return f"cat {shlex.quote(backup(change, replacement))} > {real}"


async def run(shell: Remote, script: str, *arguments: str, input: bytes = b"", seconds: float = 30) -> Completed:
    """Run one of the sh programs with its arguments. Raises HostError."""
    return await shell.run(f"{shlex.join(('set', '--', *arguments))}\n{script}", input=input, timeout=seconds)


def _refusal(file: HostFile, done: Completed) -> str:
    foreign = done.exit_status == scripts.FOREIGN
    return f"{file.file}: {CHANGED_SINCE if foreign else error_reason(done)}"


def error_reason(done: Completed) -> str:
    """Return the reason in a tool's last message, as in `cp: cannot create regular file 'x': Read-only file system`."""
    complaint = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return last_part(complaint) or f"exit status {done.exit_status}"
