"""Discovery: servers in the inventory of a host, their configuration files, and the candidates offered for each."""

import pytest

from cockpit.servers import registry
from cockpit.servers.apache import MODULES
from cockpit.servers.inventory import Inventory, PortListener, Process, parse_inventory
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import instances, running_servers
from cockpit.servers.startup import Startup, options
from cockpit.tuning.discovery.servers import server_on_port, servers_on_port
from tests.data import data_of
from tests.servers.found import parsed, running, texts

DATA = data_of(__file__)

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
    inventory = Inventory("root", (process,), (PortListener(name, 9, 80),))
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
GLOBAL = DATA["global"]
LISTENERS = DATA["listeners"]


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
    workers = f'{module}status.status-url = "/server-status"\nserver.max-worker = 4\n'
    assert discover(running + texts(file, workers))["lighttpd"].status == (), "each worker counts its own requests"


def test_unrequested_texts_are_ignored() -> None:
    assert parsed("text\t/etc/shadow\troot:x\n") == Inventory()


NGINX_BUILD = "built\t{program}\tconfigure arguments: --prefix=/usr/share/nginx --conf-path=/etc/nginx/nginx.conf\n"
APACHE_BUILD = (
    'built\t{program}\t -D HTTPD_ROOT="/etc/apache2"\nbuilt\t{program}\t -D SERVER_CONFIG_FILE="apache2.conf"\n'
)
SQUID_BUILD = "built\t{program}\tconfigure options:  '--sysconfdir=/etc' '--sysconfdir=/etc/squid'\n"


def startup(
    name: str,
    *command: str,
    program: str = "",
    directory: str = "/srv/x",
    build: str = "",
    certain: str = "yes",
    origin: str = "host",
    unit: str = "",
) -> Startup:
    words = "\t".join(command)
    program = program or f"/usr/sbin/{name}"
    text = f"process\t9\t1\t{name}\t{words}\t\nmaster\t9\t{program}\t{directory}\t{certain}\t{unit}\t{origin}\n"
    (instance,) = registry.instances(
        parse_inventory(text + build.format(program=program), registry.FILES, registry.TEXTS)
    )
    return instance.startup


@pytest.mark.parametrize(("version", "offered"), [("1.25.1", True), ("1.27.0", True), ("1.25.0", False), ("x", False)])
def test_http2_is_offered_if_nginx_has_the_directive(version: str, offered: bool) -> None:
    build = f"built\t/usr/sbin/nginx\tnginx version: nginx/{version}\n" + NGINX_BUILD.format(program="/usr/sbin/nginx")
    master = "master\t200\t/usr/sbin/nginx\t/\tyes\t\thost\n"
    names = [candidate.name for candidate in discover(DEBIAN + master + build)["nginx"].candidates]
    assert ("http2" in names) == offered
    assert "http2_max_concurrent_streams" in names


@pytest.mark.parametrize(("arguments", "file", "reload"), DATA["nginx_file_and_reload"])
def test_nginx_file_and_reload(arguments: str, file: str, reload: str) -> None:
    found = startup("nginx", f"nginx: master process /usr/sbin/nginx{arguments}", build=NGINX_BUILD)
    assert (found.file, found.reload, found.uncertainty) == (file, reload, "")


def test_directives_of_another_users_command_line_are_in_no_command() -> None:
    """A test would load his modules."""
    title = "nginx: master process nginx -c /etc/nginx/nginx.conf -g {};"
    found = startup("nginx", title.format("load_module /tmp/own.so"), build=NGINX_BUILD, origin="user")
    assert (found.file, found.test, found.reload) == ("", "", "")
    assert found.uncertainty.startswith("another user started it, with directives on its command line")
    found = startup("nginx", title.format("daemon off"), build=NGINX_BUILD, origin="user")
    assert found.test == "nginx -t -c /etc/nginx/nginx.conf"


@pytest.mark.parametrize(
    ("name", "command", "reload"),
    [
        ("haproxy", ("haproxy", "-W", "-f", "/a.cfg", "-p", "/tmp/own.pid"), "pkill -USR2 -o -x -f -- "),
        ("gunicorn", ("/usr/bin/python3", "/usr/bin/gunicorn", "-p", "/tmp/own.pid"), "pkill -HUP -o -x -f -- "),
    ],
)
def test_a_pid_in_another_users_file_is_not_signalled(name: str, command: tuple[str, ...], reload: str) -> None:
    assert startup(name, *command, origin="user").reload.startswith(reload)
    assert startup(name, *command).reload.endswith('"$(cat /tmp/own.pid)"')


@pytest.mark.parametrize(
    ("command", "file", "program"),
    [
        ("-k start", "/etc/apache2/apache2.conf", "apachectl"),
        ("-d /etc/apache2-blue", "/etc/apache2-blue/apache2.conf", "APACHE_CONFDIR=/etc/apache2-blue apachectl"),
        ("-f /a/h.conf -D WEB -k start", "/a/h.conf", "/usr/sbin/apache2 -d /etc/apache2 -f /a/h.conf -DWEB"),
        ("-d /a -f b.conf", "/a/b.conf", "/usr/sbin/apache2 -d /a -f /a/b.conf"),
    ],
)
def test_apache_file_test_and_reload(command: str, file: str, program: str) -> None:
    found = startup("apache2", "/usr/sbin/apache2", *command.split(), build=APACHE_BUILD)
    reload = f"{program} graceful" if program.endswith("apachectl") else f"{program} -k graceful"
    assert (found.file, found.test, found.reload, found.uncertainty) == (file, f"{program} -t", reload, "")


def test_haproxy_with_several_files() -> None:
    found = startup("haproxy", "haproxy", "-Ws", "-C", "/etc/h", "-f", "a.cfg", "-p", "/run/h.pid", "--", "b.cfg", "/c")
    assert found.files == ("/etc/h/a.cfg", "/etc/h/b.cfg", "/c")
    assert found.test == "haproxy -c -f /etc/h/a.cfg -f /etc/h/b.cfg -f /c"
    assert found.reload == 'kill -USR2 "$(cat /run/h.pid)"'
    named = startup("haproxy", "haproxy", "-Ws", "-f", "/a.cfg", unit="haproxy@blue.service")
    assert named.reload == "systemctl reload haproxy@blue.service"
    assert startup("haproxy", "haproxy", "-f", "/a.cfg").reload == "", "without a master process there is no reload"


def test_squid_and_lighttpd_files_and_reloads() -> None:
    assert (
        startup("squid", "/usr/sbin/squid", "--foreground", "-sYC", build=SQUID_BUILD).file == "/etc/squid/squid.conf"
    )
    named = startup("squid", "squid", "-n", "blue", "-sYCf", "/a/s.conf", build=SQUID_BUILD)
    assert (named.file, named.reload) == ("/a/s.conf", "squid -n blue -f /a/s.conf -k reconfigure")
    other = startup("lighttpd", "lighttpd", "-D", "-f", "l.conf")
    assert (other.file, other.reload) == ("/srv/x/l.conf", "")
    own_unit = startup("lighttpd", "lighttpd", "-f", "/a/l.conf", unit="web@blue.service")
    assert own_unit.reload == "systemctl reload web@blue.service"
    named = startup("lighttpd", "lighttpd", "-f", "/a/l.conf")
    assert (named.file, named.reload) == ("/a/l.conf", r"pkill -USR1 -o -x -f -- 'lighttpd -f /a/l\.conf'")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"certain": "no"}, "this user cannot read its program"),
        ({"origin": "container"}, "container"),
        ({"build": ""}, "this user cannot read its program"),
    ],
)
def test_assumed_file_has_reason(changed: dict[str, str], words: str) -> None:
    known = {"build": NGINX_BUILD} | changed
    assert words in startup("nginx", "nginx: master process nginx", **known).uncertainty


def test_unknown_paths_and_containers_offer_nothing() -> None:
    found = startup("nginx", "nginx: master process nginx -c /a\x1b[31m.conf", build=NGINX_BUILD)
    assert found.files == () and "cannot be found" in found.uncertainty
    text = "process\t9\t1\tnginx\tnginx: master process nginx -c /x.conf\t\nmaster\t9\t/n\t/\tyes\t\tcontainer\n"
    (server,) = running(text)
    assert server.candidates == ()
    build = "built\t{program}\tconfigure arguments:\n"
    found = startup("nginx", "nginx: master process nginx", program="/opt/nginx", build=build)
    assert (found.file, found.reload) == ("/usr/local/nginx/conf/nginx.conf", "/opt/nginx -s reload")


def test_options_are_parsed_like_getopt() -> None:
    words = ("-sYCf", "/a", "-k", "start", "--long", "-Dx", "--", "-f", "/b")
    assert options(words, "fkD") == {"s": [""], "Y": [""], "C": [""], "f": ["/a"], "k": ["start"], "D": ["x"]}


def test_masters_are_distinguished_by_process_trees() -> None:
    text = (
        "process\t10\t1\tnginx\tnginx: master process nginx -c /a.conf\t\n"
        "process\t11\t10\tnginx\tnginx: worker process\t\n"
        "process\t20\t1\tnginx\tnginx: master process nginx -c /b.conf\t\n"
        "process\t21\t20\tnginx\tnginx: worker process\t\n"
        'listen\t*:81\tusers:(("nginx",pid=11,fd=6),("nginx",pid=10,fd=6))\n'
        'listen\t*:82\tusers:(("nginx",pid=21,fd=6))\n'
    )
    servers = running(text)
    assert [
        (server.master and server.master.pid, server.processes, server.ports, server.candidates[0].file)
        for server in servers
    ] == [(10, 2, (81,), "/a.conf"), (20, 2, (82,), "/b.conf")]
