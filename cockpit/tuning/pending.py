"""A change while it is under way on its host: armed with an undo of its own there, run, confirmed or undone.

Every function raises HostError when the host cannot be talked to. From `arm` on the host undoes the change by itself
once it has not heard of it for a lease (whole seconds), or a command of it and the lease are over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from cockpit.model.errors import ChangeRefused
from cockpit.model.text import neutral
from cockpit.tuning import files, scripts, undo_program
from cockpit.tuning.files import Replacement, sha256
from cockpit.tuning.reason import useful_line
from cockpit.tuning.remote import Remote


class Ran(NamedTuple):
    """A command that was run: `why` it failed ("" where it did not), and all it said."""

    why: str
    said: bytes


class UndoOutcome(NamedTuple):
    """What an undo did: `files` and `values` by number as it says, `failed` commands as (test or reload, number, what
    it says). `ended` is how the change had ended before it could be undone ("" where it had not)."""

    ended: str
    files: dict[str, str]
    values: dict[str, str]
    failed: tuple[tuple[str, int, str], ...]
    reloaded: bool


async def arm(shell: Remote, change: str, lease: int, undo: str, owner: str, about: bytes) -> None:
    """Takes the host for this change and has it wait with the undo program; `about` is one line.

    Raises ChangeRefused: another change is under way there, or was left half done.
    """
    data = undo.encode("utf-8", "surrogateescape")
    done = await files.run(
        shell, undo_program.ARM, change, str(lease), sha256(data), owner, undo_program.GUARD, input=about + b"\n" + data
    )
    if done.exit_status != 0:
        raise ChangeRefused(files.why(done))


async def run(
    shell: Remote, change: str, lease: int, command: str, seconds: float, value: str = "", mark: str = ""
) -> Ran:
    """Run a command of the profile by sh on the host, for at most `seconds`; `value` is its "$1"; `mark` is left in
    the change's directory before it begins. The value is sent on stdin and is in no argv there."""
    longest = math.ceil(seconds)
    leases = (str(longest + lease), str(lease))
    done = await files.run(
        shell,
        scripts.RUN,
        change,
        f"{seconds:g}",
        *leases,
        command,
        mark,
        input=f"{value}\n".encode("utf-8", "surrogateescape"),
        seconds=seconds + 30,
    )
    said = done.stderr + b"\n" + done.stdout
    if done.exit_status == 0:
        return Ran("", said)
    if done.exit_status == 124:
        return Ran(f"it did not end within {seconds:g} s", said)
    silent = f"it failed without a word (exit status {done.exit_status})"
    return Ran(useful_line(done.stderr, done.stdout) or silent, said)


async def get(shell: Remote, command: str, keep: str = "") -> str:
    """What a command prints, one line, inner white space as single spaces; kept in the file `keep` on the host.

    Raises ChangeRefused with what it says when it fails, prints nothing or several lines.
    """
    done = await files.run(shell, scripts.GET, command, keep, seconds=60)
    if done.exit_status != 0:
        silent = f"it failed without a word (exit status {done.exit_status})"
        raise ChangeRefused(useful_line(done.stderr, done.stdout) or silent)
    lines = done.stdout.decode("utf-8", "backslashreplace").strip().splitlines()
    if len(lines) != 1:
        raise ChangeRefused("it prints nothing" if not lines else f"it prints {len(lines)} lines, where one is a value")
    return " ".join(lines[0].split())


async def poll_workers(shell: Remote, change: str, lease: int, workers: str) -> frozenset[str]:
    """The workers of a server as PID:START, by a pattern of their name; begins the lease anew. Raises ChangeRefused."""
    done = await files.run(shell, scripts.WORKERS, change, str(lease), workers)
    if done.exit_status != 0:
        raise ChangeRefused(files.why(done))
    return frozenset(done.stdout.decode("ascii", "replace").split())


async def confirm(shell: Remote, change: str, applied: bytes) -> None:
    """Keeps the change for good, with its record. Raises ChangeRefused where the host rolled it back meanwhile."""
    done = await files.run(shell, undo_program.CONFIRM, change, input=applied)
    if done.exit_status != 0:
        raise ChangeRefused(files.why(done))


async def fire(shell: Remote, change: str, seconds: int, why: str) -> UndoOutcome:
    """Has the host undo the change, or tells how it did so already. Raises ChangeRefused: it did not come to an end."""
    reason = f"{neutral(why, 400)}\n".encode("utf-8", "replace")
    done = await files.run(shell, undo_program.FIRE, change, str(seconds), input=reason, seconds=seconds + 30)
    if done.exit_status != 0:
        raise ChangeRefused(files.why(done))
    return outcome(done.stdout)


async def discard(shell: Remote, change: str) -> None:
    """Lets go of a change that touched nothing."""
    await files.run(shell, undo_program.DISCARD, change)


def outcome(text: bytes) -> UndoOutcome:
    """Reads what an undo says."""
    rows = [line.split(" ", 2) for line in text.decode("utf-8", "replace").splitlines()]
    by_word: dict[str, dict[str, str]] = {"file": {}, "value": {}, "test": {}, "reload": {}}
    for row in rows:
        if len(row) == 3 and row[0] in by_word:
            by_word[row[0]][row[1]] = row[2]
    failed = [
        (word, _place(number), failure_reason(words))
        for word in ("test", "reload")
        for number, words in by_word[word].items()
    ]
    ended = next((row[0] for row in rows if row[0] in ("confirmed", "dropped")), "")
    return UndoOutcome(ended, by_word["file"], by_word["value"], tuple(failed), ["reloaded"] in rows)


def _place(number: str) -> int:
    """The place of a command among those of its kind; of a host that sends no number the first."""
    return int(number) if number.isdecimal() and len(number) < 10 else 0


def failure_reason(text: str) -> str:
    """Why a command failed, out of its exit status and what it said."""
    status, _, words = text.partition(" ")
    if status == "124":
        return "it did not end in time"
    return useful_line(words.replace("\x1e", "\n").encode()) or f"it failed without a word (exit status {status})"


def jobs_of(
    change: str,
    replacements: Sequence[Replacement],
    values: Sequence[tuple[str, str, str, str, str]],
    tests: Sequence[str],
    reloads: Sequence[str],
    seconds: float,
) -> str:
    """The undo program of a change (see undo_program.undo)."""
    return undo_program.undo(change, files.way_back(change, replacements), values, tests, reloads, math.ceil(seconds))
