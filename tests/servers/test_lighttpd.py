"""lighttpd: settings, status page, candidates."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.editing import ConfigError
from cockpit.servers.inventory import parse_inventory
from tests.hosts import pages

LIGHTTPD = registry.GRAMMARS["lighttpd"]
CONFIG = b"""\
server.modules = (
\t"mod_access", # server.port = 1
\t"mod_status",
)
server.document-root        = "/var/www/html"
server.port                 = 80 # not 8080
server.max-connections=512
index-file.names            = ( "index.php", "index.html" )
server.feature-flags       += ("server.h2proto" => "enable")
include_shell "/usr/share/lighttpd/create-mime.conf.pl"
$HTTP["remoteip"] =~ "^10{2}\\." {
\tserver.max-keep-alive-idle = 3
\t$HTTP["url"] =~ "^/a" { dir-listing.activate = "enable" }
} else $HTTP["host"] == "b" {
    server.max-keep-alive-idle = 9
}
"""
REMOTE = '$HTTP["remoteip"] =~ "^10{2}\\." {'


@pytest.mark.parametrize(
    ("key", "section", "value"),
    [
        ("server.port", None, "80"),
        ("server.document-root", None, "/var/www/html"),
        ("server.max-connections", None, "512"),
        ("server.modules", None, '(\n\t"mod_access", # server.port = 1\n\t"mod_status",\n)'),
        ("index-file.names", None, '( "index.php", "index.html" )'),
        ("server.max-keep-alive-idle", REMOTE, "3"),
        ("dir-listing.activate", f'{REMOTE} $HTTP["url"] =~ "^/a" {{', "enable"),
        ("server.max-keep-alive-idle", 'else $HTTP["host"] == "b" {', "9"),
        ("server.max-fds", None, None),
    ],
)
def test_settings_are_read(key: str, section: str | None, value: str | None) -> None:
    assert LIGHTTPD.read(CONFIG, key, section).value == value


def test_change_modifies_only_one_setting() -> None:
    assert LIGHTTPD.change(CONFIG, "server.port", b"8080") == CONFIG.replace(b"= 80 #", b"= 8080 #")
    added = LIGHTTPD.change(CONFIG, "server.max-fds", b"4096")
    assert added == CONFIG + b"server.max-fds = 4096\n"
    assert LIGHTTPD.change(added, "server.max-fds", None) == CONFIG
    inside = LIGHTTPD.change(CONFIG, "server.max-read-idle", b"5", REMOTE)
    assert inside == CONFIG.replace(b"} else", b"\tserver.max-read-idle = 5\n} else")
    assert LIGHTTPD.change(inside, "server.max-read-idle", None, REMOTE) == CONFIG
    assert LIGHTTPD.change(CONFIG, "server.port", None) == CONFIG.replace(b"server.port                 = 80 ", b""), (
        "the comment on the line is kept"
    )


@pytest.mark.parametrize(
    ("text", "key", "section", "reason"),
    [
        (CONFIG, "server.feature-flags", None, "line 9: .*adds to its value"),
        (CONFIG, "server.max-keep-alive-idle", None, "in another section: set section = "),
        (CONFIG, "x", '$HTTP["host"] == "c" {', "no section"),
        (b'a = "x\n', "a", None, "line 1: a quote is never closed"),
        (b"a = (1,\n", "a", None, "a parenthesis is never closed"),
        (b'$HTTP["a"] == "b" {\n', "a", None, "never closed"),
        (b"a = 1 }\n", "a", None, "unexpected }"),
        (b"{ a = 1 }\n", "a", None, "unexpected {"),
        (b"a\0", "a", None, "NUL"),
    ],
)
def test_unsupported_text_is_refused(text: bytes, key: str, section: str | None, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        LIGHTTPD.read(text, key, section)


def test_nothing_is_added_to_one_line_section() -> None:
    with pytest.raises(ConfigError, match="on one line"):
        LIGHTTPD.change(CONFIG, "x", b"1", f'{REMOTE} $HTTP["url"] =~ "^/a" {{')


@pytest.mark.parametrize(
    ("value", "like", "raw"),
    [
        ("1024", b"512", b"1024"),
        ("1024", b'"512"', b'"1024"'),
        ("1024", None, b"1024"),
        ("disable", None, b'"disable"'),
        ("/var/www", b'"/srv"', b'"/var/www"'),
        ("var.x", b"1", b"var.x"),
        ('( "a", "b" )', None, b'( "a", "b" )'),
        ('"a b"', None, b'"a b"'),
        ('var.x + "/a"', None, b'var.x + "/a"'),
        ('( "a" => "b" )', None, b'( "a" => "b" )'),
    ],
)
def test_values_are_spelled(value: str, like: bytes | None, raw: bytes) -> None:
    assert LIGHTTPD.spell(value, like) == raw
    text = LIGHTTPD.change(CONFIG, "x", raw)
    assert LIGHTTPD.read(text, "x").raw == raw


@pytest.mark.parametrize(
    "value", ["", "1 ", "a\nb", '"a', '"a\\"', "(1", "1)", "1 # x", "1 }", "{", "1 b = 2", "a\x00"]
)
def test_invalid_values_are_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        LIGHTTPD.spell(value)


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
    (server,) = registry.running_servers(parse_inventory(text, registry.FILES))
    assert (server.pattern, server.processes, server.ports) == ("lighttpd", 1, (80,))
    assert server.tail == ("tail -n 3 -F /var/log/lighttpd/error.log",)
    assert server.candidates[0].directive == "server.max-connections" and server.candidates[0].usual
