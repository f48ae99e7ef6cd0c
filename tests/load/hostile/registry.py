"""All hostile behaviours by name."""

from __future__ import annotations

from tests.load.hostile.bodies import CHUNKS, LENGTHS
from tests.load.hostile.cases import HostileCase
from tests.load.hostile.connections import CONNECTIONS
from tests.load.hostile.heads import HEADS
from tests.load.hostile.tls import TLS_CASES

_ALL = (*HEADS, *LENGTHS, *CHUNKS, *CONNECTIONS, *TLS_CASES)
CASES: dict[str, HostileCase] = {case.name: case for case in _ALL}
assert len(CASES) == len(_ALL)
