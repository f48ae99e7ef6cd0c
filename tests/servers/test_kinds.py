"""Kinds of servers beyond the tables: Tomcat, lighttpd, HAProxy, MariaDB, gunicorn, systemd units, the kernel."""

import pytest

from cockpit.model.knobs import Knob
from cockpit.servers import kernel, registry, systemd
from cockpit.servers.editing import ConfigError
from cockpit.servers.gunicorn.editor import GunicornGrammar
from cockpit.servers.inventory import Inventory, PortListener, Process, parse_inventory
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import running_servers
from cockpit.servers.status import NotThePageError
from tests.data import data_of
from tests.servers.found import running, texts
from tests.servers.test_grammars import FILES

DATA = data_of(__file__)


def test_settings_of_listening_connectors_are_offered() -> None:
    lines = texts("/etc/tomcat10/server.xml", FILES["tomcat"]["text"][0]["text"])
    java = 'process\t5\t1\tjava\t/usr/bin/java\t-Dcatalina.base={}\t\nlisten\t*:8080\tusers:(("java",pid=5,fd=4))\n'
    (server,) = running(java.format("/var/lib/tomcat10") + lines)
    names_and_sections = {(candidate.name, candidate.section) for candidate in server.candidates}
    assert {("maxThreads-8080", "Connector 8080"), ("maxThreads-pool", "Executor pool")} <= names_and_sections
    assert not any(section == "Connector 8009" for _, section in names_and_sections), "it does not listen"
    assert ("acceptCount-pool", "Executor pool") not in names_and_sections
    assert all(
        candidate.reload == "service tomcat10 restart" and "configtest" in candidate.test
        for candidate in server.candidates
    )
    (other,) = running(java.format("/srv/shop") + lines)
    assert other.candidates == (), "no command restarts it"


LIGHTTPD = registry.GRAMMARS["lighttpd"]


@pytest.mark.parametrize(("files", "note"), [("1024", "lowers server.max-connections 600 to 512"), ("1200", "")])
def test_connections_of_lighttpd_over_half_of_max_fds_are_noted(files: str, note: str) -> None:
    text = f"server.max-connections = 600\nserver.max-fds = {files}\n".encode()
    assert note in LIGHTTPD.coerced(text, "server.max-fds", None) and bool(note) == bool(
        LIGHTTPD.coerced(text, "server.max-connections", None)
    )
    assert LIGHTTPD.coerced(text, "server.port", None) == ""


def test_candidates_of_lighttpd_are_offered() -> None:
    text = (
        "process\t5\t1\tlighttpd\t/usr/sbin/lighttpd\t-f\t/etc/lighttpd/lighttpd.conf\t\n"
        'listen\t0.0.0.0:80\tusers:(("lighttpd",pid=5,fd=4))\n'
        "file\t/var/log/lighttpd/error.log\n"
    )
    (server,) = running(text)
    assert (server.pattern, server.processes, server.ports) == ("lighttpd", 1, (80,))
    assert server.tail == ("tail -n 3 -F /var/log/lighttpd/error.log",)
    assert server.candidates[0].directive == "server.max-connections" and server.candidates[0].usual


HAPROXY = registry.GRAMMARS["haproxy"]


HAPROXY_FLAGS = DATA["haproxy_flags"].encode()


def test_flag_of_haproxy_is_on_or_off() -> None:
    alive, close = "option http-keep-alive", "option http-server-close"
    assert [
        HAPROXY.read(HAPROXY_FLAGS, alive, "defaults").value,
        HAPROXY.read(HAPROXY_FLAGS, alive, "backend app").value,
    ] == ["off", None]
    assert HAPROXY.read(HAPROXY_FLAGS, close, "backend app").value == "on"
    assert HAPROXY.read(HAPROXY_FLAGS, "option httpchk", "defaults").value == "GET /up"
    on = HAPROXY.change(
        HAPROXY_FLAGS, alive, HAPROXY.encode_in(HAPROXY_FLAGS, alive, "defaults", "on", None), "defaults"
    )
    assert on == HAPROXY_FLAGS.replace(b"no option http-keep-alive", b"option http-keep-alive")
    off = HAPROXY.change(
        HAPROXY_FLAGS, close, HAPROXY.encode_in(HAPROXY_FLAGS, close, "backend app", "off", None), "backend app"
    )
    assert off == HAPROXY_FLAGS.replace(b"option  http-server-close", b"no option http-server-close")
    added = HAPROXY.change(
        HAPROXY_FLAGS, close, HAPROXY.encode_in(HAPROXY_FLAGS, close, "defaults", "off", None), "defaults"
    )
    assert added == HAPROXY_FLAGS.replace(b"GET /up\n", b"GET /up\n\tno option http-server-close\n")
    assert HAPROXY.change(added, close, None, "defaults") == HAPROXY_FLAGS
    with pytest.raises(ConfigError, match="the value must be on or off"):
        HAPROXY.encode_in(HAPROXY_FLAGS, alive, "defaults", "GET /", None)


@pytest.mark.parametrize("text", ["# pxname,svname,x\n" + "a" * 200_000, "# pxname,svname,x\n\0\n", "# pxname,svname,"])
def test_malformed_row_raises_only_page_error(text: str) -> None:
    try:
        registry.STATUS_PAGES["haproxy"].parse(text)
    except NotThePageError as error:
        assert "the URL must end in ;csv" in str(error)


def test_candidates_of_haproxy_are_offered() -> None:
    text = "process\t5\t1\thaproxy\t/usr/sbin/haproxy\t\nprocess\t6\t5\thaproxy\t/usr/sbin/haproxy\t\n"
    (server,) = running(text)
    assert (server.title, server.processes) == ("HAProxy", 2)
    timeouts = [candidate for candidate in server.candidates if candidate.section == "defaults"]
    assert timeouts[0].directive == "timeout connect" and timeouts[0].name == "timeout-connect"
    for candidate in server.candidates:
        assert HAPROXY.names.fullmatch(candidate.directive)
    offered = {}
    for options in ("", "-n\t100\t"):
        text = f"process\t5\t1\thaproxy\t/usr/sbin/haproxy\t{options}\n"
        (server,) = running(text)
        offered[options] = {one.directive for one in server.candidates}
    assert offered[""] - offered["-n\t100\t"] == {"maxconn"}


MARIADB_FILES = "file\t/etc/mysql/my.cnf\nfile\t/run/mysqld/mysqld.sock\n"


def mariadb(*options: str, files: str = MARIADB_FILES) -> RunningServer:
    line = "".join(f"\t{option}" for option in options)
    text = (
        f"user\troot\nprocess\t9\t1\tmariadbd\t/usr/sbin/mariadbd{line}\t\n"
        "master\t9\t/usr/sbin/mariadbd\t/srv\tyes\t\thost\n"
    )
    (server,) = running(text + files)
    return server


def test_packaged_mariadb_has_file_and_socket() -> None:
    server = mariadb("--basedir=/usr", "--user", "mysql")
    knob = next(candidate for candidate in server.candidates if candidate.name == "max_connections")
    assert (knob.file, knob.section, knob.usual) == ("/etc/mysql/my.cnf", "mysqld", True)
    assert knob.test.startswith("out=$(/usr/sbin/mariadbd --help --verbose 2>&1 >/dev/null)") and knob.reload == ""
    assert knob.get.endswith('--socket=/run/mysqld/mysqld.sock -NBe "SELECT @@global.max_connections"')
    assert [page.url for page in server.status] == ["unix:/run/mysqld/mysqld.sock"]
    names = {candidate.name for candidate in mariadb("--max-connections=7", "--wait_timeout", "5").candidates}
    assert "innodb_buffer_pool_size" in names and not {"max_connections", "wait_timeout"} & names


@pytest.mark.parametrize(
    ("options", "files", "sockets"),
    [
        (("--defaults-file=/srv/db/my.cnf", "--socket=/srv/db/s"), ("/srv/db/my.cnf",), 1),
        (("--defaults-file=my.cnf", "--socket", "s"), ("/srv/my.cnf",), 1),
        (("--defaults-file=/srv/db/my.cnf",), ("/srv/db/my.cnf",), 0),
        (("--no-defaults", "--socket=/srv/db/s"), (), 0),
    ],
)
def test_other_file_or_socket_of_mariadb_is_found(
    options: tuple[str, ...], files: tuple[str, ...], sockets: int
) -> None:
    server = mariadb(*options)
    assert server.startup is not None and server.startup.files == files
    assert bool(server.candidates) is bool(sockets)


def test_sizes_of_mariadb_are_compared_in_bytes() -> None:
    size, kind = (
        registry.SETTINGS["mariadb"]["innodb_buffer_pool_size"],
        registry.SETTINGS["mariadb"]["query_cache_type"],
    )
    assert [size.as_printed(value) for value in ("128M", "1g", "64", "x")] == ["134217728", "1073741824", "64", "x"]
    assert kind.as_printed("on") == "ON"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"(" * 5000, "not a Python file"),
        (b"x = 1\n" * 60000, "larger than 256 KiB"),
        (b"# coding: latin-1\nx = '\xe9'; workers = 4; threads = 2\n", "not a Python file"),
    ],
)
def test_unreadable_python_file_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GunicornGrammar().read(text, "workers")


def gunicorn_process(*message: str, unit: str = "") -> Process:
    command = ("/opt/app/bin/python3", "/opt/app/bin/gunicorn", *message)
    return Process(7, 1, "gunicorn", command, "/usr/bin/python3.11", "/srv/app", is_certain=True, unit=unit)


def gunicorn(process: Process) -> tuple[str, str, list[str]]:
    inventory = Inventory("root", (process,), (PortListener("gunicorn", 7, 8000),))
    [server] = running_servers(inventory)
    assert server.startup
    return server.startup.file, server.startup.reload, [candidate.name for candidate in server.candidates]


def test_file_and_reload_of_running_gunicorn_are_found() -> None:
    file, reload, names = gunicorn(gunicorn_process("-c", "conf/g.py", "--pid=/run/g.pid", "-w", "3", "app:app"))
    assert file == "/srv/app/conf/g.py" and reload == 'kill -HUP "$(cat /run/g.pid)"'
    # Settings on the command line are not offered in the file.
    assert "workers" not in names and "threads" in names
    file, reload, names = gunicorn(gunicorn_process("app:app", unit="web.service"))
    assert file == "/srv/app/gunicorn.conf.py"
    assert reload == "systemctl kill --signal=HUP --kill-who=main web.service"
    assert gunicorn(gunicorn_process("app:app"))[1].startswith("pkill -HUP -o -x -f -- ")
    assert gunicorn(gunicorn_process("-c", "python:app.conf", "app:app"))[0] == ""
    # Options without a value, or with a name other than the setting's.
    file, _, names = gunicorn(gunicorn_process("--preload", "-c", "conf/g.py", "--keep-alive", "5", "app:app"))
    assert file == "/srv/app/conf/g.py"
    assert not {"preload_app", "keepalive"} & {*names}


def test_options_of_the_environment_win_over_the_file_and_lose_against_the_command_line() -> None:
    process = gunicorn_process("-w", "3", "app:app")._replace(
        facts=(("GUNICORN_CMD_ARGS", "-c 'conf/g.py' --workers=5 -t 9"),)
    )
    file, _, names = gunicorn(process)
    assert file == "/srv/app/conf/g.py" and not {"workers", "timeout"} & {*names}
    [server] = running_servers(Inventory("root", (process,)))
    assert server.startup and dict(server.startup.overridden) == {
        "workers": "its command line",
        "timeout": "GUNICORN_CMD_ARGS in its environment",
    }
    assert (
        gunicorn(gunicorn_process("app:app")._replace(facts=(("GUNICORN_CMD_ARGS", "'"),)))[0]
        == "/srv/app/gunicorn.conf.py"
    )


MASTER = Process(7, 1, "nginx", ("nginx",), unit="nginx.service")


def test_environment_variables_and_options_are_encoded() -> None:
    grammar = registry.GRAMMARS["systemd"]
    text = b'[Service]\nEnvironment=THREADS=1 "NAME=a b"\nExecStart=/usr/bin/uvicorn app:app --port=80\n'
    assert grammar.change(b"", "MemoryMax", b"200M") == b"[Service]\nMemoryMax=200M\n"
    with pytest.raises(ConfigError):
        grammar.change(b"[Unit]\nNice=1\n[Install]\n", "TasksMax", b"9")
    assert grammar.change(b"", "THREADS", b"4") == b'[Service]\nEnvironment="THREADS=4"\n'
    assert grammar.read(text + b"Environment=\n", "THREADS").value is None
    assert grammar.encode_in(text, "NAME", None, "c d", b"a b") == b"c d"
    for name, value in (("NAME", 'a"b'), ("NAME", "50%"), ("THREADS", "a b"), ("--port", "80 --reload")):
        with pytest.raises(ConfigError):
            grammar.encode_in(text, name, None, value, None)


def test_a_variable_is_set_in_the_environment_file_that_sets_it() -> None:
    master = Process(7, 1, "uvicorn", ("uvicorn", "app:app", "--backlog=9"), unit="app.service")
    files = {"UVICORN_BACKLOG": "/etc/app", "UVICORN_LOOP": "/etc/app", "WEB_CONCURRENCY": "/etc/default/app"}

    def places(kind: str) -> dict[str, tuple[str, str, str]]:
        found = systemd.candidates(master, registry.AT_START[kind], files)
        return {one.name: (one.kind, one.file, one.key or one.directive) for one in found}

    drop_in = "/etc/systemd/system/app.service.d/90-webcockpit.conf"
    uvicorn = places("uvicorn")
    assert uvicorn["loop"] == ("keyvalue", "/etc/app", "UVICORN_LOOP")
    assert uvicorn["workers"] == ("keyvalue", "/etc/default/app", "WEB_CONCURRENCY")
    # The option wins, and a variable that no file sets is one of the drop-in.
    assert uvicorn["backlog"] == ("systemd", "/etc/systemd/system/app.service", "--backlog")
    assert uvicorn["http"] == ("systemd", drop_in, "UVICORN_HTTP")
    assert places("gunicorn")["workers"] == ("keyvalue", "/etc/default/app", "WEB_CONCURRENCY")
    files.clear()
    assert "workers" not in places("gunicorn")
    knob = Knob(name="loop", host="web1", kind="keyvalue", file="/etc/app", key="UVICORN_LOOP")
    assert knob.format_error("quick") and not knob.format_error("asyncio")


def test_server_with_unit_offers_settings_at_their_source() -> None:
    offered = {candidate.name: candidate for candidate in systemd.candidates(MASTER)}
    assert list(offered) == list(systemd.SETTINGS)
    assert {candidate.file for candidate in offered.values()} == {
        "/etc/systemd/system/nginx.service.d/90-webcockpit.conf"
    }
    assert [name for name, candidate in offered.items() if "restart nginx.service" in candidate.reload] == [
        "LimitNOFILE",
        "Nice",
    ]
    for other in (MASTER._replace(unit=""), MASTER._replace(origin="container")):
        assert list(systemd.candidates(other)) == []
    at_start = registry.AT_START["uvicorn"]
    command = ("/usr/bin/python3", "/usr/bin/uvicorn", "app:app", "--workers=2", "--backlog", "9")
    master = Process(7, 1, "uvicorn", command, unit="app.service")
    offered = {candidate.name: candidate for candidate in systemd.candidates(master, at_start)}
    assert (offered["workers"].file, offered["workers"].directive) == ("/etc/systemd/system/app.service", "--workers")
    drop_in = "/etc/systemd/system/app.service.d/90-webcockpit.conf"
    assert (offered["loop"].file, offered["loop"].directive) == (drop_in, "UVICORN_LOOP")
    # An option without environment variable is offered only if it is on the command line.
    names = {candidate.name for candidate in systemd.candidates(master, registry.AT_START["gunicorn"])}
    assert "workers" in names and "threads" not in names
    assert list(systemd.candidates(master._replace(unit=""), at_start)) == []


def test_only_drop_ins_may_be_created() -> None:
    file = "/etc/systemd/system/web@1.service.d/90-webcockpit.conf"
    assert Knob(name="n", host="h", kind="systemd", file=file).creates
    for other in ("/etc/systemd/system/x.conf", "/run/systemd/system/x.service.d/a.conf", file[:-5], file + "\n"):
        assert not Knob(name="n", host="h", kind="systemd", file=other).creates
    assert not Knob(name="n", host="h", kind="keyvalue", file=file).creates


def test_accept_queues_of_listeners_are_noted() -> None:
    listeners = 'listen\t*:80\tusers:(("nginx",pid=2,fd=6),("nginx",pid=3,fd=6))\t511\n'
    listeners += 'listen\t*:22\tusers:(("sshd",pid=1,fd=3))\t128\nlisten\t*:23\tusers:(("old",pid=4,fd=3))\n'
    note = kernel.accept_queues(parse_inventory(listeners, ()))
    queues = "port 22 (sshd) 128, port 80 (nginx) 511"
    assert note == f"accept queues now: {queues}; restart a server to apply the change to its queue"
    assert kernel.accept_queues(parse_inventory("", ())) == ""
