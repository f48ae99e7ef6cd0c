"""What a connection may have to ask a person. Answers are used once and kept nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


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
