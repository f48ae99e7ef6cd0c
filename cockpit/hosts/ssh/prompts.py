"""Prompts for passphrases, passwords and unknown host keys.

An answer is used once and is never part of an event, the state or a recording.
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
    """Unlocked private keys of a session by file, as in an ssh agent; passphrases are not stored.

    `prompt_locks` has a lock per file, so that two hosts do not prompt for the same passphrase at once.
    """

    def __init__(self) -> None:
        self.keys: dict[Path, SSHKey] = {}
        self.prompt_locks: dict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)


@dataclass(frozen=True)
class UnknownHostKey:
    """An unknown host key: the server's address (`where`), the key's kind and fingerprint as ssh prints them, and the
    known_hosts file and line that would accept it."""

    where: str
    kind: str
    fingerprint: str
    file: Path
    line: str


class Prompter(Protocol):
    """Prompts the user. Headless sessions have none and refuse hosts that need a prompt."""

    @property
    def closed(self) -> bool:
        """Whether every prompt is declined."""

    async def secret(self, host: str, question: str) -> str | None:
        """Prompt for a passphrase or password; None: declined."""

    async def trust(self, host: str, key: UnknownHostKey) -> bool:
        """Prompt for a host key; return whether the user accepts it."""

    async def wait_until_allowed(self, host: str) -> None:
        """Wait until the user allows this host to prompt."""


class HostPrompter:
    """Prompts for one host: at once during the first connect, later only when the user allows it, so that no dialog
    opens during a measurement. `report` takes the host's condition and the question."""

    def __init__(self, asker: Prompter, report: Callable[[HostCondition, str], None]) -> None:
        self._asker = asker
        self._report = report
        self._at_once = True

    @property
    def closed(self) -> bool:
        return self._asker.closed

    def quiet(self) -> None:
        """Prompt only when the user allows it, from now on."""
        self._at_once = False

    async def secret(self, host: str, question: str) -> str | None:
        await self._turn(host, question)
        answer = await self._asker.secret(host, question)
        self._answered(answer is not None)
        return answer

    async def trust(self, host: str, key: UnknownHostKey) -> bool:
        await self._turn(host, f"is {key.kind} {key.fingerprint} the key of {key.where}?")
        accepted = await self._asker.trust(host, key)
        self._answered(accepted)
        return accepted

    async def wait_until_allowed(self, host: str) -> None:
        await self._asker.wait_until_allowed(host)
        self._at_once = True

    def _answered(self, answered: bool) -> None:
        self._report(HostCondition.CONNECTING, "")
        if not answered:
            self.quiet()

    async def _turn(self, host: str, question: str) -> None:
        self._report(HostCondition.ASKING, question)
        if not self._at_once and not self._asker.closed:
            await self.wait_until_allowed(host)


@dataclass(frozen=True, eq=False)
class Question:
    """An open prompt: for trust in the host key `key`; if None, for the secret described in `text`."""

    host: str
    text: str
    key: UnknownHostKey | None
    given: asyncio.Future[str | bool | None]

    def answer(self, value: str | bool | None) -> None:
        """Answer with a secret, with True to accept the key, or with None to decline. Only the first answer counts."""
        if not self.given.done():
            self.given.set_result(value)


class PromptQueue:
    """Queue of the prompts of all hosts, shown one at a time; implements Asker."""

    def __init__(self) -> None:
        self._open: list[Question] = []
        self._waiting: list[asyncio.Event] = []
        self.closed = False

    @property
    def first(self) -> Question | None:
        return next((question for question in self._open if not question.given.done()), None)

    @property
    def awaited(self) -> bool:
        """Whether a host waits until the user allows it to prompt."""
        return bool(self._waiting)

    def invite(self) -> None:
        """Allow all waiting hosts to prompt."""
        for event in self._waiting:
            event.set()

    def close(self) -> None:
        """Decline all open prompts, and every later one: there is no user."""
        self.closed = True
        self.invite()
        for question in self._open:
            question.answer(None)

    async def secret(self, host: str, question: str) -> str | None:
        answer = await self._put(host, question, None)
        return answer if isinstance(answer, str) else None

    async def trust(self, host: str, key: UnknownHostKey) -> bool:
        return await self._put(host, "", key) is True

    async def wait_until_allowed(self, host: str) -> None:
        event = asyncio.Event()
        self._waiting.append(event)
        try:
            await event.wait()
        finally:
            self._waiting.remove(event)

    async def _put(self, host: str, text: str, key: UnknownHostKey | None) -> str | bool | None:
        if self.closed:
            return None
        question = Question(host, text, key, asyncio.get_running_loop().create_future())
        self._open.append(question)
        try:
            return await question.given
        finally:
            self._open.remove(question)
