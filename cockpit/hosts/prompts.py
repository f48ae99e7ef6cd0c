"""What hosts ask a person: passphrases, passwords and unknown host keys.

An answer is used once and kept nowhere: not in an event, the state or a recording.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cockpit.model.events import HostCondition


@dataclass(frozen=True)
class OfferedKey:
    """A host key that nobody has vouched for yet: `where` it was offered, its kind and fingerprint as ssh prints them,
    and the known_hosts file and line that would hold it."""

    where: str
    kind: str
    fingerprint: str
    file: Path
    line: str


class Asker(Protocol):
    """Asks a person. Headless there is none, and what would have been asked is refused."""

    async def secret(self, host: str, question: str) -> str | None:
        """A passphrase or password; None: the person thought better of it."""

    async def trust(self, host: str, key: OfferedKey) -> bool:
        """Whether the person vouches for a host key."""

    async def wanted(self, host: str) -> None:
        """Returns once the person has said that this host may ask; nothing is put before anybody until then."""


class AskingForHost:
    """Asks for one host: by itself while it is reached for the first time, later only once the person wants it, so
    that no dialog opens in the middle of a measurement. `say` is told the host's condition and what is being asked."""

    def __init__(self, asker: Asker, say: Callable[[HostCondition, str], None]) -> None:
        self._asker = asker
        self._say = say
        self._by_itself = True

    def quiet(self) -> None:
        """From here on the person is asked only when they want to be."""
        self._by_itself = False

    async def secret(self, host: str, question: str) -> str | None:
        await self._turn(host, question)
        answer = await self._asker.secret(host, question)
        self._answered(answer is not None)
        return answer

    async def trust(self, host: str, key: OfferedKey) -> bool:
        await self._turn(host, f"is {key.kind} {key.fingerprint} the key of {key.where}?")
        vouched = await self._asker.trust(host, key)
        self._answered(vouched)
        return vouched

    async def wanted(self, host: str) -> None:
        await self._asker.wanted(host)
        self._by_itself = True

    def _answered(self, well: bool) -> None:
        self._say("connecting", "")
        if not well:
            self.quiet()

    async def _turn(self, host: str, question: str) -> None:
        self._say("asking", question)
        if not self._by_itself:
            await self.wanted(host)


@dataclass(frozen=True, eq=False)
class Question:
    """An open question: with `key` whether to trust that host key, else for `text`, a secret.

    `answer` closes it: a secret, True for a key, or None, which is no.
    """

    host: str
    text: str
    key: OfferedKey | None
    given: asyncio.Future[str | bool | None]

    def answer(self, value: str | bool | None) -> None:
        """Answer it. The first answer counts; one after the host has dropped the question is ignored."""
        if not self.given.done():
            self.given.set_result(value)


class Questions:
    """Queues the questions of the hosts for the person, one at a time: an Asker."""

    def __init__(self) -> None:
        self._open: list[Question] = []
        self._waiting: list[asyncio.Event] = []

    @property
    def first(self) -> Question | None:
        """The question to ask next."""
        return next((question for question in self._open if not question.given.done()), None)

    @property
    def awaited(self) -> bool:
        """Whether a host has a question, but waits until the person wants to be asked."""
        return bool(self._waiting)

    def invite(self) -> None:
        """Let all waiting hosts ask."""
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
