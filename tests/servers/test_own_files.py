"""Constructs of people's own files: conditions, old names, later versions, computed values."""

import pytest

from cockpit.servers.editing import ConfigError
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.registry import GRAMMARS, instances
from tests.data import data_of

DATA = data_of(__file__)

HAPROXY_3 = b"global\n  nbthread 2\n  log-tag main\n\nlog-profile p1\n  log-tag prof\n\ndefaults\n  mode http\n"
UNKNOWN = HAPROXY_3.replace(b"log-profile", b"section-of-5.0")
GLOBALS = b"global\n  nbthread 2\n  maxconn 100\nglobal\n  nbthread 3\n  maxconn 300\ndefaults\n  maxconn 7\n"
PHP_INI = b"[PHP]\nmemory_limit = 1M\n[Session]\nmemory_limit = 3M\nx = 'a\nmemory_limit = 5M\n'\n[PATH=/srv]\n"
LIGHTTPD = b'$HTTP["host"] == "a" {\n  global {\n    server.port =  # c\n    2\n  }\n}\n'
UNIT = DATA["unit"].encode()
PREFORK = b"<IfModule mpm_prefork_module>\n  MaxRequestWorkers 20\n  MaxClients 10\n</IfModule>\n"
SERVERS = b"""http {
  server { listen 80; server_name a www.a; return 301 /; }
  server { listen 443 ssl; server_name a; keepalive_timeout 2; location / { gzip on; } }
  server { listen [::]:80; keepalive_timeout 3; }
}
"""
HOSTS = DATA["hosts"].encode()
TOMCAT = b"""<?xml version="1.0" encoding="ISO-8859-1"?>
<Server><Service><Connector port="8080" maxThreads="150"/></Service></Server>
"""


@pytest.mark.parametrize(
    ("kind", "text", "name", "section", "shown", "changed"),
    [
        ("apache", PREFORK, "MaxRequestWorkers", None, "10", PREFORK.replace(b"10", b"4")),
        ("apache", b"MaxRequestsPerChild 5\n", "MaxConnectionsPerChild", None, "5", b"MaxRequestsPerChild 4\n"),
        ("haproxy", HAPROXY_3, "maxconn", "global", None, HAPROXY_3.replace(b"main\n", b"main\n  maxconn 4\n")),
        ("haproxy", UNKNOWN, "log-tag", "global", "main", UNKNOWN.replace(b"main", b"4")),
        (
            "haproxy",
            b"defaults\n  mode http\ntimeout client 5s\n",
            "timeout client",
            "defaults",
            "5s",
            b"defaults\n  mode http\ntimeout client 4\n",
        ),
        ("haproxy", b"global\nmaxconn 5\nnbthread 2\n", "nbthread", "global", "2", b"global\nmaxconn 5\nnbthread 4\n"),
        ("haproxy", GLOBALS, "maxconn", "global", "100", GLOBALS.replace(b"100", b"4")),
        ("gunicorn", b"workers = cpu_count() * 2 + 1\n", "workers", None, "cpu_count() * 2 + 1", b"workers = 4\n"),
        (
            *("nginx", SERVERS, "keepalive_timeout", "http { server[server_name=a][listen=443] {", "2"),
            SERVERS.replace(b"out 2", b"out 4"),
        ),
        (
            *("nginx", SERVERS, "keepalive_timeout", "http { server[listen=[::]:80] {", "3"),
            SERVERS.replace(b"3;", b"4;"),
        ),
        ("apache", HOSTS, "Timeout", "VirtualHost *:80 (ServerName a)", "2", HOSTS.replace(b"2", b"4")),
        ("apache", HOSTS, "Timeout", "virtualhost *:80 (servername www.b)", "3", HOSTS.replace(b"3", b"4")),
        ("tomcat", TOMCAT, "maxThreads", "Connector 8080", "150", TOMCAT.replace(b"150", b"4")),
        ("haproxy", GLOBALS, "nbthread", "global", "3", GLOBALS.replace(b"nbthread 3", b"nbthread 4")),
        ("php-fpm", PHP_INI, "memory_limit", None, "3M", PHP_INI.replace(b"3M", b"4")),
        ("lighttpd", LIGHTTPD, "server.port", None, "2", LIGHTTPD.replace(b"2", b"4")),
        ("systemd", UNIT, "--workers", None, "3", UNIT.replace(b"3", b"4")),
        ("systemd", UNIT, "NN", None, "7", UNIT.replace(b"7", b"4")),
        ("systemd", UNIT, "Nice", None, "8", UNIT.replace(b"8", b"4")),
        ("keyvalue", b"; N=1\nA=a b\nB='it'\nC=it's\nN=5\n", "N", None, "5", b"; N=1\nA=a b\nB='it'\nC=it's\nN=4\n"),
        ("keyvalue", b"GREETING=it's\nN=5\n", "N", None, "5", b"GREETING=it's\nN=4\n"),
    ],
)
def test_the_value_that_the_program_uses_is_read_and_changed(
    kind: str, text: bytes, name: str, section: str | None, shown: str | None, changed: bytes
) -> None:
    grammar = GRAMMARS[kind]
    found = grammar.read(text, name, section)
    assert found.value == shown
    assert grammar.change(text, name, grammar.encode_in(text, name, section, "4", found.raw), section) == changed
    if found.raw is not None:
        assert grammar.change(changed, name, found.raw, section) == text


@pytest.mark.parametrize(
    ("kind", "text", "name", "reason"),
    [
        (
            "apache",
            b"KeepAlive On\n<IfModule a.c>\nKeepAlive Off\n</IfModule>\n",
            "KeepAlive",
            "lines 1 and 3",
        ),
        ("apache", b"MaxRequestWorkers 2\n<IfDefine A>\nMaxClients 1\n</IfDefine>\n", "MaxClients", "lines 1 and 3"),
        ("php-fpm", b"[PATH=/a]\n[PHP]\nmemory_limit = 1M\n", "memory_limit", "line 3: .*some requests only"),
        ("keyvalue", b"N=1\nif [ -n x ]; then\n  N=2\nfi\n", "N", "line 3: .*depends on a condition"),
        ("keyvalue", b"N=1\ntest -n x && N=2\n", "N", "line 2: .*depends on a condition"),
        ("keyvalue", b"N=1\nunset N\n", "N", "line 2: .*depends on a condition or a command"),
        ("keyvalue", b"N=1\n: ${N:=2}\n", "N", "line 2: .*depends on a condition or a command"),
        ("keyvalue", b"# c \\\nN=1\n", "N", "line 2: .*systemd before 254"),
        ("keyvalue", b"A=it's\nN=1\nB=it's\n", "N", "line 1: only a shell"),
        ("gunicorn", b"N = 1\nfor N in (2, 3):\n    pass\n", "N", "line 2: .*another statement"),
        ("gunicorn", b"import os as N\n", "N", "line 1: .*another statement"),
        ("squid", b"workers 2\nif ${process_number} = 1\ncache_mem 8 MB\nendif\n", "cache_mem", "line 3: .*an if"),
        ("tomcat", TOMCAT.replace(b"?>", "?><!-- é -->".encode()), "maxThreads", "encoding is ISO-8859-1"),
    ],
)
def test_a_value_that_a_condition_decides_is_refused_with_its_line(
    kind: str, text: bytes, name: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        GRAMMARS[kind].read(text, name, None)


@pytest.mark.parametrize(
    ("kind", "text", "section", "names", "sections"),
    [
        (
            *("nginx", SERVERS, "http { server {", {"keepalive_timeout", "gzip"}),
            {
                "http {": set(),
                "http { server[server_name=a][listen=80] {": set(),
                "http { server[server_name=a][listen=443] {": {"keepalive_timeout"},
                "http { server[server_name=a][listen=443] { location / {": {"gzip"},
                "http { server[listen=[::]:80] {": {"keepalive_timeout"},
            },
        ),
        (
            *("apache", HOSTS, "VirtualHost *:80", {"Timeout"}),
            {"VirtualHost *:80 (ServerName a)": {"Timeout"}, "VirtualHost *:80 (ServerName b)": {"Timeout"}},
        ),
    ],
)
def test_blocks_of_one_name_are_offered_by_what_makes_them_different(
    kind: str, text: bytes, section: str, names: set[str], sections: dict[str, set[str]]
) -> None:
    assert GRAMMARS[kind].sections_of(text, names) == sections
    with pytest.raises(ConfigError, match="cannot tell which; set section in the knob"):
        GRAMMARS[kind].read(text, next(iter(names)), section)
    for offered in sections:
        GRAMMARS[kind].read(text, next(iter(names)), offered)


@pytest.mark.parametrize(
    ("loaded", "section", "unmet"),
    [
        ("mod_mpm_event mod_deflate", None, "<IfModule mpm_prefork_module> is false"),
        ("mod_deflate mod_mpm_prefork", None, ""),
        ("", None, "<IfModule mpm_prefork_module> cannot be decided"),
        ("mod_mpm_event", "IfModule mpm_prefork_module", "<IfModule mpm_prefork_module> is false"),
        ("mod_mpm_event", "IFMODULE !event.c", "<IFMODULE !event.c> is false"),
        ("mod_mpm_worker", "IFMODULE !event.c", ""),
        ("mod_mpm_event mod_deflate", "IfModule mod_deflate.c", ""),
        ("mod_mpm_event mod_deflate", "IfModule !deflate_module", "<IfModule !deflate_module> is false"),
        ("mod_mpm_event", "IfModule mod_deflate.c", "<IfModule mod_deflate.c> cannot be decided"),
        ("", "IfDefine TUNED", ""),
        ("", "IfDefine OTHER", "<IfDefine OTHER> cannot be decided"),
    ],
)
def test_the_running_server_decides_conditions(loaded: str, section: str | None, unmet: str) -> None:
    command = ("apache2", "-D", "TUNED")
    facts = (("library", loaded),)
    [one] = instances(Inventory(processes=(Process(7, 1, "apache2", command, "/usr/sbin/apache2", facts=facts),)))
    headers = (
        "IFMODULE !event.c",
        "IfModule mod_deflate.c",
        "IfModule !deflate_module",
        "IfDefine TUNED",
        "IfDefine OTHER",
    )
    blocks = (f"<{header}>\n</{header.split()[0]}>\n" for header in headers)
    text = PREFORK + "".join(blocks).encode()
    conditions = GRAMMARS["apache"].conditions_of(text, "MaxRequestWorkers", section)
    assert one.startup.unmet(conditions) == unmet
