"""A client that is killed during a change."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

from cockpit.hosts.shell import SH, Completed, Shell
from cockpit.model.errors import CockpitError, HostError
from cockpit.model.knobs import Knob
from cockpit.tuning.tuner import Tuner
from tests.lab.test_transaction_faults import FEWEST_STEPS
from tests.tuning.conftest import until


class KilledClient:
    """A shell whose client is killed during command number `at`; later commands fail."""

    def __init__(self, shell: Shell, at: int) -> None:
        self.shell = shell
        self.left = at

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        if self.left == 0:
            raise HostError("web1: unreachable")
        self.left -= 1
        running = asyncio.ensure_future(self.shell.run(program, input=input, timeout=timeout, interpreter=interpreter))
        if self.left:
            return await running
        await asyncio.wait([running], timeout=0.05)
        running.cancel()
        await asyncio.wait([running])
        raise HostError("web1: the connection is lost")


async def check_every_kill(
    shell: Shell,
    tuner: Tuner,
    setting: tuple[Knob, str],
    *,
    state: Callable[[], object],
    rolled_back: Callable[[], bool],
    serves: Callable[[], Awaitable[bool]] | None = None,
) -> None:
    """Kill the client during each command of a change: the host restores `state` by itself, once `rolled_back`, and
    then `serves`."""
    before = state()
    for step in itertools.count(1):
        killed = KilledClient(shell, step)
        try:
            applied = await tuner.apply(killed, "web1", [setting])
        except CockpitError:
            pass
        else:
            break
        # Its own commands, such as the restart of a container, take long on a busy machine.
        await until(rolled_back, 600)
        if state() != before:
            # The confirmation arrived and only its response was lost.
            newest = (await tuner.history(shell, "web1"))[0]
            await tuner.undo(shell, await tuner.read_record(shell, "web1", newest))
        assert state() == before
        assert serves is None or await serves()
    assert killed.left and step > FEWEST_STEPS
    await tuner.undo(shell, applied)
    assert state() == before
    assert serves is None or await serves()
