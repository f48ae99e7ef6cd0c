"""Files on a host: read whole, kept as a backup, replaced all together, put back. Every step is one command there.

A change has a directory of its own on the host, for this user alone, outside of any configuration
(`~/.local/state/cockpit/changes/` or `/var/tmp/cockpit-UID/changes/`): the originals, what replaced them, and a list
`files` of which is which.
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
from cockpit.model.text import neutral
from cockpit.tuning import scripts
from cockpit.tuning.reason import last_part
from cockpit.tuning.remote import Remote

MOST_BYTES = 8 << 20
CHANGE_DIRECTORY = re.compile(r"/.*/cockpit[^/]*/changes/[0-9TZ]+-\w+", re.DOTALL)


class HostFile(NamedTuple):
    """A file as it was read. `file` is the path that was asked for, `real` the one behind links."""

    host: str
    file: str
    real: str
    data: bytes
    digest: str


class Replacement(NamedTuple):
    """A file and the bytes to stand in its place; `number` names its copies in the change's directory."""

    number: int
    before: HostFile
    data: bytes
    digest: str


class PutBack(NamedTuple):
    """What became of one file: `kept` had its original bytes all along, `restored` got them back, `foreign` holds
    what somebody else wrote, `stuck` could not be written, see `reason`."""

    file: HostFile
    state: Literal["kept", "restored", "foreign", "stuck"]
    reason: str = ""


class CommitRefused(ChangeRefused):
    """Not all files could be replaced; `replaced` are those that were before the fault showed, most often none."""

    def __init__(self, message: str, replaced: Sequence[Replacement]) -> None:
        super().__init__(message)
        self.replaced = replaced


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def read(shell: Remote, host: str, file: str) -> HostFile:
    """The file with its bytes. Raises ChangeRefused naming file and reason, HostError."""
    if not file.startswith("/") or neutral(file) != file:
        raise ChangeRefused(f"{host}:{neutral(file, 200)}: a knob's file is named by its whole path, from / on")
    done = await run(shell, scripts.READ, file, str(MOST_BYTES))
    if done.exit_status != 0:
        raise ChangeRefused(f"{host}:{file}: {why(done)}")
    path, _, data = done.stdout.partition(b"\0")
    real = path.decode("utf-8", "surrogateescape")
    if neutral(real) != real:
        raise ChangeRefused(f"{host}:{file}: it leads to a file whose name holds control characters or is no UTF-8")
    return HostFile(host, file, real, data, sha256(data))


async def open_change(shell: Remote, host: str) -> str:
    """Makes the directory of a new change on the host; its path."""
    done = await run(shell, scripts.OPEN)
    path = done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")
    if done.exit_status != 0 or not CHANGE_DIRECTORY.fullmatch(path):
        raise ChangeRefused(f"{host}: no backup can be kept there, so nothing was changed: {why(done)}")
    return path


async def stage(shell: Remote, change: str, replacement: Replacement) -> None:
    """Keeps the original in the change's directory and sends what is to replace it; the file itself is not touched."""
    number, file, data, digest = replacement
    name = posixpath.basename(backup(change, replacement))
    done = await run(shell, scripts.STAGE, change, str(number), file.real, file.digest, digest, name, input=data)
    if done.exit_status != 0:
        raise ChangeRefused(_refusal(file, done))


async def commit(shell: Remote, change: str, lease: int, replacements: Sequence[Replacement]) -> None:
    """Replaces all files by what was staged; `lease` as in pending.arm.

    Raises CommitRefused naming the file that could not be replaced.
    """
    jobs = [
        (str(r.number), r.before.file, r.before.real, r.before.digest, f"{change}/{r.number}.new", r.digest)
        for r in replacements
    ]
    done = await run(shell, scripts.commit(change, lease, jobs))
    if done.exit_status == 0:
        return
    said = [line.split(" ") for line in done.stdout.decode("ascii", "replace").splitlines()]
    at = next((number for word, number in said if word == "at"), "")
    culprit = next((r for r in replacements if str(r.number) == at), replacements[0])
    replaced = [r for r in replacements if ["did", str(r.number)] in said]
    raise CommitRefused(_refusal(culprit.before, done), replaced)


def way_back(change: str, replacements: Sequence[Replacement]) -> list[tuple[str, ...]]:
    """The jobs of an undo program that give every file its original bytes again (see scripts.REPLACE)."""
    return [
        (str(r.number), r.before.real, r.before.real, r.digest, backup(change, r), r.before.digest)
        for r in replacements
    ]


def put_back(replacement: Replacement, said: str) -> PutBack:
    """What became of a file, from what an undo says of it."""
    state, _, rest = said.partition(" ")
    if state == "kept":
        return PutBack(replacement.before, "kept")
    if state == "restored":
        return PutBack(replacement.before, "restored")
    status, _, reason = rest.partition(" ")
    if status == str(scripts.FOREIGN):
        return PutBack(replacement.before, "foreign")
    return PutBack(replacement.before, "stuck", last_part(reason) or "it was not come to")


def backup(change: str, replacement: Replacement) -> str:
    """Where the original is kept."""
    return f"{change}/{replacement.number}-{posixpath.basename(replacement.before.real)}"


def restore_by_hand(change: str, replacements: Sequence[Replacement]) -> str:
    """The command that a person puts the originals back with."""
    return "; ".join(f"cat {shlex.quote(backup(change, r))} > {shlex.quote(r.before.real)}" for r in replacements)


async def run(shell: Remote, script: str, *arguments: str, input: bytes = b"", seconds: float = 30) -> Completed:
    """Runs one of the sh programs with its arguments. Raises HostError."""
    return await shell.run(shlex.join(("sh", "-c", script, "cockpit", *arguments)), input=input, timeout=seconds)


def _refusal(file: HostFile, done: Completed) -> str:
    foreign = done.exit_status == scripts.FOREIGN
    return f"{file.host}:{file.file}: {'somebody else changed it meanwhile' if foreign else why(done)}"


def why(done: Completed) -> str:
    """The reason out of a tool's last complaint, as in `cp: cannot create regular file 'x': Read-only file system`."""
    complaint = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return last_part(complaint) or f"exit status {done.exit_status}"
