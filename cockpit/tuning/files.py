"""Files on a host: read, backed up, replaced together, rolled back. Every step is one command there.

A change has its own directory on the host, for this user alone, outside of any configuration
(`~/.local/state/cockpit/changes/MACHINE/` or `/var/tmp/cockpit-UID/changes/MACHINE/`): the originals, what replaced
them, and a list `files` of both.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import shlex
from collections.abc import Sequence
from typing import Literal, NamedTuple

from cockpit.hosts.shell import Completed
from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob
from cockpit.model.text import neutral
from cockpit.tuning import scripts
from cockpit.tuning.reason import last_part
from cockpit.tuning.remote import Remote

MOST_BYTES = 8 << 20
CHANGED_SINCE = "somebody else changed it after cockpit read it (repeat the change)"
CHANGE_DIRECTORY = re.compile(r"/.*/cockpit[^/]*/changes/[0-9a-f]{16}/[0-9TZ]+-\w+", re.DOTALL)


class HostFile(NamedTuple):
    """A file as it was read. `file` is the requested path, `real` the one behind links.

    A file that does not exist has no `data` and the `digest` scripts.ABSENT.
    """

    host: str
    file: str
    real: str
    data: bytes
    digest: str


class Replacement(NamedTuple):
    """A file and its new bytes, or its removal (`digest` is scripts.ABSENT); `number` names its copies in the change's
    directory."""

    number: int
    before: HostFile
    data: bytes
    digest: str


class FileRollback(NamedTuple):
    """The rollback of one file: `kept` was never changed, `restored` has its original bytes, `foreign` was written by
    somebody else, `stuck` could not be written, see `reason`."""

    file: HostFile
    state: Literal["kept", "restored", "foreign", "stuck"]
    reason: str = ""


class CommitRefused(ChangeRefused):
    """Not all files could be replaced; `replaced` are those that were, usually none."""

    def __init__(self, problem: str, host: str, replaced: Sequence[Replacement]) -> None:
        super().__init__(problem, host)
        self.replaced = replaced


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def read(shell: Remote, host: str, file: str) -> HostFile:
    """The file with its bytes. Raises ChangeRefused naming file and reason, HostError."""
    return _host_file(host, file, await _read(shell, host, file))


async def read_of(shell: Remote, host: str, knob: Knob) -> HostFile:
    """The knob's file; one that a change may create need not exist."""
    return await (read_if_present if knob.creates else read)(shell, host, knob.file)


async def read_if_present(shell: Remote, host: str, file: str) -> HostFile:
    """As `read`; a file that does not exist in an existing directory is one without bytes."""
    done = await _read(shell, host, file)
    if done.exit_status == scripts.MISSING:
        real = _real(host, file, done.stdout.partition(b"\0")[0])
        return HostFile(host, file, real, b"", scripts.ABSENT)
    return _host_file(host, file, done)


async def _read(shell: Remote, host: str, file: str) -> Completed:
    if not file.startswith("/") or neutral(file) != file:
        raise ChangeRefused(f"{neutral(file, 200)}: write a knob's file as an absolute path", subject=host)
    return await run(shell, scripts.READ, file, str(MOST_BYTES))


def _host_file(host: str, file: str, done: Completed) -> HostFile:
    if done.exit_status != 0:
        raise ChangeRefused(f"{file}: {why(done)}", subject=host)
    path, _, data = done.stdout.partition(b"\0")
    return HostFile(host, file, _real(host, file, path), data, sha256(data))


def _real(host: str, file: str, path: bytes) -> str:
    """The path behind links. Raises ChangeRefused if it is not printable."""
    real = path.decode("utf-8", "surrogateescape")
    if neutral(real) != real:
        odd = "it is a link to a file whose name has control characters or is not UTF-8"
        raise ChangeRefused(f"{file}: {odd}", subject=host)
    return real


async def open_change(shell: Remote, host: str) -> str:
    """Create the directory of a new change on the host; return its path."""
    done = await run(shell, scripts.OPEN)
    path = done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")
    if done.exit_status != 0 or not CHANGE_DIRECTORY.fullmatch(path):
        raise ChangeRefused(f"cannot keep a backup on the host, so nothing was changed: {why(done)}", subject=host)
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
    """Replace all files by the staged ones; `lease` as in pending.arm. Raises CommitRefused with the file that could
    not be replaced."""
    jobs = [
        (str(r.number), r.before.file, r.before.real, r.before.digest, f"{change}/{r.number}.new", r.digest)
        for r in replacements
    ]
    done = await run(shell, scripts.commit(change, lease, jobs))
    if done.exit_status == 0:
        return
    steps = [line.split(" ") for line in done.stdout.decode("ascii", "replace").splitlines()]
    at = next((number for word, number in steps if word == "at"), "")
    culprit = next((r for r in replacements if str(r.number) == at), replacements[0])
    # A program that was killed may have replaced a file without saying so.
    refused = done.exit_status in (scripts.REFUSED, scripts.FOREIGN)
    replaced = [r for r in replacements if not refused or ["did", str(r.number)] in steps]
    raise CommitRefused(_refusal(culprit.before, done), culprit.before.host, replaced)


def rollback_jobs(change: str, replacements: Sequence[Replacement]) -> list[tuple[str, ...]]:
    """The jobs of an undo program that restore every file (see sh/replace.sh)."""
    return [
        (str(r.number), r.before.real, r.before.real, r.digest, backup(change, r), r.before.digest)
        for r in replacements
    ]


def rollback_of(replacement: Replacement, report: str) -> FileRollback:
    """The rollback of a file, from the report of an undo."""
    state, _, rest = report.partition(" ")
    if state == "kept":
        return FileRollback(replacement.before, "kept")
    if state == "restored":
        return FileRollback(replacement.before, "restored")
    status, _, reason = rest.partition(" ")
    if status == str(scripts.FOREIGN):
        return FileRollback(replacement.before, "foreign")
    return FileRollback(replacement.before, "stuck", last_part(reason) or "the undo did not reach it")


def backup(change: str, replacement: Replacement) -> str:
    """Where the original is kept."""
    return f"{change}/{replacement.number}-{posixpath.basename(replacement.before.real)}"


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
    return f"{file.file}: {CHANGED_SINCE if foreign else why(done)}"


def why(done: Completed) -> str:
    """The reason in a tool's last message, e.g. `cp: cannot create regular file 'x': Read-only file system`."""
    complaint = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return last_part(complaint) or f"exit status {done.exit_status}"
