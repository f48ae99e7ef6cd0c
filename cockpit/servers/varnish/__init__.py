"""Varnish: a change is written to the command line in its unit or defaults file, and activated by `varnishadm
param.set`."""

from __future__ import annotations

import re
import shlex

from cockpit.servers.editing import ConfigError, ConfigText
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, ServerKind, ServerOffer, StatusAddress
from cockpit.servers.startup import Startup, absolute, command, last, options, uncertainty
from cockpit.servers.varnish.editor import STORAGE, TAKING, VarnishGrammar, given_options
from cockpit.servers.varnish.settings import SETTINGS
from cockpit.servers.varnish.status import STATUS

# The manager, and its child that serves requests.
_NAMES = ("varnishd", "cache-main")
# Directories of the two files of a service: its options and its script, with the same name.
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
# Host and port of a backend, in any order, also after the braces of a probe; and the option -b.
_BODY = r'(?:[^{}"]|"[^"\n]*"|\{[^{}]*\})*?'
_FIELD = r'\s*=\s*"([^"\n]*)"'
_UPSTREAM = re.compile(
    rf"(?m)^[ \t]*backend\s+\w+\s*\{{(?={_BODY}\.(?:host|path){_FIELD})(?:(?={_BODY}\.port{_FIELD}))?"
    r"|\s-b[ \t]*(?!none\b)([\w.:\[\]/-]+)"
)
# Prints the first {} lines of an error, which contain the reason: -C also prints the compiled VCL to stderr.
_REASON = (
    'out=$({} 2>&1) || {{ printf "%s\\n" "$out" | grep -Ev "^Error:$|^Could not delete" | grep -m {} . >&2; exit 1; }}'
)
_AWK = "awk '/^ *Value is:/ { print $3; found = 1 } END { exit !found }'"


def _given(process: Process) -> dict[str, list[str]]:
    return options(process.command[1:], TAKING)


def _constant(given: dict[str, list[str]]) -> dict[str, list[str]]:
    return {letter: values for letter, values in given.items() if letter not in _CHANGEABLE}


def _starts(text: str, process: Process) -> bool:
    """Return whether the running process has the options in a file, i.e. the file starts it."""
    try:
        given, _ = given_options(ConfigText(text.encode()))
    except ConfigError:
        return False
    values: dict[str, list[str]] = {}
    for option in given:
        values.setdefault(option.letter, []).append(option.value)
    return _constant(values) == _constant(_given(process))


def _places(process: Process, inventory: Inventory) -> list[str]:
    """Return the files that can start it: the file of its unit with the highest precedence, or the option files of
    service scripts."""
    if not process.unit:
        scripts = (file for file in inventory.texts if file.startswith(_SCRIPTS))
        return [file for script in scripts if (file := _DEFAULTS + script.removeprefix(_SCRIPTS)) in inventory.texts]
    added = sorted(file for file in inventory.texts if file.startswith(f"{_UNITS}{process.unit}.d/"))
    units = (*reversed(added), *(f"{place}{process.unit}" for place in (_UNITS, *_PACKAGED)))
    return [file for file in units if "ExecStart" in inventory.texts.get(file, "")][:1]


def _fixed(process: Process, file: str) -> str:
    """Return why its options cannot be changed in a file, "" if they can."""
    if not process.directory:
        return "its working directory cannot be read: log in as root, or set sudo = true"
    if file.startswith(_PACKAGED):
        return f"its options are in its package's unit: run systemctl edit --full {process.unit}"
    return "" if file else "no file with its options was found"


def _startup(process: Process, inventory: Inventory) -> Startup:
    """Find the file with its options, and its VCL. Commands identify the instance by its working directory."""
    places = _places(process, inventory)
    file = next((file for file in places if _starts(inventory.texts[file], process)), "")
    fixed = _fixed(process, file)
    vcl = absolute(last(_given(process), "f"), _VCL_PATH)
    files = tuple(name for name in ("" if fixed else file, vcl) if name)
    source = ("-f", vcl) if vcl else ("-b", last(_given(process), "b"))
    test = _REASON.format(command(process.program or process.name, "-C", *source), 3)
    # Debian's `restart` tests the configuration while the server runs, and fails because the port is in use.
    service = command("service", file.removeprefix(_DEFAULTS))
    restart = f"{service} stop && {service} start"
    if process.unit:
        restart = f"systemctl daemon-reload && {command('systemctl', 'restart', process.unit)}"
    why = uncertainty(process, file or process.directory, False)
    return Startup("varnish", files, _VCL_PATH, test, "" if fixed else restart, why, read_only_reason=fixed)


def _offer(master: Process, startup: Startup, inventory: Inventory) -> ServerOffer:
    candidates = (_candidate(name, master, startup) for name in SETTINGS if not startup.read_only_reason)
    status = (StatusAddress("varnish", f"unix:{master.directory}"),) if master.directory else ()
    return ServerOffer("Varnish", candidates, () if "n" in _given(master) else inventory.tails(_LOG), status)


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
    startup=_startup,
    offer=_offer,
    pattern="cache-main",
    files=(_LOG,),
    texts=_TEXTS,
    grammar=VarnishGrammar(),
    status=(STATUS,),
    include=r'^\s*include\s+("[^"\n]+")\s*;',
    upstream=_UPSTREAM,
    settings=SETTINGS,
)
