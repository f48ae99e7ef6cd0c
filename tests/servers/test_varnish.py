"""Varnish: start-up file, parameters in the file and live, backends, counters."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.kind import RunningServer
from cockpit.servers.startup import Startup
from cockpit.servers.upstreams import upstreams
from tests.hosts import pages
from tests.servers.found import running, texts

DEFAULT = """\
# varnishd
NFILES=131072
DAEMON_OPTS="-a :6081 \\
             -T localhost:6082 -pthread_pool_min=50 \\
             -f /etc/varnish/default.vcl \\
             -t 60 -s malloc,256m"
"""
UNIT = """\
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


def discover(*options: str, files: str, unit: str = "", directory: str = "/var/lib/varnish/web1") -> RunningServer:
    words = "\t".join(options)
    facts = (
        f"user\troot\nprocess\t9\t1\tvarnishd\t/usr/sbin/varnishd\t{words}\t\n"
        f"process\t10\t9\tcache-main\t/usr/sbin/varnishd\t{words}\t\n"
        f"master\t9\t/usr/sbin/varnishd\t{directory}\tyes\t{unit}\thost\n"
        'listen\t*:6081\tusers:(("cache-main",pid=10,fd=3))\n'
    )
    (server,) = running(facts + files)
    return server


def startup(server: RunningServer) -> Startup:
    return server.startup


def test_service_script_offers_option_file_and_live_values() -> None:
    server = discover("-P", "/run/varnishd.pid", *OPTIONS, files=SCRIPT + texts("/etc/default/varnish", DEFAULT))
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


def test_servers_without_vcl_or_directory() -> None:
    files = SCRIPT + texts("/etc/default/varnish", 'DAEMON_OPTS="-a :6081 -b app1:80"\n')
    knobs = discover("-a", ":6081", "-b", "app1:80", files=files).candidates
    assert knobs and all(
        candidate.test.startswith("out=$(/usr/sbin/varnishd -C -b app1:80 2>&1) || ") for candidate in knobs
    )
    server = discover(*OPTIONS, files=SCRIPT + texts("/etc/default/varnish", DEFAULT), directory="")
    assert server.candidates == () and server.status == ()


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ((*OPTIONS, "-n", "second"), SCRIPT + texts("/etc/default/varnish", DEFAULT)),
        (OPTIONS, SCRIPT + texts("/etc/default/varnish", DEFAULT.replace(":6081", ":$PORT"))),
        (OPTIONS, texts("/etc/default/varnish", DEFAULT)),
        (OPTIONS, SCRIPT),
    ],
)
def test_file_with_other_options_is_not_offered(options: tuple[str, ...], files: str) -> None:
    server = discover(*options, files=files)
    assert server.candidates == () and startup(server).read_only_reason == "no file with its options was found"
    assert startup(server).files == ("/etc/varnish/default.vcl",) and startup(server).uncertainty == ""


def test_units_are_changed_in_their_last_drop_in() -> None:
    unit_file = "/etc/systemd/system/varnish.service"
    files = texts(unit_file, UNIT.replace("6081", "80")) + texts(f"{unit_file}.d/10.conf", UNIT.replace("6081", "81"))
    files += texts(f"{unit_file}.d/20.conf", UNIT) + texts(f"{unit_file}.d/30.conf", "[Service]\nLimitNOFILE=9\n")
    server = discover(*UNIT_OPTIONS, files=files, unit="varnish.service")
    knobs = {candidate.name: candidate for candidate in server.candidates}
    assert knobs["default_ttl"].file == f"{unit_file}.d/20.conf"
    assert knobs["default_ttl"].reload == "systemctl daemon-reload"
    assert knobs["storage"].reload == "systemctl daemon-reload && systemctl restart varnish.service"
    files = texts("/lib/systemd/system/varnish.service", UNIT)
    server = discover(*UNIT_OPTIONS, files=files, unit="varnish.service")
    assert server.candidates == () and "systemctl edit --full varnish.service" in startup(server).read_only_reason


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
