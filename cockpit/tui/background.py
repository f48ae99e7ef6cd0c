"""Background tasks of a screen, which close their connections to hosts before the screen is removed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from textual.dom import DOMNode


class Background:
    """Runs one task at a time. Textual would cancel its own worker a second time, during the clean-up."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def run(self, node: DOMNode, work: Coroutine[Any, Any, None]) -> None:
        """Start the task; an exception in it ends the app."""
        self._task = asyncio.create_task(work)
        node.run_worker(asyncio.shield(self._task))

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
