"""Limits that hold while a change is not confirmed, and the short lease on its host."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import NoReturn, TypeVar

from cockpit.model.errors import ChangeRefused, HostError
from cockpit.tuning.change_options import Failure, Guard
from cockpit.tuning.pending import PendingChange
from cockpit.tuning.undo_program import EXPIRED

_T = TypeVar("_T")
# Renewals per lease: a slow connection delays some of them.
_RENEWALS = 4
# Seconds within which a step ends whose change was settled on the host.
_SETTLED = 5.0


async def guarded(step: Coroutine[None, None, _T], change: PendingChange, guard: Guard | None) -> _T:
    """Await a step of the change while its limits hold and its lease on the host is renewed.

    Raises Failure if a limit is exceeded or somebody undoes the change on the host, and HostError if the lease was not
    renewed in time, after the step was cancelled.
    """
    if guard is None:
        return await step
    working = asyncio.ensure_future(step)
    exceeded = asyncio.ensure_future(_exceeded(guard))
    renewing = asyncio.ensure_future(_renewed(change, guard.lease))
    watching = (exceeded, renewing)
    try:
        await asyncio.wait((working, *watching), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        failed = exceeded if exceeded.done() else renewing
        return failed.result()
    finally:
        for task in (working, *watching):
            task.cancel()
        await asyncio.gather(working, *watching, return_exceptions=True)


async def _exceeded(guard: Guard) -> NoReturn:
    raise Failure(await guard.exceeded())


async def _renewed(change: PendingChange, lease: int) -> NoReturn:
    """Renew the lease until cancelled. Raises HostError if the host does not respond within the lease, or undid the
    change because it got no message; Failure if it was undone otherwise, or cannot renew the lease."""
    while True:
        try:
            async with asyncio.timeout(lease):
                await change.poll(lease=lease)
        except TimeoutError:
            raise HostError(f"no response within {lease} s") from None
        except ChangeRefused as error:
            # The host may have settled the change by its confirmation, whose response is under way.
            await asyncio.sleep(_SETTLED)
            if EXPIRED in error.problem:
                raise HostError(f"undone on the host: no message within {lease} s") from None
            raise Failure("undone on the host by hand" if "given up" in error.problem else error.problem) from None
        await asyncio.sleep(lease / _RENEWALS)
