"""PHP-FPM: running masters, their pools, and the OPcache of their PHP."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator

from cockpit.servers.inventory import Inventory, Process, safe_path
from cockpit.servers.kind import CandidateKnob, ServerKind, ServerOffer
from cockpit.servers.php_fpm.editor import PhpFpmGrammar
from cockpit.servers.php_fpm.logs import PARTIAL_LOG
from cockpit.servers.php_fpm.pages import pages
from cockpit.servers.php_fpm.settings import SETTINGS
from cockpit.servers.php_fpm.status import STATUS
from cockpit.servers.startup import Startup, command, signal_command, uncertainty

_NAMES = "php-fpm*"
_DEBIAN = re.compile(r"/etc/php/(\d\.\d{1,2})/fpm/php-fpm\.conf")
_VERSIONS = ("7.4", *(f"8.{minor}" for minor in range(6)))
_LOGS = (*(f"/var/log/php{version}-fpm.log" for version in _VERSIONS), "/var/log/php-fpm/error.log")
_TEXTS = (
    *("/etc/php/*/fpm/php-fpm.conf", "/etc/php/*/fpm/pool.d/*.conf"),
    *("/etc/php-fpm.conf", "/etc/php-fpm.d/*.conf"),
)
# Process titles of a master and of its workers.
_MASTER = re.compile(r"php-fpm: master process \((/[^()]{1,1000})\)")
_WORKER = re.compile(r"php-fpm: pool ([\w.-]{1,100})")
_POOL = re.compile(r"(?m)^[ \t]*\[([\w.-]{1,100})\]")
_LOG_SETTING = re.compile(r"(?m)^[ \t]*(error_log|slowlog)[ \t]*=[ \t]*([^\s;]{1,1000})")
_INI = re.compile(r"(?m)^(?:Loaded Configuration File|Additional .ini files parsed) => (/.*)$|^(/[^,\s]+\.ini),?$")
_INI_PATH = re.compile(r"(?m)^Configuration File \(php\.ini\) Path => (/.*)$")
_USUAL = "pm pm.max_children pm.start_servers pm.min_spare_servers pm.max_spare_servers pm.max_requests"
_OPTIONAL = "pm.process_idle_timeout listen.backlog request_terminate_timeout request_slowlog_timeout"
_OPCACHE = "enable memory_consumption interned_strings_buffer max_accelerated_files validate_timestamps revalidate_freq"


def _startup(process: Process, inventory: Inventory) -> Startup:
    """Find the configuration by the master's title, and php.ini by its program if both are in the same folder."""
    title = _MASTER.match(" ".join(process.command))
    file = safe_path(title[1]) if title else ""
    debian = _DEBIAN.fullmatch(file)
    if process.unit:
        reload = command("systemctl", "reload", process.unit)
    elif debian:
        reload = f"service php{debian[1]}-fpm reload"
    else:
        reload = signal_command("USR2", process) if title else ""
    files = (file, *_ini_files(file, inventory.builds.get(process.program, ""))) if file else ()
    test = command(process.program or process.name, "-t", "-y", file)
    return Startup("php-fpm", files, posixpath.dirname(file), test, reload, uncertainty(process, file, False))


def _ini_files(file: str, build: str) -> tuple[str, ...]:
    """Return php.ini and the additional ini files if the master was started with its compiled folder; else nothing."""
    folder = _INI_PATH.search(build)
    if folder is None or safe_path(folder[1].strip()) != posixpath.dirname(file):
        return ()
    paths = (name.strip().rstrip(",") for names in _INI.findall(build) for name in names if name)
    return tuple(path for path in map(safe_path, paths) if path)


def _pools(master: Process, startup: Startup, inventory: Inventory) -> list[str]:
    """Return the pools by the titles of its processes and by its configuration: a pool can be without processes."""
    tree = inventory.tree(master.pid)
    titles = (_WORKER.match(" ".join(process.command)) for process in inventory.processes if process.pid in tree)
    named = [title[1] for title in titles if title]
    return sorted({*named, *_POOL.findall(_texts(startup, inventory))} - {"global"})


def _texts(startup: Startup, inventory: Inventory) -> str:
    folder = f"{startup.root}/php-fpm" if startup.root == "/etc" else f"{startup.root}/"
    return "\n".join(text for file, text in inventory.texts.items() if startup.root and file.startswith(folder))


def _offer(master: Process, startup: Startup, inventory: Inventory) -> ServerOffer:
    logged = [(key, safe_path(path)) for key, path in _LOG_SETTING.findall(_texts(startup, inventory))]
    log = next((path for key, path in logged if key == "error_log" and path), "")
    main = CandidateKnob.of_file(startup, log=log)
    tails = tuple(f"tail -n 3 -F {shlex.quote(path)}" for _, path in logged if path)
    pools = {each.pid: _pools(each, _startup(each, inventory), inventory) for each in inventory.masters(_NAMES)}
    candidates = _candidates(main, startup, pools[master.pid], sum(map(len, pools.values())) == 1)
    return ServerOffer(f"PHP-FPM ({master.name})", candidates, tails)


def _candidates(main: CandidateKnob, startup: Startup, pools: list[str], is_single: bool) -> Iterator[CandidateKnob]:
    for pool in pools:
        label = "" if is_single else pool
        yield from main.directives(_USUAL, usual=True, section=pool, label=label)
        yield from main.directives(_OPTIONAL, usual=False, section=pool, label=label)
    if len(startup.files) > 1:
        names = " ".join(f"opcache.{name}" for name in _OPCACHE.split())
        yield from main._replace(file=startup.files[1]).directives(names, usual=False)


KIND = ServerKind(
    name="php-fpm",
    processes=(_NAMES,),
    startup=_startup,
    offer=_offer,
    speaks_http=False,
    pattern=_NAMES,
    texts=_TEXTS,
    grammar=PhpFpmGrammar(),
    status=(STATUS,),
    pages=pages,
    partial_log=PARTIAL_LOG,
    error_logs=_LOGS,
    failure=r"\[\d\d-\w{3}-\d{4} [\d:]{8}\] (?:ERROR|ALERT): (.*)",
    reload_replaces=("php-fpm",),
    version="-i",
    include=r"^\s*include\s*=\s*(\"[^\"\n]*\"|'[^'\n]*'|[^\s;]+(?:[ \t]+[^\s;]+)*)\s*(?:;.*)?$",
    settings=SETTINGS,
)
