"""Private keys that a person unlocked, in memory as long as the session lives, as an ssh agent would hold them.

So a host that was lost is reached again without a question, and hosts that share a key ask for its passphrase once.
The passphrase itself is dropped as soon as it has been used.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncssh import SSHKey


class Keyring:
    """Unlocked keys by the file they came from. `turn` keeps two hosts from asking for the same one at once."""

    def __init__(self) -> None:
        self.keys: dict[Path, SSHKey] = {}
        self.turn: dict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)
