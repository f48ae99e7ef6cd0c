"""Reading, changing and taking back the knobs of hosts: the door of this room.

"Applied" means: the files hold the values, the test command passed, the reload command ended well, and what
`in_force` waits for (nothing, unless one is given) has come. A graceful reload returns before the last worker of the
old generation is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob
from cockpit.tuning import files, plan
from cockpit.tuning.applied import Applied
from cockpit.tuning.files import HostFile
from cockpit.tuning.remote import Remote
from cockpit.tuning.transaction import PATIENCE, InForce, Patience, carry_out


class Tuner:
    """One change at a time on each host. A host is reached by any Shell, or by `Following`, which outlives a lost one.

    ChangeRefused and HostError: nothing was touched. ChangeUndone: everything was put back. ChangeFailed: it could not
    be put back whole; the message says how the host stands and how the original comes back.
    """

    def __init__(self, in_force: InForce | None = None, patience: Patience = PATIENCE) -> None:
        self._in_force = in_force
        self._patience = patience
        self._turns: dict[str, asyncio.Lock] = {}

    async def read(self, shell: Remote, knob: Knob) -> str | None:
        """The knob's value in its file; None: not set there. Raises ChangeRefused where that cannot be told."""
        return plan.value_in(await files.read(shell, knob.host, knob.file), knob).value

    async def apply(self, shell: Remote, host: str, assignments: Sequence[tuple[Knob, str | None]]) -> Applied:
        """Gives knobs of one host their values (None: not set) as one change: all of them or none."""
        async with self._turn(host):
            read = await _files(shell, host, (knob for knob, _ in assignments))
            return await carry_out(shell, plan.forward(host, read, assignments), self._in_force, self._patience)

    async def undo(self, shell: Remote, applied: Applied) -> Applied:
        """Takes a change back, by a change: every file byte for byte the original where nobody else wrote since."""
        async with self._turn(applied.host):
            read = await _files(shell, applied.host, (edit.knob for edit in applied.edits))
            way_back = plan.backward(applied, read, await _originals(shell, applied))
            return await carry_out(shell, way_back, self._in_force, self._patience)

    def _turn(self, host: str) -> asyncio.Lock:
        return self._turns.setdefault(host, asyncio.Lock())


async def _files(shell: Remote, host: str, knobs: Iterable[Knob]) -> dict[str, HostFile]:
    """The knobs' files, each read once, by the name that the knob has for it."""
    return {name: await files.read(shell, host, name) for name in dict.fromkeys(knob.file for knob in knobs)}


async def _originals(shell: Remote, applied: Applied) -> dict[str, bytes]:
    """The backups that are still there, by the path of the file they are of."""
    kept: dict[str, bytes] = {}
    for change in applied.files:
        try:
            kept[change.real] = (await files.read(shell, applied.host, change.backup)).data
        except ChangeRefused:
            continue
    return kept
