"""All hostile behaviours by name."""

import tomllib
from functools import partial
from pathlib import Path

from tests.load.hostile.cases import HostileCase, case
from tests.load.hostile.connections import CONNECTIONS
from tests.load.hostile.large import LARGE
from tests.load.hostile.tls import TLS_CASES
from tests.load.servers import always, once

_BEHAVIOURS = {"closed": once, "held": partial(once, hold=True), "reset": partial(once, reset=True), "always": always}
_TABLE = tomllib.loads(Path(__file__).with_name("responses.toml").read_text())
_RESPONSES = [
    case(name, _BEHAVIOURS[kind](response.encode("latin-1")), *expected)
    for kind, rows in _TABLE.items()
    for name, (response, *expected) in rows.items()
]
_ALL = (*_RESPONSES, *LARGE, *CONNECTIONS, *TLS_CASES)
CASES: dict[str, HostileCase] = {case.name: case for case in _ALL}
assert len(CASES) == len(_ALL)
