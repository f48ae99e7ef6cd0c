"""Candidates in the sections of a configuration."""

import tomllib
from pathlib import Path

import pytest

from cockpit.servers import registry
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, RunningServer
from cockpit.servers.sections import in_sections
from cockpit.servers.startup import Startup
from tests.servers.found import parsed

TABLE = tomllib.loads(Path(__file__).with_name("sections.toml").read_text())
NGINX = TABLE["nginx"]["texts"]


def offered(kind: str, texts: dict[str, str]) -> dict[str, CandidateKnob]:
    """The candidates in the sections of a server that has one other candidate."""
    like = CandidateKnob("x", kind, "/x", directive="x", test="t", reload="r", log="l", usual=True)
    process = Process(1, 0, kind, (kind,))
    server = RunningServer(kind, kind, 1, (80,), (like,), (), (), process, Startup(kind, ("/x",), ""))
    return {candidate.name: candidate for candidate in in_sections(server, texts)}


@pytest.mark.parametrize("kind", TABLE)
def test_settings_in_sections_are_offered(kind: str) -> None:
    texts = TABLE[kind]["texts"]
    found = offered(kind, texts).values()
    assert sorted([one.name, one.section] for one in found) == sorted(TABLE[kind]["offered"])
    assert {(one.test, one.reload, one.log, one.usual) for one in found} == {("t", "r", "l", False)}
    for one in found:
        registry.GRAMMARS[kind].read(texts[one.file].encode(), one.directive, one.section)


def test_caches_of_nginx_are_choices() -> None:
    found = offered("nginx", NGINX)
    assert found["proxy_cache-http"].values == ("off", "disk", "tmpfs")
    assert found["keepalive-other"].file == "/etc/nginx/conf.d/b.conf"
    file = "/etc/nginx/nginx.conf"
    inner = {file: NGINX[file].replace("return 204;", "proxy_cache off;")}
    assert offered("nginx", inner)["proxy_cache-location"].section == "http { server { location / {"
    assert "proxy_cache-http" not in offered("nginx", inner)
    assert set(offered("nginx", {file: "http {\n    sendfile on;\n}\n"})) == {"sendfile-http"}


def test_number_of_candidates_is_limited() -> None:
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


def test_http2_of_apache_is_offered_with_its_module() -> None:
    def directives(text: str) -> set[str]:
        (server,) = registry.running_servers(parsed(text))
        return {candidate.directive for candidate in server.candidates if candidate.directive.startswith(("H2", "Pro"))}

    every = {"Protocols", "H2MaxSessionStreams", "H2MinWorkers", "H2MaxWorkers"}
    assert directives(APACHE_HOST) == set()
    assert directives(f"{APACHE_HOST}file\t/etc/apache2/mods-enabled/http2.conf\n") == every
    master = "master\t1\t/usr/sbin/apache2\t/\tyes\t\thost\n"
    own = f"user\troot\nprocess\t1\t0\tapache2\tapache2\t-f\t/srv/own.conf\t\n{master}"
    assert directives(own) == set()
    assert directives(f"{own}fact\t1\tlibrary\tmod_mpm_event mod_http2\n") == every


def test_apache_modules_on_debian_are_choices() -> None:
    modules = {"MPM": ["prefork", "worker", "event"], "mod_deflate": ["on", "off"], "mod_http2": ["on", "off"]}
    assert apache_options(parsed(APACHE_HOST)) == modules | {"mod_cache": ["disk", "none"]}
    assert apache_options(parsed(APACHE_HOST.replace("  CacheEnable", "#CacheEnable"))) == modules
