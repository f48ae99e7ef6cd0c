"""Settings that are offered in the sections of a configuration."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, RunningServer
from cockpit.servers.sections import in_sections
from cockpit.servers.startup import Startup
from tests.servers.test_discovery import parsed

NGINX = {
    "/etc/nginx/nginx.conf": """\
http {
    proxy_cache_path /var/cache/nginx levels=1:2 keys_zone=disk:16m;
    proxy_cache_path /run/cache keys_zone=tmpfs:1m;
    upstream app { server 127.0.0.1:9000; }
    server { keepalive_timeout 9; location / { return 204; } }
}
""",
    "/etc/nginx/conf.d/b.conf": "server {\n    gzip on;\n}\nupstream other {\n    keepalive 8;\n}\n",
}
HAPROXY = {
    "/srv/h.cfg": """\
defaults web
    timeout client 5s
frontend shop
    bind :80
    option http-server-close
backend app
    .if feature(OPENSSL)
    retries 3
    .endif
    server one 127.0.0.1:1
"""
}
APACHE = {
    "/etc/apache2/apache2.conf": """\
Timeout 300
<Directory />
    AllowOverride None
</Directory>
<VirtualHost *:80>
    KeepAliveTimeout 3
    <IfModule mod_x.c>
        Timeout 3
    </IfModule>
</VirtualHost>
<Macro Host $name>
    <Directory /srv>
        AllowOverride All
    </Directory>
</Macro>
"""
}
LIGHTTPD = {"/etc/lighttpd/lighttpd.conf": '$HTTP["host"] == "a" {\n    server.max-keep-alive-idle = 3\n}\n'}


def offered(kind: str, texts: dict[str, str]) -> dict[str, CandidateKnob]:
    """The candidates of a server of which one setting is offered already."""
    like = CandidateKnob("x", kind, "/x", directive="x", test="t", reload="r", log="l", usual=True)
    process = Process(1, 0, kind, (kind,))
    server = RunningServer(kind, kind, 1, (80,), (like,), (), (), process, Startup(kind, ("/x",), ""))
    return {one.name: one for one in in_sections(server, texts)}


def places(kind: str, texts: dict[str, str]) -> set[tuple[str, str | None]]:
    found = offered(kind, texts)
    assert all((one.test, one.reload, one.log, one.usual) == ("t", "r", "l", False) for one in found.values())
    for one in found.values():
        registry.GRAMMARS[kind].read(texts[one.file].encode(), one.directive, one.section)
    return {(one.name, one.section) for one in found.values()}


def test_upstreams_caches_and_servers_of_nginx() -> None:
    assert places("nginx", NGINX) == {
        ("keepalive-app", "http { upstream app {"),
        ("keepalive_timeout-server", "http { server {"),
        ("proxy_cache-http", "http {"),
        ("gzip-server", "server {"),
        ("keepalive-other", "upstream other {"),
    }
    found = offered("nginx", NGINX)
    assert found["proxy_cache-http"].values == ("off", "disk", "tmpfs")
    assert found["keepalive-other"].file == "/etc/nginx/conf.d/b.conf"


def test_a_cache_is_offered_where_it_is_set_and_only_if_there_is_one() -> None:
    file = "/etc/nginx/nginx.conf"
    inner = {file: NGINX[file].replace("return 204;", "proxy_cache off;")}
    assert offered("nginx", inner)["proxy_cache-location"].section == "http { server { location / {"
    assert "proxy_cache-http" not in offered("nginx", inner)
    none = {file: "http {\n    sendfile on;\n}\n"}
    assert places("nginx", none) == {("sendfile-http", "http {")}


def test_frontends_and_backends_of_haproxy() -> None:
    assert places("haproxy", HAPROXY) == {
        ("timeout-client-web", "defaults web"),
        ("maxconn-shop", "frontend shop"),
        ("option-http-server-close-shop", "frontend shop"),
        ("balance-app", "backend app"),
    }


def test_directories_and_hosts_of_apache_and_conditions_of_lighttpd() -> None:
    assert places("apache", APACHE) == {
        ("AllowOverride-Directory", "Directory /"),
        ("KeepAliveTimeout-80", "VirtualHost *:80"),
    }
    assert places("lighttpd", LIGHTTPD) == {("server.max-keep-alive-idle-a", '$HTTP["host"] == "a" {')}


@pytest.mark.parametrize("text", ["http {", "}", "", "http { upstream a {", "\0", "{ {", "{ gzip on; }"])
def test_a_text_that_cannot_be_read_offers_nothing(text: str) -> None:
    assert offered("nginx", {"/x": text}) == {}


def test_of_thousands_of_sections_the_first_are_offered() -> None:
    text = "".join(f"frontend f{number}\n" for number in range(5000))
    assert len(offered("haproxy", {"/x": text})) == 100


def test_nothing_is_offered_of_a_server_without_other_knobs() -> None:
    server = RunningServer("nginx", "nginx", 1, (), ())
    assert in_sections(server, NGINX) == ()


APACHE_HOST = """\
user\troot
process\t100\t1\tapache2\t/usr/sbin/apache2\t-k\tstart\t
file\t/etc/apache2/mods-enabled/mpm_event.load
text\t/etc/apache2/mods-available/cache_disk.conf\t  CacheEnable disk /img/
text\t/etc/apache2/mods-available/cache_socache.conf\t#CacheEnable socache /
"""


def apache_options(inventory: Inventory) -> dict[str, list[str]]:
    (server,) = registry.running_servers(inventory)
    return {one.name: [option.name for option in one.option] for one in server.candidates if one.option}


def test_modules_of_debians_apache_are_choices() -> None:
    modules = {"MPM": ["prefork", "worker", "event"], "mod_deflate": ["on", "off"]}
    assert apache_options(parsed(APACHE_HOST)) == modules | {"mod_cache": ["disk", "none"]}
    assert apache_options(parsed(APACHE_HOST.replace("  CacheEnable", "#CacheEnable"))) == modules
