"""Examines what protects a change on a host: its guard, the disk, and changes that were left unfinished."""

from __future__ import annotations

from collections.abc import AsyncIterator

from cockpit.model.errors import ChangeRefused
from cockpit.setup.finding import Finding, good, note, wrong
from cockpit.tuning import files
from cockpit.tuning.applied import PastState
from cockpit.tuning.remote import Remote
from cockpit.tuning.scripts import DETACH, HEAD
from cockpit.tuning.tuner import Tuner

_FACTS = 3


async def examine_changes(remote: Remote, name: str) -> AsyncIterator[Finding]:
    """Whether the guard survives a logout, backups reach the disk, and no change is unfinished."""
    done = await files.run(remote, f"{HEAD}{DETACH}outlives")
    facts = done.stdout.decode("ascii", "replace").split()
    if len(facts) != _FACTS:
        yield note(name, f"the guard of a change cannot be examined: {files.why(done)}")
        return
    guard, kills, flushes = facts
    yield _guard(name, guard, kills)
    yield good(name, f"backups are written to the disk before a file is replaced{_HOW[flushes == 'files']}")
    try:
        past = await Tuner().history(remote, name)
    except ChangeRefused as error:
        yield wrong(name, str(error), "a change needs a place for its backups")
        return
    unfinished = [one for one in past if one.state == PastState.HALF_DONE]
    for one in unfinished:
        knobs = ", ".join(setting.knob for setting in one.about.settings)
        todo = f"cockpit tune PROFILE undo {one.name} rolls it back"
        yield wrong(name, f"change {one.name} of {one.about.who} ({knobs}) was left half done", todo)
    if not unfinished:
        yield good(name, "no change was left half done")


_HOW = (", by a sync of all disks (an old sync(1))", "")


def _guard(name: str, guard: str, kills: str) -> Finding:
    if guard == "unit":
        return good(name, "the guard of a change survives a logout: it runs in a systemd unit of its own")
    if kills == "yes":
        return wrong(
            name,
            "the guard of a change ends with the login (KillUserProcesses=yes), and nothing rolls the change back",
            "loginctl enable-linger for this user, log in as root, or set sudo = true in [[host]]",
        )
    return good(name, "the guard of a change survives a logout: it runs in a session of its own")
