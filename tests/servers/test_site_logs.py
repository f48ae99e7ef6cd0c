"""Access logs in the configurations of servers, by the name and port of a request."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.servers.registry import SITES
from cockpit.servers.site_logs import logs_for
from tests.data import data_of


@pytest.mark.parametrize("case", data_of(__file__)["case"], ids=lambda case: case["kind"])
def test_logs_of_sites(case: dict[str, Any]) -> None:
    sites = SITES[case["kind"]](case["texts"], "/etc/x", {})
    for request in case["logs"]:
        logs = logs_for(sites, request["name"], request["port"])
        assert [f"{log.file} {log.format}" for log in logs] == request["files"], request["name"]


def test_variable_of_the_running_server() -> None:
    sites = SITES["apache"](["CustomLog ${APACHE_LOG_DIR}/a.log %s"], "/", {"APACHE_LOG_DIR": "/srv"})
    assert logs_for(sites, "", None)[0].file == "/srv/a.log"
