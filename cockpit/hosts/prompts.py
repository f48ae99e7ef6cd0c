"""Questions of hosts to a person: passphrases, passwords and unknown host keys.

An answer is used once; it is never in an event, the state or a recording.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cockpit.model.events import HostCondition

if TYPE_CHECKING:
    from asyncssh import SSHKey


class Keyring:
    """Unlocked keys of a session by their files, as an ssh agent holds them; passphrases are not kept.

    `turn` keeps two hosts from asking for the same passphrase at once.
    """

    def __init__(self) -> None:
        self.keys: dict[Path, SSHKey] = {}
        self.turn: dict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)


@dataclass(frozen=True)
class OfferedKey:
    """An unknown host key: the address that offered it (`where`), its kind and fingerprint as ssh prints them, and the
    known_hosts file and line for it."""

    where: str
    kind: str
    fingerprint: str
    file: Path
    line: str


class Asker(Protocol):
    """Asks a person. Headless sessions have no asker, and refuse hosts with questions."""

    async def secret(self, host: str, question: str) -> str | None:
        """A passphrase or password; None: declined."""

    async def trust(self, host: str, key: OfferedKey) -> bool:
        """Whether the person accepts a host key."""

    async def wanted(self, host: str) -> None:
        """Wait until the person lets this host ask."""


class AskingForHost:
    """Asks for one host: at once while it is reached for the first time, later only when the person wants it, so that
    no dialog opens during a measurement. `report` takes the host's condition and the question."""

    def __init__(self, asker: Asker, report: Callable[[HostCondition, str], None]) -> None:
        self._asker = asker
        self._report = report
        self._at_once = True

    def quiet(self) -> None:
        """From now on, ask only when the person wants it."""
        self._at_once = False

    async def secret(self, host: str, question: str) -> str | None:
        await self._turn(host, question)
        answer = await self._asker.secret(host, question)
        self._answered(answer is not None)
        return answer

    async def trust(self, host: str, key: OfferedKey) -> bool:
        await self._turn(host, f"is {key.kind} {key.fingerprint} the key of {key.where}?")
        accepted = await self._asker.trust(host, key)
        self._answered(accepted)
        return accepted

    async def wanted(self, host: str) -> None:
        await self._asker.wanted(host)
        self._at_once = True

    def _answered(self, answered: bool) -> None:
        self._report("connecting", "")
        if not answered:
            self.quiet()

    async def _turn(self, host: str, question: str) -> None:
        self._report("asking", question)
        if not self._at_once:
            await self.wanted(host)


@dataclass(frozen=True, eq=False)
class Question:
    """An open question: whether to trust the host key `key`; without a key, `text` asks for a secret."""

    host: str
    text: str
    key: OfferedKey | None
    given: asyncio.Future[str | bool | None]

    def answer(self, value: str | bool | None) -> None:
        """Answer with a secret, True for a key, or None for no. Only the first answer counts."""
        if not self.given.done():
            self.given.set_result(value)


class Questions:
    """Queues the questions of all hosts, one at a time: an Asker."""

    def __init__(self) -> None:
        self._open: list[Question] = []
        self._waiting: list[asyncio.Event] = []

    @property
    def first(self) -> Question | None:
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
