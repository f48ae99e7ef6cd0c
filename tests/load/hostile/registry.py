"""All hostile behaviours by name."""

from __future__ import annotations

from tests.load.hostile.bodies import CHUNKS, LENGTHS
from tests.load.hostile.connections import CONNECTIONS
from tests.load.hostile.heads import HEADS
from tests.load.hostile.rows import Row
from tests.load.hostile.secure import SECURE

ROWS: dict[str, Row] = {row.name: row for row in (*HEADS, *LENGTHS, *CHUNKS, *CONNECTIONS, *SECURE)}
