"""Which web servers run on a host, and which of their settings are worth offering. Pure: from what was seen there.

Files, sections and commands are those of Debian's packages and, for Apache's httpd, of Red Hat's.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from cockpit.model.hosts import StatusPage
from cockpit.model.knobs import Knob, KnobKind

# What a look at a host asks about: configurations, modules, logs.
_NGINX_LOG = "/var/log/nginx/error.log"
MODULES = "/etc/apache2/mods-enabled"
FILES = (
    *(f"{MODULES}/mpm_{mpm}.load" for mpm in ("prefork", "worker", "event")),
    f"{MODULES}/status.load",
    "/etc/httpd/conf/httpd.conf",
    "/var/log/apache2/error.log",
    "/var/log/httpd/error_log",
    _NGINX_LOG,
    "/var/log/squid/cache.log",
    *(f"/etc/default/tomcat{version}" for version in (8, 9, 10, 11)),
    *(f"/var/log/tomcat{version}/catalina.out" for version in (8, 9, 10, 11)),
)
_USER = re.compile(r'\("([^"]*)",pid=(\d{1,9}),')
# Names of processes that are looked at more closely.
PROCESSES = ("apache2", "httpd", "nginx", "squid", "java")
# The web server of `cockpit demo` has its port in its name: demo-http-41465.
DEMO = "demo-http-"


class Process(NamedTuple):
    """A process of one of those names, with its command line."""

    pid: int
    parent: int
    name: str
    command: tuple[str, ...]


class Listener(NamedTuple):
    """A process that takes connections on a port."""

    name: str
    pid: int
    port: int


class Seen(NamedTuple):
    """What a look at a host saw. `files` are those of FILES that can be read."""

    user: str = ""
    processes: tuple[Process, ...] = ()
    listening: tuple[Listener, ...] = ()
    files: frozenset[str] = frozenset()


class Candidate(NamedTuple):
    """A knob that may be offered; `usual`: it is what people turn first."""

    knob: Knob
    usual: bool


class Server(NamedTuple):
    """A server that runs on a host. `pattern` is what [[host]] processes would be."""

    title: str
    pattern: str
    processes: int
    ports: tuple[int, ...]
    candidates: tuple[Candidate, ...]
    tail: tuple[str, ...] = ()
    status: tuple[StatusPage, ...] = ()


def parse_seen(text: str) -> Seen:
    """From what the look printed: a line a fact, its parts by tabs; what makes no sense is passed over."""
    user, files = "", set()
    processes: list[Process] = []
    listening: list[Listener] = []
    for line in text.splitlines():
        match line.split("\t"):
            case ["user", name]:
                user = name
            case ["process", pid, parent, name, *command] if _is_number(pid) and _is_number(parent):
                processes.append(Process(int(pid), int(parent), name, tuple(word for word in command if word)))
            case ["listen", local, users]:
                listening += _listening(local, users)
            case ["file", name] if name in FILES:
                files.add(name)
    return Seen(user, tuple(processes), tuple(dict.fromkeys(listening)), frozenset(files))


def _is_number(text: str) -> bool:
    """Whether it is a number of a process or a port, and not of thousands of digits."""
    return text.isdecimal() and len(text) < 10


def _listening(local: str, users: str) -> Iterator[Listener]:
    """From ss: `0.0.0.0:80` and `users:(("nginx",pid=1,fd=6),…)`."""
    port = local.rpartition(":")[2]
    if _is_number(port):
        for name, pid in _USER.findall(users):
            yield Listener(name, int(pid), int(port))


def servers_in(seen: Seen, host: str) -> list[Server]:
    """The servers that run there, with their candidates as knobs of `host`."""
    found = [server for server in (make(seen, host) for make in _KINDS) if server is not None]
    return [*found, *_demos(seen, host)]


def serving(servers: Sequence[Server], port: int) -> Server | None:
    """The one that listens on a port; the only one, where none is known to."""
    listening = [server for server in servers if port in server.ports]
    return listening[0] if listening else servers[0] if len(servers) == 1 else None


def able_to_answer(seen: Seen, servers: Sequence[Server], port: int) -> list[Server]:
    """On the target's own host: those that listen on its port, or may, because nobody was told who listens there."""
    if any(one.port == port for one in seen.listening):
        return [server for server in servers if port in server.ports]
    return [server for server in servers if not server.ports]


def system_candidates(host: str) -> tuple[Candidate, ...]:
    """Settings of the kernel, whatever runs on it."""
    return (Candidate(Knob(name="somaxconn", host=host, kind="sysctl", key="net.core.somaxconn"), False),)


class _Config(NamedTuple):
    """A file of a server, with the commands that test and reload it."""

    host: str
    kind: KnobKind
    file: str
    test: str
    reload: str
    workers: str = ""
    log: str = ""

    def offer(self, names: str, *, usual: bool, section: str | None = None, values: str = "") -> Iterator[Candidate]:
        """Directives that stand in one section, by their names."""
        for name in names.split():
            knob = Knob(
                name=name,
                host=self.host,
                kind=self.kind,
                file=self.file,
                section=section,
                directive=name,
                test=self.test,
                reload=self.reload,
                workers=self.workers,
                log=self.log,
                values=tuple(values.split()),
            )
            yield Candidate(knob, usual)


def _count(seen: Seen, *names: str) -> int:
    return sum(process.name in names for process in seen.processes)


def _ports(seen: Seen, *names: str) -> tuple[int, ...]:
    return tuple(sorted({one.port for one in seen.listening if one.name in names}))


def _tails(seen: Seen, *logs: str) -> tuple[str, ...]:
    return tuple(f"tail -n 3 -F {log}" for log in logs if log in seen.files)


_PREFORK = "MinSpareServers MaxSpareServers MaxRequestWorkers MaxConnectionsPerChild"
_THREADS = "MinSpareThreads MaxSpareThreads MaxRequestWorkers MaxConnectionsPerChild"


def _apache(seen: Seen, host: str) -> Server | None:
    count = _count(seen, "apache2")
    if not count:
        return None
    mpm = next((mpm for mpm in ("prefork", "worker", "event") if f"{MODULES}/mpm_{mpm}.load" in seen.files), "event")
    commands = ("apachectl -t", "apachectl graceful")
    own = _Config(host, "apache", f"/etc/apache2/mods-available/mpm_{mpm}.conf", *commands)
    main = _Config(host, "apache", "/etc/apache2/apache2.conf", *commands)
    more = "StartServers" if mpm == "prefork" else "StartServers ThreadsPerChild"
    candidates = (
        *own.offer(_PREFORK if mpm == "prefork" else _THREADS, usual=True),
        *own.offer(more, usual=False),
        *main.offer("KeepAlive", usual=False, values="On Off"),
        *main.offer("KeepAliveTimeout MaxKeepAliveRequests", usual=False),
    )
    page = StatusPage(kind="apache", url="http://localhost/server-status?auto")
    status = (page,) if f"{MODULES}/status.load" in seen.files and 80 in (_ports(seen, "apache2") or (80,)) else ()
    title, tails = f"Apache ({mpm})", _tails(seen, "/var/log/apache2/error.log")
    return Server(title, "apache2", count, _ports(seen, "apache2"), candidates, tails, status)


def _httpd(seen: Seen, host: str) -> Server | None:
    count = _count(seen, "httpd")
    if not count:
        return None
    main = _Config(host, "apache", "/etc/httpd/conf/httpd.conf", "apachectl -t", "apachectl graceful")
    candidates = (
        *main.offer("MaxRequestWorkers MaxConnectionsPerChild", usual=True),
        *main.offer("KeepAlive", usual=True, values="On Off"),
        *main.offer("KeepAliveTimeout MaxKeepAliveRequests", usual=False),
    )
    tails = _tails(seen, "/var/log/httpd/error_log")
    return Server("Apache (httpd)", "httpd", count, _ports(seen, "httpd"), candidates, tails)


def _nginx(seen: Seen, host: str) -> Server | None:
    count = _count(seen, "nginx")
    if not count:
        return None
    log = _NGINX_LOG if _NGINX_LOG in seen.files else ""
    main = _Config(host, "nginx", "/etc/nginx/nginx.conf", "nginx -t", "nginx -s reload", log=log)
    candidates = (
        *main.offer("worker_processes", usual=True),
        *main.offer("worker_connections", usual=True, section="events {"),
        *main.offer("keepalive_timeout", usual=True, section="http {"),
        *main.offer("keepalive_requests", usual=False, section="http {"),
        *main.offer("sendfile gzip", usual=False, section="http {", values="on off"),
    )
    tails = _tails(seen, _NGINX_LOG)
    return Server("nginx", "nginx", count, _ports(seen, "nginx"), candidates, tails)


def _squid(seen: Seen, host: str) -> Server | None:
    names = ("squid", "squid-1", "(squid-1)", "(squid)")
    count = _count(seen, *names)
    if not count:
        return None
    main = _Config(host, "squid", "/etc/squid/squid.conf", "squid -k parse", "squid -k reconfigure")
    candidates = (
        *main.offer("cache_mem maximum_object_size_in_memory", usual=True),
        *main.offer("maximum_object_size cache_replacement_policy memory_replacement_policy", usual=False),
    )
    ports = _ports(seen, *names)
    page = StatusPage(kind="squid", url=f"http://localhost:{ports[0] if ports else 3128}/squid-internal-mgr/counters")
    return Server("squid", "squid*", count, ports, candidates, _tails(seen, "/var/log/squid/cache.log"), (page,))


def _tomcat(seen: Seen, host: str) -> Server | None:
    machines = [process for process in seen.processes if process.name == "java"]
    if not any("catalina" in word for process in machines for word in process.command):
        return None
    version = next((v for v in (11, 10, 9, 8) if f"/etc/default/tomcat{v}" in seen.files), None)
    knobs: tuple[Candidate, ...] = ()
    if version is not None:
        file, reload = f"/etc/default/tomcat{version}", f"service tomcat{version} restart"
        knob = Knob(name="JAVA_OPTS", host=host, kind="keyvalue", file=file, key="JAVA_OPTS", reload=reload)
        knobs = (Candidate(knob, True),)
    tails = _tails(seen, *(f"/var/log/tomcat{v}/catalina.out" for v in (11, 10, 9, 8)))
    return Server(f"Tomcat{version or ''}", "java", len(machines), _ports(seen, "java"), knobs, tails)


def _demos(seen: Seen, host: str) -> Iterator[Server]:
    """The web servers of `cockpit demo`, each with its own name."""
    ours = {process.pid: process for process in seen.processes if process.name.startswith(DEMO)}
    for parent in ours.values():
        if parent.parent in ours or len(parent.command) < 2:
            continue
        name, config = parent.name, parent.command[-1]
        test = f"{shlex.quote(parent.command[0])} -m cockpit.demo.webserver -t {shlex.quote(config)}"
        # The oldest of that name is the parent, whatever its pid is by then.
        main = _Config(host, "apache", config, test, f"pkill -o -USR1 -x {shlex.quote(name)}", name)
        names = "MinSpareServers MaxSpareServers MaxRequestsPerChild MaxClients"
        candidates = tuple(main.offer(names, usual=True, section="IfModule prefork"))
        yield Server("the demo's prefork server", name, _count(seen, name), _ports(seen, name), candidates)


_KINDS: tuple[Callable[[Seen, str], Server | None], ...] = (_apache, _httpd, _nginx, _squid, _tomcat)
