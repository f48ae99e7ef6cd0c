"""Handle keys in the order typed, each after the previous key has had its effect.

Textual dispatches keys at once. If the first key of a burst (typed ahead, or over a slow line) opens a dialog, the
other keys would reach the widget that had the focus before.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from textual.app import App
from textual.dom import DOMNode
from textual.events import Key, Paste
from textual.message_pump import MessagePump
from textual.screen import Screen

from cockpit.tui.key_table import AppKey

# Passes through the message queues: for the key, for the message that it causes (Input.Submitted), and for the message
# caused by that one (a focus by call_later).
_PASSES = 3
# Waits, and seconds of each, after which the next key is handled in any case. A pause of the process counts as one.
_WAITS, _WAIT = 10, 0.1
# Handled at once, ahead of waiting keys.
_INTERRUPT = AppKey.INTERRUPT.key


class KeyQueue:
    """Passes keys to `handle` one by one."""

    def __init__(self, app: App[Any], handle: Callable[[Key | Paste], Awaitable[None]]) -> None:
        self._app = app
        self._handle = handle
        self._waiting: deque[Key | Paste] = deque()
        self._passing: asyncio.Task[None] | None = None

    async def put(self, event: Key | Paste) -> None:
        if isinstance(event, Key) and event.key == _INTERRUPT:
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
                await _bounded(self._effect(target, screen))
        except Exception as error:
            # Textual then reports it like an error in a message handler.
            self._app.call_later(_fail, error)

    async def _effect(self, target: DOMNode, screen: Screen[Any]) -> None:
        """Wait until `target` and its parents have handled the key, and a screen opened by it has its focus."""
        for _ in range(_PASSES):
            node: DOMNode | None = target
            while node is not None:
                await _reached(node, node.call_later)
                node = node.parent
        if self._app.screen_stack and self._app.screen is not screen:
            await _reached(self._app.screen, self._app.screen.call_after_refresh)
            await _reached(self._app, self._app.call_later)


async def _bounded(effect: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(effect)
    try:
        for _ in range(_WAITS):
            await asyncio.wait([task], timeout=_WAIT)
            if task.done():
                return await task
    finally:
        task.cancel()


def _fail(error: Exception) -> None:
    raise error


async def _reached(node: MessagePump, call: Callable[[Callable[[], None]], bool]) -> None:
    """Wait until `node` has handled its messages so far; return at once if it was removed."""
    reached = asyncio.Event()
    if call(reached.set):
        await reached.wait()
