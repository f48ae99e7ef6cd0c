"""A port that a container publishes: the program that listens there only passes the requests on."""

from __future__ import annotations

import pytest

from cockpit.model.hosts import HostConfig
from cockpit.setup.profile_draft import Surveyed
from cockpit.tuning.server_discovery import DiscoveredHost


@pytest.mark.parametrize(
    ("listener", "words"),
    [
        ("docker-proxy", "watch that as well, as docker:NAME or podman:NAME"),
        ("conmon", "which passes requests to a container"),
        ("mystery", "served by mystery, which is no known server"),
    ],
)
def test_the_container_is_the_host_to_watch(listener: str, words: str) -> None:
    found = DiscoveredHost("root", (), None, (), (), strangers=(listener,))
    assert words in Surveyed(HostConfig(name="web1"), found).words
