"""gunicorn: running masters, with their settings in a Python file."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence
from itertools import pairwise

from cockpit.servers.gunicorn.editor import GunicornGrammar
from cockpit.servers.gunicorn.settings import SETTINGS
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, ServerKind, ServerOffer, StartSetting
from cockpit.servers.settings import Impact, KnownSetting
from cockpit.servers.startup import Startup, absolute, command, signal_command, uncertainty

_NAMES = ("gunicorn", "gunicorn3")
# The configuration file without -c, in the working directory.
_DEFAULT = "gunicorn.conf.py"
# Short options and the settings that they set. The command line overrides the file.
_SHORT = {"w": "workers", "k": "worker_class", "t": "timeout"}
# Long options whose names differ from those of their settings.
_RENAMED = {"keep_alive": "keepalive", "preload": "preload_app"}
# Environment variable with command line options: overrides the file, is overridden by the command line.
_VARIABLE = "GUNICORN_CMD_ARGS"
_USUAL = ("workers", "threads", "worker_class", "keepalive")
# Reads the file as a reload does, and checks each value by the rules of gunicorn. `gunicorn --check-config` would also
# import and run the application, as this login instead of as the user of the workers.
_CHECK = """\
import runpy, sys
from gunicorn.config import Config
config = Config()
for name, value in runpy.run_path(sys.argv[1]).items():
    if name in config.settings:
        config.set(name, value)
config.worker_class
"""


def _in_environment(process: Process) -> list[str]:
    try:
        return shlex.split(process.fact(_VARIABLE))
    except ValueError:
        return []


def _overridden(process: Process) -> tuple[tuple[str, str], ...]:
    places = dict.fromkeys(_options(_in_environment(process)), f"{_VARIABLE} in its environment")
    places |= dict.fromkeys(_options(process.command[1:]), "its command line")
    return tuple((name, place) for name, place in places.items() if name in SETTINGS)


def _options(words: Sequence[str]) -> dict[str, str]:
    """Return the options by the names of settings; also `config` and `pid`."""
    values: dict[str, str] = {}
    for word, following in pairwise((*words, "")):
        # "" for an option without a value.
        after = "" if following.startswith("-") else following
        if word.startswith("--"):
            option, sign, value = word[2:].partition("=")
            name = option.replace("-", "_")
            values[_RENAMED.get(name, name)] = value if sign else after
        elif len(word) > 1 and word[0] == "-" and word[1] in "cpwktb":
            name = {"c": "config", "p": "pid", "b": "bind"}.get(word[1]) or _SHORT[word[1]]
            values[name] = word[2:] or after
    return values


def _at_start(name: str, setting: KnownSetting) -> StartSetting:
    """Return the setting as a command line option, to be changed in its unit. The number of workers can also be an
    environment variable."""
    short = tuple(f"-{letter}" for letter, of in _SHORT.items() if of == name)
    long = next((option for option, of in _RENAMED.items() if of == name), name)
    options = (f"--{long.replace('_', '-')}", *short)
    fallback = "WEB_CONCURRENCY" if name == "workers" else ""
    known = setting._replace(impact=Impact.RESTART)
    return StartSetting(name, known, options, fallback=fallback, usual=name in _USUAL)


def _startup(process: Process, inventory: Inventory) -> Startup:
    """Find the configuration by -c, else in its working directory."""
    given = _options(_in_environment(process)) | _options(process.command[1:])
    named = given.get("config", "").removeprefix("file:")
    file = "" if named.startswith("python:") else absolute(named or _DEFAULT, process.directory)
    pid = absolute(given.get("pid", ""), process.directory)
    if process.unit:
        reload = command("systemctl", "kill", "--signal=HUP", "--kill-who=main", process.unit)
    elif pid and process.origin != "user":
        reload = f'kill -HUP "$(cat {shlex.quote(pid)})"'
    else:
        reload = signal_command("HUP", process)
    python = next((word for word in process.command[:1] if word.startswith("/")), process.program)
    test = f"cd {shlex.quote(process.directory or '/')} && {command(python, '-c', _CHECK, file)}"
    root = posixpath.dirname(file) if file else ""
    why = uncertainty(process, file, False)
    return Startup("gunicorn", (file,) if file else (), root, test, reload, why, overridden=_overridden(process))


def _offer(master: Process, startup: Startup, inventory: Inventory) -> ServerOffer:
    main = CandidateKnob.of_file(startup)
    offered = [name for name in SETTINGS if name not in dict(startup.overridden)]
    candidates = (candidate for name in offered for candidate in main.directives(name, usual=name in _USUAL))
    return ServerOffer("gunicorn", candidates)


KIND = ServerKind(
    name="gunicorn",
    processes=_NAMES,
    startup=_startup,
    offer=_offer,
    grammar=GunicornGrammar(),
    reload_replaces=_NAMES,
    variables=(_VARIABLE,),
    settings=SETTINGS,
    at_start=tuple(_at_start(name, setting) for name, setting in SETTINGS.items() if name != "preload_app"),
)
