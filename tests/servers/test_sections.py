"""Candidates in the sections of a configuration."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, RunningServer
from cockpit.servers.sections import in_sections
from cockpit.servers.startup import Startup
from tests.servers.found import parsed

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
    """The candidates in the sections of a server that has one other candidate."""
    like = CandidateKnob("x", kind, "/x", directive="x", test="t", reload="r", log="l", usual=True)
    process = Process(1, 0, kind, (kind,))
    server = RunningServer(kind, kind, 1, (80,), (like,), (), (), process, Startup(kind, ("/x",), ""))
    return {candidate.name: candidate for candidate in in_sections(server, texts)}


def names_and_sections(kind: str, texts: dict[str, str]) -> set[tuple[str, str | None]]:
    found = offered(kind, texts)
    assert all(
        (candidate.test, candidate.reload, candidate.log, candidate.usual) == ("t", "r", "l", False)
        for candidate in found.values()
    )
    for candidate in found.values():
        registry.GRAMMARS[kind].read(texts[candidate.file].encode(), candidate.directive, candidate.section)
    return {(candidate.name, candidate.section) for candidate in found.values()}


def test_nginx_upstreams_caches_and_servers_are_offered() -> None:
    assert names_and_sections("nginx", NGINX) == {
        ("keepalive-app", "http { upstream app {"),
        ("keepalive_timeout-server", "http { server {"),
        ("proxy_cache-http", "http {"),
        ("gzip-server", "server {"),
        ("keepalive-other", "upstream other {"),
    }
    found = offered("nginx", NGINX)
    assert found["proxy_cache-http"].values == ("off", "disk", "tmpfs")
    assert found["keepalive-other"].file == "/etc/nginx/conf.d/b.conf"
    file = "/etc/nginx/nginx.conf"
    inner = {file: NGINX[file].replace("return 204;", "proxy_cache off;")}
    assert offered("nginx", inner)["proxy_cache-location"].section == "http { server { location / {"
    assert "proxy_cache-http" not in offered("nginx", inner)
    none = {file: "http {\n    sendfile on;\n}\n"}
    assert names_and_sections("nginx", none) == {("sendfile-http", "http {")}


def test_sections_of_haproxy_apache_and_lighttpd_are_offered() -> None:
    assert names_and_sections("haproxy", HAPROXY) == {
        ("timeout-client-web", "defaults web"),
        ("maxconn-shop", "frontend shop"),
        ("option-http-server-close-shop", "frontend shop"),
        ("balance-app", "backend app"),
    }
    assert names_and_sections("apache", APACHE) == {
        ("AllowOverride-Directory", "Directory /"),
        ("KeepAliveTimeout-80", "VirtualHost *:80"),
    }
    assert names_and_sections("lighttpd", LIGHTTPD) == {("server.max-keep-alive-idle-a", '$HTTP["host"] == "a" {')}
    text = "".join(f"frontend f{number}\n" for number in range(5000))
    assert len(offered("haproxy", {"/x": text})) == 100
    server = RunningServer("nginx", "nginx", 1, (), ())
    assert in_sections(server, NGINX) == ()


@pytest.mark.parametrize("text", ["http {", "}", "", "http { upstream a {", "\0", "{ {", "{ gzip on; }"])
def test_unreadable_text_offers_nothing(text: str) -> None:
    assert offered("nginx", {"/x": text}) == {}


APACHE_HOST = """\
user\troot
process\t100\t1\tapache2\t/usr/sbin/apache2\t-k\tstart\t
file\t/etc/apache2/mods-enabled/mpm_event.load
text\t/etc/apache2/mods-available/cache_disk.conf\t  CacheEnable disk /img/
text\t/etc/apache2/mods-available/cache_socache.conf\t#CacheEnable socache /
"""


def apache_options(inventory: Inventory) -> dict[str, list[str]]:
    (server,) = registry.running_servers(inventory)
    return {
        candidate.name: [option.name for option in candidate.option]
        for candidate in server.candidates
        if candidate.option
    }


def test_apache_modules_on_debian_are_choices() -> None:
    modules = {"MPM": ["prefork", "worker", "event"], "mod_deflate": ["on", "off"]}
    assert apache_options(parsed(APACHE_HOST)) == modules | {"mod_cache": ["disk", "none"]}
    assert apache_options(parsed(APACHE_HOST.replace("  CacheEnable", "#CacheEnable"))) == modules
