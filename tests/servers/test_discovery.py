"""Discovery: servers in the inventory of a host, and the candidates offered for each."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.apache import MODULES
from cockpit.servers.inventory import Inventory, Listener, Process
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import instances, running_servers
from cockpit.tuning.server_discovery import server_on_port, servers_on_port
from tests.servers.found import parsed, running, texts

DEBIAN = f"""\
user\troot
process\t100\t1\tapache2\t/usr/sbin/apache2\t-k\tstart\t
process\t101\t100\tapache2\t/usr/sbin/apache2\t-k\tstart\t
process\t200\t1\tnginx\tnginx: master process /usr/sbin/nginx\t
process\t300\t1\tsquid\t/usr/sbin/squid\t-sYC\t
process\t400\t1\tjava\t/usr/bin/java\t-Dcatalina.base=/var/lib/tomcat10\torg.apache.catalina.startup.Bootstrap\t
process\t500\t1\tjava\t/usr/bin/java\t-jar\tother.jar\t
listen\t0.0.0.0:80\tusers:(("apache2",pid=101,fd=4),("apache2",pid=100,fd=4))
listen\t[::]:8080\tusers:(("java",pid=400,fd=40))
listen\t*:81\tusers:(("nginx",pid=200,fd=6))
listen\t127.0.0.1:22\t
file\t{MODULES}/mpm_prefork.load
file\t{MODULES}/status.load
file\t/var/log/apache2/error.log
file\t/etc/default/tomcat10
file\t/etc/shadow
nonsense
"""


def discover(text: str = DEBIAN) -> dict[str, RunningServer]:
    return {server.title: server for server in running(text)}


def test_servers_of_debian_host_are_discovered() -> None:
    servers = discover()
    assert set(servers) == {"Apache (prefork)", "nginx", "squid", "Tomcat10"}
    apache = servers["Apache (prefork)"]
    assert (apache.pattern, apache.processes, apache.ports) == ("apache2", 2, (80,))
    assert apache.tail == ("tail -n 3 -F /var/log/apache2/error.log",)
    assert apache.status[0].url == "http://localhost/server-status?auto"
    knob = apache.candidates[1]
    assert (knob.name, knob.file) == ("MaxSpareServers", "/etc/apache2/mods-available/mpm_prefork.conf")
    assert (knob.test, knob.reload) == ("apachectl -t", "apachectl graceful")
    assert servers["nginx"].ports == (81,)
    assert {candidate.section for candidate in servers["nginx"].candidates} == {None, "events {", "http {"}
    (java,) = servers["Tomcat10"].candidates
    assert (java.kind, java.key, java.reload) == ("keyvalue", "JAVA_OPTS", "service tomcat10 restart")
    assert servers["squid"].status[0].url == "http://localhost:3128/squid-internal-mgr/counters"


@pytest.mark.parametrize("separator", [*"\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"])
def test_a_command_line_cannot_state_facts_about_another_process(separator: str) -> None:
    """Any user of a host chooses the command lines of his processes."""
    forged = "master\t9\t/tmp/own\t/tmp\tyes\tnginx.service\thost"
    text = (
        "process\t9\t1\tnginx\t/tmp/own\t\nmaster\t9\t/tmp/own\t/tmp\tyes\t\tuser\n"
        f"process\t10\t1\tnginx\tx{separator}{forged}\t\n"
    )
    own, _ = parsed(text).processes
    assert (own.origin, own.unit) == ("user", "")


@pytest.mark.parametrize("pattern", registry.PROCESSES)
@pytest.mark.parametrize("has_name", [True, False], ids=["no-options", "no-command-line"])
def test_a_process_without_options_or_command_line_is_no_error(pattern: str, has_name: bool) -> None:
    """A packaged mariadbd has no options; a zombie has no command line."""
    name = pattern.replace("*", "8.2")
    process = Process(9, 1, name, (f"/usr/sbin/{name}",) if has_name else ())
    inventory = Inventory("root", (process,), (Listener(name, 9, 80),))
    assert len(running_servers(inventory)) <= 1 and len(instances(inventory)) <= 1


def test_mpm_and_error_log_of_candidates() -> None:
    apache = discover(DEBIAN.replace("mpm_prefork", "mpm_event"))["Apache (event)"]
    names = [candidate.name for candidate in apache.candidates]
    assert "MinSpareThreads" in names and "MinSpareServers" not in names
    assert apache.candidates[0].file.endswith("mpm_event.conf")
    log = "/var/log/nginx/error.log"
    offered = discover(f"{DEBIAN}file\t{log}\n")["nginx"].candidates
    assert {candidate.log for candidate in offered} == {log}
    assert {candidate.log for candidate in discover()["nginx"].candidates} == {""}


def test_server_on_target_port_is_found() -> None:
    servers = list(discover().values())
    assert server_on_port(servers, 8080) is discover()["Tomcat10"] or server_on_port(servers, 8080).title == "Tomcat10"  # type: ignore[union-attr]
    assert server_on_port(servers, 9999) is None
    assert server_on_port(servers[:1], 9999) is servers[0]
    assert server_on_port([], 80) is None
    inventory = parsed(DEBIAN + 'listen\t0.0.0.0:18931\tusers:(("python3",pid=9,fd=4))\n')
    assert [server.title for server in servers_on_port(inventory, servers, 81)] == ["nginx"]
    assert servers_on_port(inventory, servers, 18931) == [], "another program listens there"
    assert [server.title for server in servers_on_port(inventory, servers, 9999)] == ["squid"], (
        "the server with unknown port"
    )


def test_each_tomcat_has_its_own_directory() -> None:
    text = (
        "process\t5\t1\tjava\t/usr/bin/java\t-Dcatalina.base=/var/lib/tomcat10\t\n"
        "process\t6\t1\tjava\t/usr/bin/java\t-Dcatalina.base=/srv/shop\t\nfile\t/etc/default/tomcat10\n"
        'listen\t*:8080\tusers:(("java",pid=5,fd=40))\nlisten\t*:8081\tusers:(("java",pid=6,fd=40))\n'
    )
    packaged, other = running(text)
    assert (packaged.title, packaged.ports, len(packaged.candidates)) == ("Tomcat10", (8080,), 1)
    assert (other.title, other.ports, other.candidates) == ("Tomcat", (8081,), ()), "its options file is unknown"
    assert (other.startup.file, other.startup.log) == ("/srv/shop/conf/server.xml", "/srv/shop/logs/catalina.out")
    assert running("process\t5\t1\tjava\t/usr/bin/java\t-jar\tx.jar\n") == []


def test_each_demo_server_is_reloaded_by_its_name() -> None:
    text = (
        "process\t10\t1\tdemo-http-4000\t/usr/bin/python\t-m\tcockpit.demo.webserver\t/tmp/it's a/httpd.conf\t\n"
        "process\t20\t1\tdemo-http-4001\t/usr/bin/python\t-m\tcockpit.demo.webserver\t/tmp/b/httpd.conf\t\n"
        "process\t21\t20\tdemo-http-4001\t/usr/bin/python\t-m\tcockpit.demo.webserver\t/tmp/b/httpd.conf\t\n"
        'listen\t127.0.0.1:4000\tusers:(("demo-http-4000",pid=10,fd=3))\n'
        'listen\t127.0.0.1:4001\tusers:(("demo-http-4001",pid=21,fd=3),("demo-http-4001",pid=20,fd=3))\n'
    )
    first, second = servers = running(text)
    assert server_on_port(servers, 4001) is second
    assert [(server.pattern, server.processes, server.ports) for server in servers] == [
        ("demo-http-4000", 1, (4000,)),
        ("demo-http-4001", 2, (4001,)),
    ]
    assert first.candidates[0].test.endswith("-t '/tmp/it'\"'\"'s a/httpd.conf'")
    knob = second.candidates[0]
    assert (knob.file, knob.reload) == ("/tmp/b/httpd.conf", "pkill -o -USR1 -x demo-http-4001")
    assert knob.workers == "demo-http-4001"


@pytest.mark.parametrize("text", ["", "\t\t\t", "process\tx\ty\tnginx\n", "listen\tnowhere\tusers:((\n", "file\t/x\n"])
def test_invalid_lines_are_skipped(text: str) -> None:
    assert parsed(text) == Inventory()


HAPROXY = """\
user\troot
process\t500\t1\thaproxy\t/usr/sbin/haproxy\t-Ws\t
listen\t0.0.0.0:80\tusers:(("haproxy",pid=500,fd=4))
"""
GLOBAL = """\
global
\tlog /dev/log\tlocal0
\tstats socket /run/haproxy/admin.sock mode 660 level admin
\tstats timeout 30s
defaults
\tmode\thttp
"""
LISTENERS = {
    "frontend stats\n\tbind 127.0.0.1:8404\n\tstats enable\n\tstats uri /stats # here\n": "http://127.0.0.1:8404/stats;csv",
    "listen stats\n  bind *:8404 ssl crt /a.pem\n  stats enable\n": "https://localhost:8404/haproxy?stats;csv",
    "frontend web\n bind :80\nlisten stats\n bind [::]:8404\n stats uri /s\n": "http://localhost:8404/s;csv",
    "listen stats\n bind :8404\n stats uri /s\n stats auth a:b\n": "unix:/run/haproxy/admin.sock",
    "backend app\n stats enable\n": "unix:/run/haproxy/admin.sock",
    "listen stats\n bind :8404\n stats uri /$(reboot)\n": "unix:/run/haproxy/admin.sock",
}


@pytest.mark.parametrize("listener", LISTENERS)
def test_haproxy_statistics_are_offered(listener: str) -> None:
    server = discover(HAPROXY + texts("/etc/haproxy/haproxy.cfg", GLOBAL + listener))["HAProxy"]
    assert [page.url for page in server.status] == [LISTENERS[listener]]


def test_stats_socket_is_offered_only_to_root_and_status_only_if_enabled() -> None:
    text = HAPROXY.replace("root", "mira") + texts("/etc/haproxy/haproxy.cfg", GLOBAL)
    assert discover(text)["HAProxy"].status == () == discover(HAPROXY)["HAProxy"].status
    running = "process\t7\t1\tlighttpd\t/usr/sbin/lighttpd\t\n" + 'listen\t*:8081\tusers:(("lighttpd",pid=7,fd=4))\n'
    file = "/etc/lighttpd/conf-enabled/10-status.conf"
    module = 'server.modules += ( "mod_status" )\n'
    off = discover(running + texts(file, f'{module}# status.status-url = "/server-status"\n'))["lighttpd"]
    assert off.status == ()
    on = discover(running + texts(file, f'{module}status.status-url = "/server-status"\n'))["lighttpd"]
    assert [page.url for page in on.status] == ["http://localhost:8081/server-status?auto"]


def test_unrequested_texts_are_ignored() -> None:
    assert parsed("text\t/etc/shadow\troot:x\n") == Inventory()
