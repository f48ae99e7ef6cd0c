"""Varnish: start-up file, parameters, backends. PHP-FPM: masters by their titles, pools and php.ini."""

import pytest

from cockpit.servers import registry
from cockpit.servers.kind import RunningServer
from cockpit.servers.status import NotThePageError
from cockpit.servers.upstreams import upstreams
from tests.data import data_of
from tests.servers.found import running, texts

DATA = data_of(__file__)

DEFAULT = DATA["default"]
UNIT = DATA["unit"]
OPTIONS = ("-a", ":6081", "-T", "localhost:6082", "-f", "/etc/varnish/default.vcl", "-s", "malloc,256m")
SCRIPT = "text\t/etc/init.d/varnish\t#!/bin/sh\n"
UNIT_OPTIONS = ("-j", "unix,user=vcache", "-F", "-a", ":6081", "-f", "/etc/varnish/default.vcl")


def varnish(*options: str, files: str, unit: str = "", directory: str = "/var/lib/varnish/web1") -> RunningServer:
    words = "\t".join(options)
    facts = (
        f"user\troot\nprocess\t9\t1\tvarnishd\t/usr/sbin/varnishd\t{words}\t\n"
        f"process\t10\t9\tcache-main\t/usr/sbin/varnishd\t{words}\t\n"
        f"master\t9\t/usr/sbin/varnishd\t{directory}\tyes\t{unit}\thost\n"
        'listen\t*:6081\tusers:(("cache-main",pid=10,fd=3))\n'
    )
    (server,) = running(facts + files)
    return server


def test_service_script_offers_option_file_and_live_values() -> None:
    server = varnish("-P", "/run/varnishd.pid", *OPTIONS, files=SCRIPT + texts("/etc/default/varnish", DEFAULT))
    knobs = {candidate.name: candidate for candidate in server.candidates}
    ttl, storage = knobs["default_ttl"], knobs["storage"]
    assert server.ports == (6081,) and ttl.file == storage.file == "/etc/default/varnish"
    assert ttl.set.startswith('out=$(varnishadm -n /var/lib/varnish/web1 param.set default_ttl "$1" 2>&1) || ')
    assert ttl.get.startswith("varnishadm -n /var/lib/varnish/web1 param.show default_ttl | ")
    assert (ttl.reload, ttl.cost) == ("", "live")
    assert (storage.get, storage.set, storage.reload) == ("", "", "service varnish stop && service varnish start")
    assert ttl.test.startswith("out=$(/usr/sbin/varnishd -C -f /etc/varnish/default.vcl 2>&1) || ")
    assert server.startup.files == ("/etc/default/varnish", "/etc/varnish/default.vcl")
    assert [page.url for page in server.status] == ["unix:/var/lib/varnish/web1"]


def test_servers_without_vcl_or_directory() -> None:
    files = SCRIPT + texts("/etc/default/varnish", 'DAEMON_OPTS="-a :6081 -b app1:80"\n')
    knobs = varnish("-a", ":6081", "-b", "app1:80", files=files).candidates
    assert knobs and all(
        candidate.test.startswith("out=$(/usr/sbin/varnishd -C -b app1:80 2>&1) || ") for candidate in knobs
    )
    server = varnish(*OPTIONS, files=SCRIPT + texts("/etc/default/varnish", DEFAULT), directory="")
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
    server = varnish(*options, files=files)
    assert server.candidates == () and server.startup.read_only_reason == "no file with its options was found"
    assert server.startup.files == ("/etc/varnish/default.vcl",) and server.startup.uncertainty == ""


def test_units_are_changed_in_their_last_drop_in() -> None:
    unit_file = "/etc/systemd/system/varnish.service"
    files = texts(unit_file, UNIT.replace("6081", "80")) + texts(f"{unit_file}.d/10.conf", UNIT.replace("6081", "81"))
    files += texts(f"{unit_file}.d/20.conf", UNIT) + texts(f"{unit_file}.d/30.conf", "[Service]\nLimitNOFILE=9\n")
    server = varnish(*UNIT_OPTIONS, files=files, unit="varnish.service")
    knobs = {candidate.name: candidate for candidate in server.candidates}
    assert knobs["default_ttl"].file == f"{unit_file}.d/20.conf"
    assert knobs["default_ttl"].reload == "systemctl daemon-reload"
    assert knobs["storage"].reload == "systemctl daemon-reload && systemctl restart varnish.service"
    files = texts("/lib/systemd/system/varnish.service", UNIT)
    server = varnish(*UNIT_OPTIONS, files=files, unit="varnish.service")
    assert server.candidates == () and "systemctl edit --full varnish.service" in server.startup.read_only_reason


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


BUILT = DATA["built"]
TEXTS = DATA["texts"]


def master(pid: int, file: str, unit: str = "") -> str:
    return (
        f"process\t{pid}\t1\tphp-fpm8.2\tphp-fpm: master process ({file})\t\n"
        f"master\t{pid}\t/usr/sbin/php-fpm8.2\t/\tyes\t{unit}\thost\n"
    )


def php_fpm(text: str) -> list[RunningServer]:
    servers = running(f"user\troot\n{text}")
    return [server for server in servers if server.title.startswith("PHP-FPM")]


def test_packaged_master_has_pool_php_ini_and_logs() -> None:
    (server,) = php_fpm(master(9, "/etc/php/8.2/fpm/php-fpm.conf") + BUILT + TEXTS)
    startup = server.startup
    assert startup is not None and startup.files[1:3] == (
        "/etc/php/8.2/fpm/php.ini",
        "/etc/php/8.2/fpm/conf.d/10-opcache.ini",
    )
    assert startup.test == "/usr/sbin/php-fpm8.2 -t -y /etc/php/8.2/fpm/php-fpm.conf"
    assert startup.reload == "service php8.2-fpm reload"
    knobs = {candidate.name: candidate for candidate in server.candidates}
    assert knobs["pm.max_children"].section == "www" and knobs["pm.max_children"].log == "/var/log/php8.2-fpm.log"
    assert knobs["opcache.enable"].file == "/etc/php/8.2/fpm/php.ini"
    assert server.tail == ("tail -n 3 -F /var/log/php8.2-fpm.log", "tail -n 3 -F /var/log/slow")


def test_each_master_has_its_own_pools_and_commands() -> None:
    second = master(20, "/srv/api/fpm.conf") + "process\t21\t20\tphp-fpm8.2\tphp-fpm: pool api\t\n"
    first, other = php_fpm(master(9, "/etc/php/8.2/fpm/php-fpm.conf", "php8.2-fpm.service") + second + BUILT + TEXTS)
    assert first.startup is not None and first.startup.reload == "systemctl reload php8.2-fpm.service"
    assert {candidate.name for candidate in first.candidates if candidate.directive == "pm"} == {"pm-www"}
    assert {candidate.name for candidate in other.candidates} >= {"pm-api", "pm.max_children-api"}
    assert not any(candidate.directive.startswith("opcache") for candidate in other.candidates), (
        "its php.ini is unknown"
    )
    assert other.startup.reload == r"pkill -USR2 -o -x -f -- 'php-fpm: master process \(/srv/api/fpm\.conf\)'"


def test_master_without_known_file_offers_nothing() -> None:
    (server,) = php_fpm("process\t9\t1\tphp-fpm8.2\tphp-fpm: something else\t\n")
    assert server.candidates == () and server.startup is not None and server.startup.file == ""


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("include=/etc/php/8.2/fpm/pool.d/*.conf", "/etc/php/8.2/fpm/pool.d/*.conf"),
        (" include = /srv/a b/*.conf ; the pools\r", "/srv/a b/*.conf"),
        ('include = "/srv/a;b/*.conf";', '"/srv/a;b/*.conf"'),
    ],
)
def test_a_comment_is_no_part_of_an_included_path(line: str, path: str) -> None:
    assert registry.INCLUDES["php-fpm"].findall(line) == [path]


@pytest.mark.parametrize("text", ["[]", "{}", '{"active processes":1e400}', "[" * 9999])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(NotThePageError, match=r"the URL must end in pm\.status_path and \?json"):
        registry.STATUS_PAGES["php-fpm"].parse(text)
