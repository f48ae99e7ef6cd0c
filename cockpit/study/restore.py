"""Restores the knobs of a study whose session is gone: by its keeper, and before it goes on. The changes are recorded
in the study's folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace

from cockpit.model.errors import ChangeRefused
from cockpit.model.load import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.recording.writer import RecordingWriter
from cockpit.session.live_session import LiveSession
from cockpit.session.live_tuning import LiveTuning
from cockpit.study.journal import Journal, write_journal
from cockpit.tuning.applied import PastState

# Seconds: a change that was cut short is rolled back by its host within its lease and the time of its commands.
OWN_UNDO = 180.0
_PACE = 0.5
_UNDER_WAY = (PastState.UNDER_WAY, PastState.ROLLING_BACK)


async def put_back(folder: Path, journal: Journal) -> Journal:
    """Give every knob the value it had before the study, do the actions for its end, and write that into the journal.

    Raises HostError, ChangeRefused, ChangeUndone; the journal is then as it was.
    """
    if not journal.touched:
        return journal
    names = {knob.host for knob in journal.knobs} | {action.host for action in journal.actions}
    profile = Profile(
        name=journal.name,
        plan=LoadPlan(url=journal.target),
        hosts=tuple(host for host in journal.hosts if host.name in names),
        knobs=journal.knobs,
        actions=journal.actions,
    )
    ssh_config = Path(journal.ssh_config) if journal.ssh_config else None
    recorder = RecordingWriter(_recording(folder))
    async with LiveSession(profile, recorder, ssh_config=ssh_config, check_target=False) as live:
        await live.hosts_up(names)
        for host in sorted(names):
            await _own_undo(live.tuning, host)
        await live.tuning.apply({knob.name: journal.originals[knob.name] for knob in journal.knobs})
        for action in journal.actions:
            await live.tuning.act(action.name)
    done = replace(journal, touched=False)
    write_journal(folder, done)
    return done


def _recording(folder: Path) -> Path:
    """A new file beside the study's own recordings, which are numbered."""
    number = 1
    while (path := folder / f"restored-{number}.cockpit").exists():
        number += 1
    return path


async def _own_undo(tuning: LiveTuning, host: str) -> None:
    """Wait until no change is under way on the host, and have it undo an interrupted one."""
    deadline = asyncio.get_running_loop().time() + OWN_UNDO
    while True:
        past = await tuning.history(host)
        if not any(one.state in _UNDER_WAY for one in past):
            break
        if asyncio.get_running_loop().time() > deadline:
            raise ChangeRefused(f"a change there did not end within {OWN_UNDO:.0f} s", subject=host)
        await asyncio.sleep(_PACE)
    for one in past:
        if one.state == PastState.HALF_DONE:
            await tuning.undo_unfinished(host, one)
