"""HAProxy: keywords, statistics, candidates."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.editing import ConfigError
from cockpit.servers.status import NotThePageError
from tests.hosts import pages
from tests.servers.found import running

HAPROXY = registry.GRAMMARS["haproxy"]


FLAGS = b"""\
defaults
\tmode http
\tno option http-keep-alive # off
\toption httpchk GET /up
backend app
    option  http-server-close
"""


def test_flag_is_on_or_off() -> None:
    alive, close = "option http-keep-alive", "option http-server-close"
    assert [HAPROXY.read(FLAGS, alive, "defaults").value, HAPROXY.read(FLAGS, alive, "backend app").value] == [
        "off",
        None,
    ]
    assert HAPROXY.read(FLAGS, close, "backend app").value == "on"
    assert HAPROXY.read(FLAGS, "option httpchk", "defaults").value == "GET /up"
    on = HAPROXY.change(FLAGS, alive, HAPROXY.spell_in(FLAGS, alive, "defaults", "on", None), "defaults")
    assert on == FLAGS.replace(b"no option http-keep-alive", b"option http-keep-alive")
    off = HAPROXY.change(FLAGS, close, HAPROXY.spell_in(FLAGS, close, "backend app", "off", None), "backend app")
    assert off == FLAGS.replace(b"option  http-server-close", b"no option http-server-close")
    added = HAPROXY.change(FLAGS, close, HAPROXY.spell_in(FLAGS, close, "defaults", "off", None), "defaults")
    assert added == FLAGS.replace(b"GET /up\n", b"GET /up\n\tno option http-server-close\n")
    assert HAPROXY.change(added, close, None, "defaults") == FLAGS
    with pytest.raises(ConfigError, match="the value must be on or off"):
        HAPROXY.spell_in(FLAGS, alive, "defaults", "GET /", None)


def test_statistics_are_parsed() -> None:
    page = registry.STATUS_PAGES["haproxy"]
    values, _ = page.parse(pages.HAPROXY)
    assert (values["frontend.scur"], values["frontend.req_tot"], values["backend.qcur"]) == (4, 157, 1)
    assert (values["servers.up"], values["servers.down"]) == (1, 1)
    assert (values["app/app1 rtime"], values["web/FRONTEND bout"]) == (12, 48000)
    assert page.is_counter("web/FRONTEND bout") and page.is_counter("frontend.req_tot")
    assert not page.is_counter("frontend.scur") and not page.is_counter("app/app1 rtime")
    # The rows of `option socket-stats`, with the status OPEN.
    rows = "web,sock-1,OPEN,3,1,\nweb,FRONTEND,OPEN,0,1,\napp,app1,UP,2,1,\napp,app2,DOWN,2,0,\n"
    values, _ = registry.STATUS_PAGES["haproxy"].parse(f"# pxname,svname,status,type,scur,\n{rows}")
    assert (values["servers.up"], values["servers.down"], values["web/sock-1 scur"]) == (1, 1, 1)


@pytest.mark.parametrize("text", ["# pxname,svname,x\n" + "a" * 200_000, "# pxname,svname,x\n\0\n", "# pxname,svname,"])
def test_malformed_row_raises_only_page_error(text: str) -> None:
    try:
        registry.STATUS_PAGES["haproxy"].parse(text)
    except NotThePageError as error:
        assert "the URL must end in ;csv" in str(error)


def test_candidates_are_offered() -> None:
    text = "process\t5\t1\thaproxy\t/usr/sbin/haproxy\t\nprocess\t6\t5\thaproxy\t/usr/sbin/haproxy\t\n"
    (server,) = running(text)
    assert (server.title, server.processes) == ("HAProxy", 2)
    timeouts = [candidate for candidate in server.candidates if candidate.section == "defaults"]
    assert timeouts[0].directive == "timeout connect" and timeouts[0].name == "timeout-connect"
    for candidate in server.candidates:
        assert HAPROXY.names.fullmatch(candidate.directive)
    offered = {}
    for options in ("", "-n\t100\t"):
        text = f"process\t5\t1\thaproxy\t/usr/sbin/haproxy\t{options}\n"
        (server,) = running(text)
        offered[options] = {one.directive for one in server.candidates}
    assert offered[""] - offered["-n\t100\t"] == {"maxconn"}
