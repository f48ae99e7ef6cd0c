"""lighttpd: settings, status page, candidates."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from tests.hosts import pages
from tests.servers.found import running

LIGHTTPD = registry.GRAMMARS["lighttpd"]


@pytest.mark.parametrize(("files", "note"), [("1024", "lowers server.max-connections 600 to 512"), ("1200", "")])
def test_connections_over_half_of_max_fds_are_noted(files: str, note: str) -> None:
    text = f"server.max-connections = 600\nserver.max-fds = {files}\n".encode()
    assert note in LIGHTTPD.coerced(text, "server.max-fds", None) and bool(note) == bool(
        LIGHTTPD.coerced(text, "server.max-connections", None)
    )
    assert LIGHTTPD.coerced(text, "server.port", None) == ""


def test_status_page_is_parsed() -> None:
    page = registry.STATUS_PAGES["lighttpd"]
    values, text = page.parse(pages.LIGHTTPD)
    assert (values["BusyServers"], values["IdleServers"], values["Total Accesses"]) == (2, 1022, 41)
    assert text == {"Scoreboard": "rW______________"} and set("rW_") <= set(page.scoreboard)


def test_candidates_are_offered() -> None:
    text = (
        "process\t5\t1\tlighttpd\t/usr/sbin/lighttpd\t-f\t/etc/lighttpd/lighttpd.conf\t\n"
        'listen\t0.0.0.0:80\tusers:(("lighttpd",pid=5,fd=4))\n'
        "file\t/var/log/lighttpd/error.log\n"
    )
    (server,) = running(text)
    assert (server.pattern, server.processes, server.ports) == ("lighttpd", 1, (80,))
    assert server.tail == ("tail -n 3 -F /var/log/lighttpd/error.log",)
    assert server.candidates[0].directive == "server.max-connections" and server.candidates[0].usual
