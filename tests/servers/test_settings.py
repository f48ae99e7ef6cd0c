"""Known settings: help line, accepted and refused values."""

from __future__ import annotations

import re

import pytest

from cockpit.model.errors import ChangeRefused
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob
from cockpit.model.live_knobs import LIVE_KNOBS
from cockpit.profiles.writing import Draft, profile_text
from cockpit.servers import registry
from cockpit.servers.inventory import parse_inventory
from cockpit.servers.kind import CandidateKnob, ServerKind
from cockpit.servers.settings import Impact
from cockpit.tuning import plan
from cockpit.tuning.files import HostFile, sha256
from cockpit.tuning.server_discovery import knob_of

# A host with all kinds of servers that have known settings, each in its packaged configuration.
EVERYTHING = parse_inventory(
    """\
user\troot
process\t100\t1\tapache2\t/usr/sbin/apache2\t-k\tstart\t
process\t200\t1\tnginx\tnginx: master process /usr/sbin/nginx\t
process\t300\t1\tsquid\t/usr/sbin/squid\t-sYC\t
process\t400\t1\tjava\t/usr/bin/java\t-Dcatalina.base=/var/lib/tomcat10\torg.apache.catalina.startup.Bootstrap\t
process\t500\t1\thaproxy\t/usr/sbin/haproxy\t-Ws\t
process\t600\t1\tlighttpd\t/usr/sbin/lighttpd\t-D\t-f\t/etc/lighttpd/lighttpd.conf\t
process\t800\t1\tphp-fpm8.2\tphp-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)\t
master\t800\t/usr/sbin/php-fpm8.2\t/\tyes\t\thost
process\t801\t800\tphp-fpm8.2\tphp-fpm: pool www\t
built\t/usr/sbin/php-fpm8.2\tConfiguration File (php.ini) Path => /etc/php/8.2/fpm
built\t/usr/sbin/php-fpm8.2\tLoaded Configuration File => /etc/php/8.2/fpm/php.ini
process\t900\t1\tmariadbd\t/usr/sbin/mariadbd\t--basedir=/usr\t
file\t/etc/mysql/my.cnf
file\t/run/mysqld/mysqld.sock
process\t920\t1\tvarnishd\t/usr/sbin/varnishd\t-a\t:6081\t-P\t/run/varnishd.pid\t
master\t920\t/usr/sbin/varnishd\t/var/lib/varnish/varnishd\tyes\t\thost
text\t/etc/init.d/varnish\t#!/bin/sh
text\t/etc/default/varnish\tDAEMON_OPTS="-a :6081"
process\t940\t1\tcaddy\t/usr/bin/caddy\trun\t--config\t/etc/caddy/Caddyfile\t
listen\t*:8060\tusers:(("caddy",pid=940,fd=6))
process\t950\t1\tgunicorn\t/usr/bin/python3\t/usr/bin/gunicorn\t-c\t/srv/g.py\tapp:app\t
process\t700\t1\thttpd\t/usr/sbin/httpd\t-DFOREGROUND\t
master\t700\t/usr/sbin/httpd\t/\tyes\t\thost
file\t/etc/apache2/mods-enabled/deflate.conf
file\t/etc/default/tomcat10
listen\t*:8080\tusers:(("java",pid=400,fd=40))
text\t/etc/tomcat10/server.xml\t<Server><Service><Connector port="8080"/></Service></Server>
text\t/etc/haproxy/haproxy.cfg\tbackend app
text\t/etc/haproxy/haproxy.cfg\t    balance leastconn
text\t/etc/lighttpd/conf-enabled/20-deflate.conf\tdeflate.mimetypes = ()
built\t/usr/sbin/httpd\tServer MPM:     event
built\t/usr/sbin/httpd\t -D HTTPD_ROOT="/etc/httpd"
built\t/usr/sbin/httpd\t -D SERVER_CONFIG_FILE="conf/httpd.conf"
""",
    registry.FILES,
    registry.TEXTS,
)
WHEN = re.compile(r"; |\b(?:matters|counts|if|when)\b")
TABLES = registry.SETTINGS | {kind.name: kind.settings for kind in LIVE_KNOBS.values()}
EVERY = [(kind, name) for kind, table in TABLES.items() for name in table]


def knob(kind: str, directive: str, **given: str) -> Knob:
    return Knob(name=directive, host="web1", kind=kind, file="/etc/x.conf", directive=directive, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "name"), EVERY, ids=[f"{kind} {name}" for kind, name in EVERY])
def test_each_setting_has_help_line_and_form(kind: str, name: str) -> None:
    setting = TABLES[kind][name]
    assert 10 < len(setting.help) < 120 and "\n" not in setting.help and not setting.help.endswith(".")
    assert WHEN.search(setting.help), "the help line must state when the setting matters, or what a value costs"
    assert not setting.accepts("buffer=no such value")
    assert all(setting.accepts(value) for value in setting.form.choices)
    assert not setting.form.words.endswith(".")


@pytest.mark.parametrize(
    ("kind", "name", "good", "bad"),
    [
        ("nginx", "worker_processes", ("auto", "4"), ("0", "-1", "many", "1.5")),
        (
            "nginx",
            "keepalive_timeout",
            ("65", "65s", "1h 30m", "1m30s", "75s 60s"),
            ("abc", "65q", "", "s"),
        ),
        ("nginx", "open_file_cache", ("off", "max=1000 inactive=20s"), ("on", "max=many", "1000")),
        ("nginx", "access_log", ("off", "/var/log/a.log combined buffer=32k flush=5s"), ("/var/log/a.log buffer=big",)),
        ("apache", "keepalive", ("On", "off"), ("1", "yes")),
        ("apache", "keepalivetimeout", ("5", "500ms"), ("5 5x", "soon")),
        ("apache", "allowoverride", ("None", "AuthConfig Indexes", "Options=Indexes"), ("On",)),
        ("apache", "deflatecompressionlevel", ("1", "9"), ("0", "10")),
        ("apache", "maxrequestworkers", ("150",), ("0", "1e3", "99999999999999999999", "${WORKERS}")),
        ("haproxy", "timeout client", ("50000", "30s", "500ms", "100us"), ("soon", "30 sec")),
        ("haproxy", "option http-keep-alive", ("on", "off"), ("yes", "http-keep-alive")),
        ("haproxy", "balance", ("roundrobin", "hdr(host)", "uri depth 2"), ("fastest",)),
        ("lighttpd", "server.event-handler", ("linux-sysepoll",), ("kqueues",)),
        ("mariadb", "innodb_buffer_pool_size", ("128M", "1g", "64"), ("1.5M", "1 M", "M", "1X", "")),
        ("caddy", "encode", ("gzip", "zstd gzip", "@text gzip", "/static/* zstd"), ("off", "deflate", "gzip,zstd", "")),
        ("caddy", "protocols", ("h1", "h1 h2 h3"), ("h4", "h1 h1", "")),
        ("caddy", "idle", ("30s", "1m30s", "1.5h", "0", "1d"), ("30", "soon", "-5s", "5 s")),
        ("caddy", "max_header_size", ("16KB", "1MiB", "8192", "1.5mb"), ("big", "16 KB", "-1")),
        ("caddy", "keepalive", ("off", "2m"), ("on", "30")),
        ("apache", "listen", ("80", "192.0.2.1:8080", "[2001:db8::1]:443 https"), ("http", "192.0.2.1", ":", "80:x")),
        ("apache", "sendbuffersize", ("0", "65536"), ("100", "64K")),
        ("nginx", "proxy_cache", ("off", "zone-1"), ("zone 1", "")),
        ("lighttpd", "server.bind", ("127.0.0.1", "/run/lighttpd.sock", "[::]"), ("a b", "")),
        ("lighttpd", "server.username", ("www-data",), ("33", "a/b")),
        ("lighttpd", "server.chroot", ("/srv",), ("srv",)),
        (
            "keyvalue",
            "java_opts",
            ("-Xmx512m -Xss1M", '-Dname="a b" $MORE', "-Xmx${HEAP} @file", ""),
            ("-Xmx512mb", "-Xmx", "Xmx512m", '-Dname="a'),
        ),
        ("squid", "cache_mem", ("256 MB", "1 GB", "1048576"), ("256 TBs", "much")),
        ("squid", "cache_replacement_policy", ("lru", "heap GDSF"), ("heap", "fifo")),
        ("squid", "cache_dir", ("rock /var/spool/squid 300", "ufs /x 100 16 256"), ("/var/spool/squid",)),
    ],
)
def test_values_are_checked_by_form(kind: str, name: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    setting = registry.SETTINGS[kind][name]
    assert [value for value in good if not setting.accepts(value)] == []
    assert [value for value in bad if setting.accepts(value)] == []


def test_value_of_wrong_form_is_refused_in_planning() -> None:
    data = b"events {}\nhttp { keepalive_timeout 65; }\n"
    timeout = knob("nginx", "keepalive_timeout", section="http {")
    found = plan.CurrentValues({timeout.file: HostFile("web1", timeout.file, timeout.file, data, sha256(data))}, {})
    with pytest.raises(ChangeRefused) as refused:
        plan.forward("web1", found, [(timeout, "abc")])
    assert str(refused.value) == "keepalive_timeout takes a time such as 65s, not 'abc'"
    assert plan.forward("web1", found, [(timeout, "30s")]).replacements
    assert plan.forward("web1", found, [(timeout, None)]).replacements


@pytest.mark.parametrize(
    ("kind", "name", "variable", "others"),
    [
        ("nginx", "keepalive_timeout", "$timeout", ("$", "a$b", "5$", "${a", "$a $b")),
        ("nginx", "keepalive_timeout", "${timeout}", ()),
        ("apache", "MaxRequestWorkers", "${WORKERS}", ("$WORKERS", "${WORKERS}0")),
        ("php-fpm", "pm.max_children", "${CHILDREN}", ("$CHILDREN", "${}")),
        ("php-fpm", "pm.max_children", "${CHILDREN:-5}", ()),
        ("haproxy", "maxconn", "", ("$MAX", "${MAX}")),
        ("lighttpd", "server.max-connections", "", ("$MAX", "${MAX}")),
        ("squid", "cache_mem", "", ("$MEM", "${MEM}")),
        ("caddy", "encode", "{$ENCODINGS}", ("{$A B}", "{env.ENCODINGS}", "{$A", "$A")),
        ("caddy", "idle", "{$IDLE:5m}", ("{$IDLE:5m 6m}",)),
        ("mariadb", "max_connections", "", ("$MAX", "${MAX}")),
        ("gunicorn", "workers", "", ("$N", "${N}")),
    ],
)
def test_only_variables_of_grammar_skip_form_check(
    kind: str, name: str, variable: str, others: tuple[str, ...]
) -> None:
    tested_knob = knob(kind, name)
    assert variable == "" or tested_knob.format_error(variable) == ""
    assert all(tested_knob.format_error(value) for value in others)


def test_unknown_settings_are_not_checked() -> None:
    unknown = knob("nginx", "client_max_body_size")
    assert unknown.known is None and unknown.format_error("anything") == "" and unknown.help == ""


def test_startup_setting_needs_restart() -> None:
    assert knob("apache", "ServerLimit", reload="apachectl graceful").needs_restart
    assert not knob("apache", "ServerLimit", reload="service apache2 restart").needs_restart
    assert not knob("apache", "MaxRequestWorkers", reload="apachectl graceful").needs_restart
    assert registry.SETTINGS["lighttpd"]["server.port"].impact is Impact.RESTART


def test_secret_value_is_not_quoted() -> None:
    hidden = Knob(name="x", host="web1", kind="nginx", file="/x", directive="gzip", secret=True)
    assert hidden.format_error("hunter2") == "gzip takes on or off, not '(secret)'"


def test_draft_has_choices_and_help_line() -> None:
    offered = knob_of(CandidateKnob("gzip", "nginx", "/nginx.conf", directive="gzip", test="t", reload="r"), "web1")
    assert offered.values == ("on", "off")
    dotted = knob("lighttpd", "server.max-connections", test="t", reload="r")
    hosts = (HostConfig(name="web1"),)
    text = profile_text(Draft(url="http://web1/", hosts=hosts, knobs=(offered, dotted)))
    assert f"\n# {offered.help}\n[[knob]]\n" in text and 'name = "server.max-connections"' in text


@pytest.mark.parametrize("kind", [kind for kind in registry.KINDS if kind.settings], ids=lambda kind: kind.name)
def test_every_candidate_is_known_setting(kind: ServerKind) -> None:
    candidates = [candidate for server in kind.discover(EVERYTHING) for candidate in server.candidates]
    assert candidates
    settings = [candidate for candidate in candidates if not candidate.option]
    assert [candidate.name for candidate in settings if knob_of(candidate, "web1").known is None] == []
