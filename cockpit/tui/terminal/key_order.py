"""Keys are handled in the order in which they were typed, each only after the one before has had its effect.

Textual passes keys on at once: those of a burst (typed ahead, or over a slow line) reach the widget that had the focus
before the first of them opened a dialog.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from textual.app import App
from textual.dom import DOMNode
from textual.events import Key, Paste
from textual.message_pump import MessagePump
from textual.screen import Screen

from cockpit.tui.key_table import AppKey

# A message that follows from a key (Input.Submitted) is one step behind it on the same way; one that follows from
# that (a focus by call_later), two.
_PASSES = 3
# Seconds after which the next key is passed on in any case, and between checks for a widget that was removed.
_LONGEST, _CHECK_INTERVAL = 1.0, 0.05
# Ends the session without waiting for anything.
_AT_ONCE = AppKey.INTERRUPT.key


class KeyOrder:
    """Passes keys to `handle` one by one."""

    def __init__(self, app: App[Any], handle: Callable[[Key | Paste], Awaitable[None]]) -> None:
        self._app = app
        self._handle = handle
        self._waiting: deque[Key | Paste] = deque()
        self._passing: asyncio.Task[None] | None = None

    async def take(self, event: Key | Paste) -> None:
        if isinstance(event, Key) and event.key == _AT_ONCE:
            await self._handle(event)
            return
        self._waiting.append(event)
        if self._passing is None or self._passing.done():
            self._passing = asyncio.create_task(self._pass_on())

    async def _pass_on(self) -> None:
        try:
            while self._waiting and self._app.screen_stack:
                screen = self._app.screen
                target = self._app.focused or screen
                await self._handle(self._waiting.popleft())
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._effect(target, screen), _LONGEST)
        except Exception as error:
            # As an error in a message handler.
            self._app.call_later(_fail, error)

    async def _effect(self, target: DOMNode, screen: Screen[Any]) -> None:
        """Wait until `target` and its parents have handled the key, and the screen that it opened has its focus."""
        for _ in range(_PASSES):
            node: DOMNode | None = target
            while node is not None:
                await _reached(node, node.call_later)
                node = node.parent
        if self._app.screen_stack and self._app.screen is not screen:
            await _reached(self._app.screen, self._app.screen.call_after_refresh)
            await _reached(self._app, self._app.call_later)


def _fail(error: Exception) -> None:
    raise error


async def _reached(node: MessagePump, call: Callable[[Callable[[], None]], bool]) -> None:
    """Wait until `node` has handled its messages so far, or is removed."""
    reached = asyncio.Event()
    if not call(reached.set):
        return
    while not reached.is_set() and not (node._closing or node._closed):
        with suppress(TimeoutError):
            await asyncio.wait_for(reached.wait(), _CHECK_INTERVAL)
