"""Putting the knobs of a study back where its session is gone: by its keeper, and before it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import ChangeRefused
from cockpit.model.hosts import HostConfig
from cockpit.study.journal import Journal, write_journal
from cockpit.tuning.applied import PastState
from cockpit.tuning.remote import Remote, privileged
from cockpit.tuning.tuner import Tuner

# A change that was cut short undoes itself on the host within its lease and what its commands take (s).
OWN_UNDO = 180.0
_PACE = 0.5
_UNDER_WAY = (PastState.UNDER_WAY, PastState.ROLLING_BACK)


async def put_back(folder: Path, journal: Journal) -> Journal:
    """Gives every knob the value it had before the study, does the actions for its end, and says so in the journal.

    Raises HostError, ChangeRefused, ChangeUndone; the journal then still says that it has to be done.
    """
    if not journal.touched:
        return journal
    configs = {config.name: config for config in journal.hosts}
    wanted = {knob.host for knob in journal.knobs} | {action.host for action in journal.actions}
    async with _ways({name: configs[name] for name in sorted(wanted)}, journal.ssh_config) as ways:
        tuner = Tuner()
        for host, remote in ways.items():
            await _own_undo(tuner, remote, host)
            knobs = [(knob, journal.originals[knob.name]) for knob in journal.knobs if knob.host == host]
            if knobs:
                await tuner.apply(remote, host, knobs)
        for action in journal.actions:
            for _ in range(action.times):
                await tuner.act(ways[action.host], action)
    done = replace(journal, touched=False)
    write_journal(folder, done)
    return done


async def _own_undo(tuner: Tuner, remote: Remote, host: str) -> None:
    """Waits until no change is under way on the host, and has it undo one that was left half done."""
    deadline = asyncio.get_running_loop().time() + OWN_UNDO
    while True:
        past = await tuner.history(remote, host)
        if not any(one.state in _UNDER_WAY for one in past):
            break
        if asyncio.get_running_loop().time() > deadline:
            raise ChangeRefused(f"{host}: a change there did not come to its end within {OWN_UNDO:.0f} s")
        await asyncio.sleep(_PACE)
    for one in past:
        if one.state == PastState.HALF_DONE:
            await tuner.give_up(remote, host, one)


@asynccontextmanager
async def _ways(configs: Mapping[str, HostConfig], ssh_config: str) -> AsyncIterator[dict[str, Remote]]:
    """Connections to these hosts. Raises HostError."""
    shells: dict[str, Shell] = {}
    try:
        for name, config in configs.items():
            shells[name] = await open_shell(config, Path(ssh_config) if ssh_config else None)
        yield {name: privileged(configs[name], shell) for name, shell in shells.items()}
    finally:
        for shell in shells.values():
            await shell.close()
