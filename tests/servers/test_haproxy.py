"""HAProxy: keywords, statistics, candidates."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.editing import ConfigError
from cockpit.servers.inventory import parse_inventory
from cockpit.servers.status import NotThePageError
from tests.hosts import pages

HAPROXY = registry.GRAMMARS["haproxy"]
CONFIG = b"""\
# maxconn 1
global
\tlog /dev/log\tlocal0
\tmaxconn 2000 # of the process
\tuser haproxy

defaults
\tmode\thttp
        timeout connect 5000
        timeout client  50s
\tretries 3

frontend  web
    bind *:80
    maxconn 500
    http-request set-header X-A "a # b"
    default_backend app

backend app
    .if feature(OPENSSL)
    retries 9
    .endif
    server app1 127.0.0.1:8080 maxconn 30
"""


@pytest.mark.parametrize(
    ("name", "section", "value"),
    [
        ("maxconn", "global", "2000"),
        ("maxconn", "frontend web", "500"),
        ("timeout client", "defaults", "50s"),
        ("timeout connect", None, "5000"),
        ("http-request set-header", "frontend web", 'X-A "a # b"'),
        ("server app1", "backend app", "127.0.0.1:8080 maxconn 30"),
        ("nbthread", "global", None),
        ("nbthread", None, None),
    ],
)
def test_keywords_are_read(name: str, section: str | None, value: str | None) -> None:
    assert HAPROXY.read(CONFIG, name, section).value == value


def test_change_modifies_only_one_keyword() -> None:
    changed = HAPROXY.change(CONFIG, "timeout client", b"10s", "defaults")
    assert changed == CONFIG.replace(b"client  50s", b"client  10s")
    added = HAPROXY.change(CONFIG, "nbthread", b"2", "global")
    assert added == CONFIG.replace(b"\tuser haproxy\n", b"\tuser haproxy\n\tnbthread 2\n")
    assert HAPROXY.change(added, "nbthread", None, "global") == CONFIG
    last = HAPROXY.change(CONFIG.rstrip(), "balance", b"leastconn", "backend app")
    assert last.endswith(b"maxconn 30\n    balance leastconn")
    assert HAPROXY.change(last, "balance", None, "backend app") == CONFIG.rstrip()


@pytest.mark.parametrize(
    ("name", "section", "reason"),
    [
        ("maxconn", None, "maxconn is in global and frontend web; set the section of the knob"),
        ("maxconn", "frontend other", "no section frontend other; maxconn is in another section"),
        ("retries", "backend app", "line 21: retries depends on an .if"),
    ],
)
def test_ambiguous_keywords_are_refused(name: str, section: str | None, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        HAPROXY.read(CONFIG, name, section)


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


def test_missing_keyword_needs_section() -> None:
    with pytest.raises(ConfigError, match="name a section in the knob"):
        HAPROXY.change(CONFIG, "nbthread", b"2")


@pytest.mark.parametrize("value", ["", " 1", "1 # x", '"a', "'a", "a\\", "1\nuser root"])
def test_invalid_values_are_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        HAPROXY.spell(value)


@pytest.mark.parametrize("value", ["50s", "X-A 'a # b'", '"a # b"', "a\\#b", "ssl crt /etc/x.pem"])
def test_values_are_read_back(value: str) -> None:
    text = HAPROXY.change(CONFIG, "timeout client", HAPROXY.spell(value), "defaults")
    assert HAPROXY.read(text, "timeout client", "defaults").value == value


def test_statistics_are_parsed() -> None:
    page = registry.STATUS_PAGES["haproxy"]
    values, _ = page.parse(pages.HAPROXY)
    assert (values["frontend.scur"], values["frontend.req_tot"], values["backend.qcur"]) == (4, 157, 1)
    assert (values["servers.up"], values["servers.down"]) == (1, 1)
    assert (values["app/app1 rtime"], values["web/FRONTEND bout"]) == (12, 48000)
    assert page.is_counter("web/FRONTEND bout") and page.is_counter("frontend.req_tot")
    assert not page.is_counter("frontend.scur") and not page.is_counter("app/app1 rtime")


def test_a_listener_is_no_server() -> None:
    """The rows of `option socket-stats`, with the status OPEN."""
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
    (server,) = registry.running_servers(parse_inventory(text, registry.FILES))
    assert (server.title, server.processes) == ("HAProxy", 2)
    timeouts = [candidate for candidate in server.candidates if candidate.section == "defaults"]
    assert timeouts[0].directive == "timeout connect" and timeouts[0].name == "timeout-connect"
    for candidate in server.candidates:
        assert HAPROXY.names.fullmatch(candidate.directive)


def test_a_limit_of_the_command_line_is_not_offered_in_the_file() -> None:
    offered = {}
    for options in ("", "-n\t100\t"):
        text = f"process\t5\t1\thaproxy\t/usr/sbin/haproxy\t{options}\n"
        (server,) = registry.running_servers(parse_inventory(text, registry.FILES))
        offered[options] = {one.directive for one in server.candidates}
    assert offered[""] - offered["-n\t100\t"] == {"maxconn"}
