"""Varnish: a change is written to the command line that starts it, and made active by `varnishadm param.set`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from cockpit.servers.editing import ConfigError
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, RunningServer, ServerKind, StatusAddress, running
from cockpit.servers.startup import Startup, absolute, command, doubt, last, options
from cockpit.servers.varnish.editor import STORAGE, TAKING, VarnishGrammar, given_options
from cockpit.servers.varnish.settings import SETTINGS
from cockpit.servers.varnish.status import STATUS

# The manager, and its child that serves requests.
_NAMES = ("varnishd", "cache-main")
# Files of a service script, both of its name.
_DEFAULTS, _SCRIPTS = "/etc/default/", "/etc/init.d/"
_UNITS, _PACKAGED = "/etc/systemd/system/", ("/lib/systemd/system/", "/usr/lib/systemd/system/")
_TEXTS = (
    *(f"{place}*varnish*" for place in (_DEFAULTS, _SCRIPTS)),
    *(f"{place}*varnish*.service" for place in (_UNITS, *_PACKAGED)),
    f"{_UNITS}*varnish*.service.d/*.conf",
)
_LOG = "/var/log/varnish/varnishncsa.log"
_VCL_PATH = "/etc/varnish"
_USUAL = ("thread_pools", "thread_pool_min", "thread_pool_max", "default_ttl")
# Options that a change may have altered since the start, or that the service script adds.
_CHANGEABLE = "pstP"
# A backend's host and port in any order, behind braces of a probe too; and the option -b.
_BODY = r'(?:[^{}"]|"[^"\n]*"|\{[^{}]*\})*?'
_FIELD = r'\s*=\s*"([^"\n]*)"'
_UPSTREAM = re.compile(
    rf"(?m)^[ \t]*backend\s+\w+\s*\{{(?={_BODY}\.(?:host|path){_FIELD})(?:(?={_BODY}\.port{_FIELD}))?"
    r"|\s-b[ \t]*(?!none\b)([\w.:\[\]/-]+)"
)
# The first lines of a refusal have its reason; -C prints the compiled VCL to stderr.
_REASON = (
    'out=$({} 2>&1) || {{ printf "%s\\n" "$out" | grep -Ev "^Error:$|^Could not delete" | grep -m {} . >&2; exit 1; }}'
)
_AWK = "awk '/^ *Value is:/ { print $3; found = 1 } END { exit !found }'"


def _given(process: Process) -> dict[str, list[str]]:
    return options(process.command[1:], TAKING)


def _kept(found: dict[str, list[str]]) -> dict[str, list[str]]:
    return {letter: values for letter, values in found.items() if letter not in _CHANGEABLE}


def _starts(text: str, process: Process) -> bool:
    """Whether the running process has the options of a file, so that it was started by that."""
    try:
        given, _ = given_options(text.encode())
    except ConfigError:
        return False
    found: dict[str, list[str]] = {}
    for option in given:
        found.setdefault(option.letter, []).append(option.value)
    return _kept(found) == _kept(_given(process))


def _places(process: Process, inventory: Inventory) -> list[str]:
    """The files that may start it: those of its unit that override others first, or those of service scripts."""
    if not process.unit:
        scripts = (file for file in inventory.texts if file.startswith(_SCRIPTS))
        return [file for script in scripts if (file := _DEFAULTS + script.removeprefix(_SCRIPTS)) in inventory.texts]
    added = sorted(file for file in inventory.texts if file.startswith(f"{_UNITS}{process.unit}.d/"))
    units = (*reversed(added), *(f"{place}{process.unit}" for place in (_UNITS, *_PACKAGED)))
    return [file for file in units if "ExecStart" in inventory.texts.get(file, "")][:1]


def _fixed(process: Process, file: str) -> str:
    """Why its options cannot be changed in a file, "" if they can."""
    if not process.directory:
        return "its working directory cannot be read: log in as root, or set sudo = true"
    if file.startswith(_PACKAGED):
        return f"its options are in the unit of its package: run systemctl edit --full {process.unit}"
    return "" if file else "no file is known that starts it with these options"


def _startup(process: Process, inventory: Inventory) -> Startup:
    """The file with its options and its VCL. Commands name the instance by its working directory."""
    places = _places(process, inventory)
    file = next((file for file in places if _starts(inventory.texts[file], process)), "")
    fixed = _fixed(process, file)
    vcl = absolute(last(_given(process), "f"), _VCL_PATH)
    files = tuple(name for name in ("" if fixed else file, vcl) if name)
    source = ("-f", vcl) if vcl else ("-b", last(_given(process), "b"))
    test = _REASON.format(command(process.program or process.name, "-C", *source), 3)
    # Debian's `restart` fails in its own test, which needs the port of the running server.
    service = command("service", file.removeprefix(_DEFAULTS))
    restart = f"{service} stop && {service} start"
    if process.unit:
        restart = f"systemctl daemon-reload && {command('systemctl', 'restart', process.unit)}"
    why = doubt(process, file or process.directory, False)
    return Startup("varnish", files, _VCL_PATH, test, "" if fixed else restart, why, fixed=fixed)


def _discover(inventory: Inventory) -> Iterator[RunningServer]:
    for master in inventory.masters(*_NAMES):
        startup = _startup(master, inventory)
        candidates = (_candidate(name, master, startup) for name in SETTINGS if not startup.fixed)
        status = (StatusAddress("varnish", f"unix:{master.directory}"),) if master.directory else ()
        tails = () if "n" in _given(master) else inventory.tails(_LOG)
        yield running("Varnish", "cache-main", inventory, master, startup, candidates, tails, status)


def _candidate(name: str, master: Process, startup: Startup) -> CandidateKnob:
    knob = CandidateKnob(name, "varnish", startup.file, directive=name, test=startup.test, usual=name in _USUAL)
    if name == STORAGE:
        return knob._replace(reload=startup.reload)
    admin = f"varnishadm -n {shlex.quote(master.directory)}"
    return knob._replace(
        get=f"{admin} param.show {name} | {_AWK}",
        set=_REASON.format(f'{admin} param.set {name} "$1"', 1),
        reload="systemctl daemon-reload" if master.unit else "",
        cost="live",
    )


KIND = ServerKind(
    name="varnish",
    processes=_NAMES,
    discover=_discover,
    files=(_LOG,),
    texts=_TEXTS,
    grammar=VarnishGrammar(),
    status=(STATUS,),
    startup=_startup,
    include=r'^\s*include\s+("[^"\n]+")\s*;',
    upstream=_UPSTREAM,
    settings=SETTINGS,
)
