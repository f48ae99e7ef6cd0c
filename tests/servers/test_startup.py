"""The configuration file of a running server, from its command line and compiled defaults."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.inventory import parse_inventory
from cockpit.servers.startup import Startup, options
from tests.servers.found import running

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


@pytest.mark.parametrize(
    ("arguments", "file", "reload"),
    [
        ("", "/etc/nginx/nginx.conf", "nginx -s reload"),
        (" -g daemon on; master_process on;", "/etc/nginx/nginx.conf", "nginx -s reload"),
        (" -c /a/b.conf", "/a/b.conf", "nginx -s reload -c /a/b.conf"),
        (" -c/a/b.conf", "/a/b.conf", "nginx -s reload -c /a/b.conf"),
        (" -c b.conf", "/usr/share/nginx/b.conf", "nginx -s reload -c /usr/share/nginx/b.conf"),
        (" -p /p -c b.conf", "/p/b.conf", "nginx -s reload -p /p -c /p/b.conf"),
        (" -p . -c b.conf", "/srv/x/b.conf", "nginx -s reload -p /srv/x -c /srv/x/b.conf"),
        (" -p /p", "/etc/nginx/nginx.conf", "nginx -s reload -p /p"),
        (" -c /a b/c.conf -p /p", "/a b/c.conf", "nginx -s reload -p /p -c '/a b/c.conf'"),
        (" -g pid /x; -c /a.conf", "/a.conf", "nginx -s reload -c /a.conf -g 'pid /x;'"),
        (" -c /$(reboot).conf", "/$(reboot).conf", "nginx -s reload -c '/$(reboot).conf'"),
    ],
)
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
    ("command", "file", "test", "reload"),
    [
        ("-k start", "/etc/apache2/apache2.conf", "apachectl -t", "apachectl graceful"),
        (
            "-d /etc/apache2-blue -k start",
            "/etc/apache2-blue/apache2.conf",
            "APACHE_CONFDIR=/etc/apache2-blue apachectl -t",
            "APACHE_CONFDIR=/etc/apache2-blue apachectl graceful",
        ),
        (
            "-f /a/h.conf -D WEB -k start",
            "/a/h.conf",
            "/usr/sbin/apache2 -d /etc/apache2 -f /a/h.conf -DWEB -t",
            "/usr/sbin/apache2 -d /etc/apache2 -f /a/h.conf -DWEB -k graceful",
        ),
        (
            "-d /a -f b.conf",
            "/a/b.conf",
            "/usr/sbin/apache2 -d /a -f /a/b.conf -t",
            "/usr/sbin/apache2 -d /a -f /a/b.conf -k graceful",
        ),
    ],
)
def test_apache_file_test_and_reload(command: str, file: str, test: str, reload: str) -> None:
    found = startup("apache2", "/usr/sbin/apache2", *command.split(), build=APACHE_BUILD)
    assert (found.file, found.test, found.reload, found.uncertainty) == (file, test, reload, "")


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
    ] == [
        (10, 2, (81,), "/a.conf"),
        (20, 2, (82,), "/b.conf"),
    ]
