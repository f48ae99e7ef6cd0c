"""What hosts ask of the person at the screen: one question at a time, in the order in which they came.

An answer goes to the connection that asked and nowhere else: not into an event, the state, or a recording.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from cockpit.hosts.asking import OfferedKey


@dataclass(frozen=True, eq=False)
class Question:
    """A question that stands open. With `key` it is whether to trust that host key; else it asks for `text`, a secret.

    `answer` closes it: a secret, True for a key, or None, which is no.
    """

    host: str
    text: str
    key: OfferedKey | None
    given: asyncio.Future[str | bool | None]

    def answer(self, value: str | bool | None) -> None:
        """The first answer counts; one that comes after the host has let go of the question is dropped."""
        if not self.given.done():
            self.given.set_result(value)


class Questions:
    """Puts the hosts' questions to the person: an Asker."""

    def __init__(self) -> None:
        self._open: list[Question] = []
        self._waiting: list[asyncio.Event] = []

    @property
    def first(self) -> Question | None:
        """The one to put next."""
        return next((question for question in self._open if not question.given.done()), None)

    @property
    def awaited(self) -> bool:
        """Whether a host would ask, but waits until the person wants to be asked."""
        return bool(self._waiting)

    def invite(self) -> None:
        """Lets all hosts ask that wait to."""
        for event in self._waiting:
            event.set()

    async def secret(self, host: str, question: str) -> str | None:
        answer = await self._put(host, question, None)
        return answer if isinstance(answer, str) else None

    async def trust(self, host: str, key: OfferedKey) -> bool:
        return await self._put(host, "", key) is True

    async def wanted(self, host: str) -> None:
        event = asyncio.Event()
        self._waiting.append(event)
        try:
            await event.wait()
        finally:
            self._waiting.remove(event)

    async def _put(self, host: str, text: str, key: OfferedKey | None) -> str | bool | None:
        question = Question(host, text, key, asyncio.get_running_loop().create_future())
        self._open.append(question)
        try:
            return await question.given
        finally:
            self._open.remove(question)
