"""MariaDB: a change is written to an option file, and activated by SET GLOBAL."""

from __future__ import annotations

import posixpath
import shlex
from itertools import pairwise

from cockpit.servers.inventory import Inventory, Process, safe_path
from cockpit.servers.kind import CandidateKnob, ServerKind, ServerOffer, StatusAddress
from cockpit.servers.mariadb.editor import MariadbGrammar
from cockpit.servers.mariadb.settings import SETTINGS
from cockpit.servers.mariadb.status import STATUS
from cockpit.servers.startup import Startup, absolute, command, uncertainty

_NAMES = ("mariadbd",)
# Read in this order unless --defaults-file names one.
_CONFIGS = ("/etc/my.cnf", "/etc/mysql/my.cnf")
_LOGS = ("/var/log/mysql/error.log", "/var/log/mariadb/mariadb.log")
_SOCKETS = ("/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock")
_USUAL = ("max_connections", "innodb_buffer_pool_size", "thread_cache_size", "table_open_cache")
# For an invalid option of a plugin, mariadbd prints an error but exits with 0.
_TEST = 'out=$({} 2>&1 >/dev/null) && case $out in *"[ERROR]"*) false ;; esac || {{ echo "$out" >&2; exit 1; }}'
# "$1" is checked before it becomes part of the statement, against SQL injection.
_SET = 'case $1 in "" | *[!A-Za-z0-9_]*) echo "not a valid value" >&2; exit 1 ;; esac; '


def _given(process: Process) -> dict[str, str]:
    """Return the options of its command line (`--name=value` or `--name value`), with underscores in the names."""
    values: dict[str, str] = {}
    for word, following in pairwise((*process.command[1:], "")):
        if word.startswith("--"):
            name, sign, value = word[2:].partition("=")
            values[name.replace("-", "_")] = value if sign or following.startswith("-") else following
    return values


def _startup(process: Process, inventory: Inventory) -> Startup:
    given = _given(process)
    file = absolute(given.get("defaults_file", ""), process.directory)
    extra = absolute(given.get("defaults_extra_file", ""), process.directory)
    known = tuple(name for name in _CONFIGS if name in inventory.files)
    files = () if "no_defaults" in given else (file,) if file else (*known, *([extra] if extra else []))
    flags = [f"--defaults-file={file}"] if file else [f"--defaults-extra-file={extra}"] if extra else []
    test = _TEST.format(command(process.program or process.name, *flags, "--help", "--verbose"))
    restart = command("systemctl", "restart", process.unit) if process.unit else "service mariadb restart"
    root = posixpath.dirname(files[0]) if files else ""
    reason = uncertainty(process, files[0] if files else "", False)
    return Startup("mariadb", files, root, test, "" if flags and not process.unit else restart, reason)


def _socket(process: Process, inventory: Inventory) -> str:
    """Return the socket by the command line, else a packaged server's default path; "" if unknown."""
    given = _given(process)
    if "socket" in given or "defaults_file" in given:
        return absolute(given.get("socket", ""), process.directory)
    return next((path for path in _SOCKETS if path in inventory.files), "")


def _offer(master: Process, startup: Startup, inventory: Inventory) -> ServerOffer:
    given, socket = _given(master), _socket(master, inventory)
    candidates = (_candidate(name, startup, socket) for name in SETTINGS if socket and name not in given)
    status = (StatusAddress("mariadb", f"unix:{socket}"),) if socket and inventory.user == "root" else ()
    log = safe_path(given.get("log_error", ""))
    tails = (f"tail -n 3 -F {shlex.quote(log)}",) if log else inventory.tails(*_LOGS)
    return ServerOffer("MariaDB", candidates, tails, status)


def _candidate(name: str, startup: Startup, socket: str) -> CandidateKnob:
    client = f"mariadb --no-defaults --socket={shlex.quote(socket)}"
    return CandidateKnob(
        name=name,
        kind="mariadb",
        file=startup.file,
        section="mysqld",
        directive=name,
        test=startup.test,
        get=f'{client} -NBe "SELECT @@global.{name}"',
        set=f'{_SET}{client} -e "SET GLOBAL {name} = $1"',
        usual=name in _USUAL,
    )


KIND = ServerKind(
    name="mariadb",
    processes=_NAMES,
    startup=_startup,
    offer=_offer,
    speaks_http=False,
    files=(*_CONFIGS, *_LOGS, *_SOCKETS),
    grammar=MariadbGrammar(),
    status=(STATUS,),
    error_logs=_LOGS,
    include=r"^\s*!include(?:dir)?\s+(.+?)\s*$",
    settings=SETTINGS,
)
