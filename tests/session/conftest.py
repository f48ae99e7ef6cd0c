"""A server for live sessions, whose load workers are forked."""

from collections.abc import Iterator

import pytest

from tests.load.conftest import fork_server, forked_workers
from tests.servers import http_server

__all__ = ["fork_server", "forked_workers"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield f"{base}/"
