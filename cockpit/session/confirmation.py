"""The user's decision about a change that waits for it."""

from __future__ import annotations

import asyncio

from cockpit.model.errors import ChangeRefused


class Confirmation:
    """Waits until the user confirms or declines a change; at most one change waits."""

    def __init__(self) -> None:
        self._decision: asyncio.Future[bool] | None = None
        self._closed = False

    @property
    def awaited(self) -> bool:
        return self._decision is not None and not self._decision.done()

    async def wait(self) -> bool:
        """Return whether the user confirms the change; after `close` at once that nobody does."""
        if self._closed:
            return False
        self._decision = asyncio.get_running_loop().create_future()
        try:
            return await self._decision
        finally:
            self._decision = None

    def confirm(self) -> None:
        """Confirm the change. Raises ChangeRefused if none waits."""
        if not self._decide(True):
            raise ChangeRefused("no change waits for confirmation")

    def decline(self) -> bool:
        """Decline the change that waits; return whether there is one."""
        return self._decide(False)

    def close(self) -> None:
        """Decline the change that waits, and every later one."""
        self._closed = True
        self.decline()

    def _decide(self, confirmed: bool) -> bool:
        if self._decision is None or self._decision.done():
            return False
        self._decision.set_result(confirmed)
        return True
