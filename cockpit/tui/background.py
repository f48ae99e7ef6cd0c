"""Work of a screen on hosts, which closes its connections before the screen is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from textual.dom import DOMNode


class Background:
    """One task at a time. A worker of Textual does not do: it is cancelled again while it still cleans up."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def run(self, node: DOMNode, work: Coroutine[Any, Any, None]) -> None:
        """Start the work; if it fails, so does the app."""
        self._task = asyncio.create_task(work)
        node.run_worker(asyncio.shield(self._task))

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
