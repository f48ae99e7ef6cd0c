"""Published ports of containers: the listening program only forwards the requests."""

from __future__ import annotations

import pytest

from cockpit.model.hosts import HostConfig
from cockpit.setup.profile_draft import HostSurvey
from cockpit.tuning.server_discovery import DiscoveredHost


@pytest.mark.parametrize(
    ("listener", "advice"),
    [
        ("docker-proxy", "also watch the container, as docker:NAME or podman:NAME"),
        ("conmon", "which forwards requests to a container"),
        ("mystery", "served by mystery, which is not a known server"),
    ],
)
def test_container_behind_published_port_is_suggested(listener: str, advice: str) -> None:
    host = DiscoveredHost("root", (), None, (), (), unknown_listeners=(listener,))
    assert advice in HostSurvey(HostConfig(name="web1"), host).words
