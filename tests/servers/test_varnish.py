"""Varnish: start-up file, parameters in the file and live, backends, counters."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.editing import ConfigError
from cockpit.servers.inventory import parse_inventory
from cockpit.servers.kind import RunningServer
from cockpit.servers.startup import Startup
from cockpit.servers.upstreams import upstreams
from tests.hosts import pages

GRAMMAR = registry.GRAMMARS["varnish"]
DEFAULT = b"""\
# varnishd
NFILES=131072
DAEMON_OPTS="-a :6081 \\
             -T localhost:6082 -pthread_pool_min=50 \\
             -f /etc/varnish/default.vcl \\
             -t 60 -s malloc,256m"
"""
UNIT = b"""\
[Service]
ExecStart=
ExecStart=/usr/sbin/varnishd \\
    -j unix,user=vcache -F \\
    -a :6081 -p default_ttl=60 -f /etc/varnish/default.vcl
ExecReload=/usr/share/varnish/varnishreload
"""
OPTIONS = ("-a", ":6081", "-T", "localhost:6082", "-f", "/etc/varnish/default.vcl", "-s", "malloc,256m")
SCRIPT = "text\t/etc/init.d/varnish\t#!/bin/sh\n"
UNIT_OPTIONS = ("-j", "unix,user=vcache", "-F", "-a", ":6081", "-f", "/etc/varnish/default.vcl")


def text(file: str, content: bytes) -> str:
    return "".join(f"text\t{file}\t{line}\n" for line in content.decode().splitlines())


def discover(*options: str, files: str, unit: str = "", directory: str = "/var/lib/varnish/web1") -> RunningServer:
    words = "\t".join(options)
    facts = (
        f"user\troot\nprocess\t9\t1\tvarnishd\t/usr/sbin/varnishd\t{words}\t\n"
        f"process\t10\t9\tcache-main\t/usr/sbin/varnishd\t{words}\t\n"
        f"master\t9\t/usr/sbin/varnishd\t{directory}\tyes\t{unit}\thost\n"
        'listen\t*:6081\tusers:(("cache-main",pid=10,fd=3))\n'
    )
    (server,) = registry.running_servers(parse_inventory(facts + files, registry.FILES, registry.TEXTS))
    return server


def startup(server: RunningServer) -> Startup:
    assert server.startup is not None
    return server.startup


def test_service_script_offers_option_file_and_live_values() -> None:
    server = discover("-P", "/run/varnishd.pid", *OPTIONS, files=SCRIPT + text("/etc/default/varnish", DEFAULT))
    knobs = {candidate.name: candidate for candidate in server.candidates}
    ttl, storage = knobs["default_ttl"], knobs["storage"]
    assert server.ports == (6081,) and ttl.file == storage.file == "/etc/default/varnish"
    assert ttl.set.startswith('out=$(varnishadm -n /var/lib/varnish/web1 param.set default_ttl "$1" 2>&1) || ')
    assert ttl.get.startswith("varnishadm -n /var/lib/varnish/web1 param.show default_ttl | ")
    assert (ttl.reload, ttl.cost) == ("", "live")
    assert (storage.get, storage.set, storage.reload) == ("", "", "service varnish stop && service varnish start")
    assert ttl.test.startswith("out=$(/usr/sbin/varnishd -C -f /etc/varnish/default.vcl 2>&1) || ")
    assert startup(server).files == ("/etc/default/varnish", "/etc/varnish/default.vcl")
    assert [page.url for page in server.status] == ["unix:/var/lib/varnish/web1"]


def test_server_without_vcl_is_tested_with_backend() -> None:
    files = SCRIPT + text("/etc/default/varnish", b'DAEMON_OPTS="-a :6081 -b app1:80"\n')
    knobs = discover("-a", ":6081", "-b", "app1:80", files=files).candidates
    assert knobs and all(
        candidate.test.startswith("out=$(/usr/sbin/varnishd -C -b app1:80 2>&1) || ") for candidate in knobs
    )


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ((*OPTIONS, "-n", "second"), SCRIPT + text("/etc/default/varnish", DEFAULT)),
        (OPTIONS, SCRIPT + text("/etc/default/varnish", DEFAULT.replace(b":6081", b":$PORT"))),
        (OPTIONS, text("/etc/default/varnish", DEFAULT)),
        (OPTIONS, SCRIPT),
    ],
)
def test_file_with_other_options_is_not_offered(options: tuple[str, ...], files: str) -> None:
    server = discover(*options, files=files)
    assert server.candidates == () and startup(server).read_only_reason == "no file with its options was found"
    assert startup(server).files == ("/etc/varnish/default.vcl",) and startup(server).uncertainty == ""


def test_last_drop_in_of_unit_wins() -> None:
    unit_file = "/etc/systemd/system/varnish.service"
    files = text(unit_file, UNIT.replace(b"6081", b"80")) + text(f"{unit_file}.d/10.conf", UNIT.replace(b"6081", b"81"))
    files += text(f"{unit_file}.d/20.conf", UNIT) + text(f"{unit_file}.d/30.conf", b"[Service]\nLimitNOFILE=9\n")
    server = discover(*UNIT_OPTIONS, files=files, unit="varnish.service")
    knobs = {candidate.name: candidate for candidate in server.candidates}
    assert knobs["default_ttl"].file == f"{unit_file}.d/20.conf"
    assert knobs["default_ttl"].reload == "systemctl daemon-reload"
    assert knobs["storage"].reload == "systemctl daemon-reload && systemctl restart varnish.service"


def test_packaged_unit_is_not_changed() -> None:
    files = text("/lib/systemd/system/varnish.service", UNIT)
    server = discover(*UNIT_OPTIONS, files=files, unit="varnish.service")
    assert server.candidates == () and "systemctl edit --full varnish.service" in startup(server).read_only_reason


def test_unknown_working_directory_offers_nothing() -> None:
    server = discover(*OPTIONS, files=SCRIPT + text("/etc/default/varnish", DEFAULT), directory="")
    assert server.candidates == () and server.status == ()


@pytest.mark.parametrize(
    ("content", "name", "value", "line"),
    [
        (DEFAULT, "thread_pool_min", "50", 4),
        (DEFAULT, "default_ttl", "60", 6),
        (DEFAULT, "storage", "malloc,256m", 6),
        (DEFAULT, "thread_pools", None, 0),
        (UNIT, "default_ttl", "60", 5),
        (UNIT, "storage", None, 0),
    ],
)
def test_settings_are_read_from_options(content: bytes, name: str, value: str | None, line: int) -> None:
    read = GRAMMAR.read(content, name)
    assert (read.value, read.line) == (value, line)
    changed = GRAMMAR.change(content, name, b"77")
    assert GRAMMAR.read(changed, name).value == "77" and changed.count(b"\n") == content.count(b"\n")
    assert value is not None or GRAMMAR.change(changed, name, None) == content


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (DEFAULT.replace(b"-t 60", b"-s file,/a,1g"), "several storages"),
        (DEFAULT.replace(b":6081", b":$PORT"), "quotes or variables"),
        (DEFAULT.replace(b"DAEMON_OPTS", b"OTHER"), "neither ExecStart nor a DAEMON_OPTS"),
        (UNIT.replace(b"/varnishd", b"/env varnishd"), "does not start varnishd directly"),
        (b"DAEMON_OPTS=\n", "no options"),
    ],
)
def test_unsupported_command_lines_are_refused(content: bytes, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        GRAMMAR.read(content, "storage")


@pytest.mark.parametrize("value", ["1 -p x=2", '1"', "$(id)", "%n", "a\\b"])
def test_value_with_shell_syntax_is_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        GRAMMAR.spell(value)


def test_values_are_normalized_and_validated() -> None:
    known = registry.SETTINGS["varnish"]
    assert [known["default_ttl"].as_printed(value) for value in ("120", "0.5", "x")] == ["120.000", "0.500", "x"]
    assert all(known["storage"].accepts(value) for value in ("malloc,256m", "s0=malloc,1G", "file,/srv/v.bin,2G"))
    assert not any(known["storage"].accepts(value) for value in ("foo,1", "malloc 256m", "malloc,lots"))


def test_backends_of_vcl_and_command_line_are_found() -> None:
    vcl = """\
backend app { .probe = { .url = "/up"; } .port = "81"; .host = "app1"; }
backend local {
    .host = "127.0.0.1";
}
// backend old { .host = "gone"; }
backend socket { .path = "/run/app.sock"; }
"""
    pattern = registry.UPSTREAMS["varnish"]
    assert [upstream.words for upstream in upstreams(vcl, pattern)] == ["app1:81", "127.0.0.1:80", "/run/app.sock"]
    assert [upstream.words for upstream in upstreams('DAEMON_OPTS="-a :80 -b app1:8080"', pattern)] == ["app1:8080"]
    assert upstreams('DAEMON_OPTS="-b none"', pattern) == ()


def test_counters_are_parsed() -> None:
    page = registry.STATUS_PAGES["varnish"]
    values, text = page.parse(pages.VARNISH)
    assert (values["MAIN.client_req"], values["MAIN.threads"], values["VBE.boot.default.req"]) == (431, 200, 97)
    assert "VBE.boot.default.happy" not in values and "LCK.ban.locks" not in values and text == {}
    gauges = {"MAIN.threads", "MAIN.uptime", "SMA.s0.g_bytes", "VBE.boot.default.conn"}
    assert {name for name in values if not page.is_counter(name)} == gauges
