"""Varnish: the file that started it, its parameters there and live, its backends, its counters."""

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


def found(*options: str, files: str, unit: str = "", directory: str = "/var/lib/varnish/web1") -> RunningServer:
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


def test_one_of_a_service_script_is_tuned_in_its_option_file_and_live() -> None:
    server = found("-P", "/run/varnishd.pid", *OPTIONS, files=SCRIPT + text("/etc/default/varnish", DEFAULT))
    knobs = {one.name: one for one in server.candidates}
    ttl, storage = knobs["default_ttl"], knobs["storage"]
    assert server.ports == (6081,) and ttl.file == storage.file == "/etc/default/varnish"
    assert ttl.set.startswith('out=$(varnishadm -n /var/lib/varnish/web1 param.set default_ttl "$1" 2>&1) || ')
    assert ttl.get.startswith("varnishadm -n /var/lib/varnish/web1 param.show default_ttl | ")
    assert (ttl.reload, ttl.cost) == ("", "live")
    assert (storage.get, storage.set, storage.reload) == ("", "", "service varnish stop && service varnish start")
    assert ttl.test.startswith("out=$(/usr/sbin/varnishd -C -f /etc/varnish/default.vcl 2>&1) || ")
    assert startup(server).files == ("/etc/default/varnish", "/etc/varnish/default.vcl")
    assert [page.url for page in server.status] == ["unix:/var/lib/varnish/web1"]


def test_one_without_vcl_is_tested_with_its_backend() -> None:
    files = SCRIPT + text("/etc/default/varnish", b'DAEMON_OPTS="-a :6081 -b app1:80"\n')
    knobs = found("-a", ":6081", "-b", "app1:80", files=files).candidates
    assert knobs and all(one.test.startswith("out=$(/usr/sbin/varnishd -C -b app1:80 2>&1) || ") for one in knobs)


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ((*OPTIONS, "-n", "second"), SCRIPT + text("/etc/default/varnish", DEFAULT)),
        (OPTIONS, SCRIPT + text("/etc/default/varnish", DEFAULT.replace(b":6081", b":$PORT"))),
        (OPTIONS, text("/etc/default/varnish", DEFAULT)),
        (OPTIONS, SCRIPT),
    ],
)
def test_a_file_that_did_not_start_it_is_not_offered(options: tuple[str, ...], files: str) -> None:
    server = found(*options, files=files)
    assert server.candidates == () and startup(server).fixed == "no file is known that starts it with these options"
    assert startup(server).files == ("/etc/varnish/default.vcl",) and startup(server).doubt == ""


def test_the_last_drop_in_of_a_unit_counts() -> None:
    place = "/etc/systemd/system/varnish.service"
    files = text(place, UNIT.replace(b"6081", b"80")) + text(f"{place}.d/10.conf", UNIT.replace(b"6081", b"81"))
    files += text(f"{place}.d/20.conf", UNIT) + text(f"{place}.d/30.conf", b"[Service]\nLimitNOFILE=9\n")
    server = found(*UNIT_OPTIONS, files=files, unit="varnish.service")
    knobs = {one.name: one for one in server.candidates}
    assert knobs["default_ttl"].file == f"{place}.d/20.conf"
    assert knobs["default_ttl"].reload == "systemctl daemon-reload"
    assert knobs["storage"].reload == "systemctl daemon-reload && systemctl restart varnish.service"


def test_the_unit_of_the_package_is_not_changed() -> None:
    files = text("/lib/systemd/system/varnish.service", UNIT)
    server = found(*UNIT_OPTIONS, files=files, unit="varnish.service")
    assert server.candidates == () and "systemctl edit --full varnish.service" in startup(server).fixed


def test_without_its_working_directory_nothing_is_offered() -> None:
    server = found(*OPTIONS, files=SCRIPT + text("/etc/default/varnish", DEFAULT), directory="")
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
def test_settings_are_options(content: bytes, name: str, value: str | None, line: int) -> None:
    read = GRAMMAR.read(content, name)
    assert (read.value, read.line) == (value, line)
    changed = GRAMMAR.change(content, name, b"77")
    assert GRAMMAR.read(changed, name).value == "77" and changed.count(b"\n") == content.count(b"\n")
    assert value is not None or GRAMMAR.change(changed, name, None) == content


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (DEFAULT.replace(b"-t 60", b"-s file,/a,1g"), "several storages"),
        (DEFAULT.replace(b":6081", b":$PORT"), "quotes or variables"),
        (DEFAULT.replace(b"DAEMON_OPTS", b"OTHER"), "neither ExecStart nor DAEMON_OPTS"),
        (UNIT.replace(b"/varnishd", b"/env varnishd"), "does not start varnishd itself"),
        (b"DAEMON_OPTS=\n", "no options"),
    ],
)
def test_other_command_lines_are_refused(content: bytes, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        GRAMMAR.read(content, "storage")


@pytest.mark.parametrize("value", ["1 -p x=2", '1"', "$(id)", "%n", "a\\b"])
def test_a_value_stays_one_word(value: str) -> None:
    with pytest.raises(ConfigError):
        GRAMMAR.spell(value)


def test_forms_of_values() -> None:
    known = registry.SETTINGS["varnish"]
    assert [known["default_ttl"].printed(value) for value in ("120", "0.5", "x")] == ["120.000", "0.500", "x"]
    assert all(known["storage"].accepts(value) for value in ("malloc,256m", "s0=malloc,1G", "file,/srv/v.bin,2G"))
    assert not any(known["storage"].accepts(value) for value in ("foo,1", "malloc 256m", "malloc,lots"))


def test_backends_of_vcl_and_of_the_command_line() -> None:
    vcl = """\
backend app { .probe = { .url = "/up"; } .port = "81"; .host = "app1"; }
backend local {
    .host = "127.0.0.1";
}
// backend old { .host = "gone"; }
backend socket { .path = "/run/app.sock"; }
"""
    pattern = registry.UPSTREAMS["varnish"]
    assert [one.words for one in upstreams(vcl, pattern)] == ["app1:81", "127.0.0.1:80", "/run/app.sock"]
    assert [one.words for one in upstreams('DAEMON_OPTS="-a :80 -b app1:8080"', pattern)] == ["app1:8080"]
    assert upstreams('DAEMON_OPTS="-b none"', pattern) == ()


def test_the_counters() -> None:
    page = registry.STATUS_PAGES["varnish"]
    values, text = page.parse(pages.VARNISH)
    assert (values["MAIN.client_req"], values["MAIN.threads"], values["VBE.boot.default.req"]) == (431, 200, 97)
    assert "VBE.boot.default.happy" not in values and "LCK.ban.locks" not in values and text == {}
    gauges = {"MAIN.threads", "MAIN.uptime", "SMA.s0.g_bytes", "VBE.boot.default.conn"}
    assert {name for name in values if not page.is_counter(name)} == gauges
