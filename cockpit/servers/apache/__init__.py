"""Apache httpd, as packaged by Debian and Red Hat."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.servers.access_log import combined_request
from cockpit.servers.apache.editor import MPMS, ApacheGrammar, known_conditions
from cockpit.servers.apache.logs import parse as parse_access
from cockpit.servers.apache.pages import pages
from cockpit.servers.apache.settings import SETTINGS
from cockpit.servers.apache.sites import LOG_DIRECTORY, sites, timed
from cockpit.servers.apache.status import STATUS
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, CandidateOption, ServerKind, ServerOffer
from cockpit.servers.startup import Startup, absolute, command, last, options, uncertainty

MODULES = "/etc/apache2/mods-enabled"
_DEBIAN_LOG, _RED_HAT_LOG = "/var/log/apache2/error.log", "/var/log/httpd/error_log"
_DEBIAN, _RED_HAT = "/etc/apache2/apache2.conf", "/etc/httpd/conf/httpd.conf"
# A further instance on Debian. Its programs are run by apachectl, because envvars is part of the configuration.
_INSTANCE = re.compile(r"/etc/apache2-[\w.-]+")
_BUILD_OPTION = re.compile(r'-D (HTTPD_ROOT|SERVER_CONFIG_FILE)="([^"]*)"')
_VALUE_OPTIONS = "DCcdfEk"
_PREFORK = "MinSpareServers MaxSpareServers MaxRequestWorkers MaxConnectionsPerChild"
_THREADS = "MinSpareThreads MaxSpareThreads MaxRequestWorkers MaxConnectionsPerChild"
_UPSTREAM = re.compile(
    r"(?im)^[ \t]*(?:ProxyPass(?:Match)?[ \t]+(?:(?:\"[^\"\n]*\"|[/^]\S*)[ \t]+)?|BalancerMember[ \t]+|"
    r"SetHandler[ \t]+\"?proxy:)"
    r"\"?([a-z]+:[^\s\"]+)"
    r"|^[ \t]*worker\.[\w.-]+\.host[ \t]*=[ \t]*(\S+)[ \t]*\n[ \t]*worker\.[\w.-]+\.port[ \t]*=[ \t]*(\d+)"
)
_ERROR_LOG = re.compile(r"(?im)^[ \t]*ErrorLog[ \t]+\"?([^\s\"|]+)")
_OPTIONAL = "StartServers ServerLimit ListenBacklog SendBufferSize ReceiveBufferSize MaxMemFree"
_OPTIONAL_THREADS = f"{_OPTIONAL} ThreadsPerChild ThreadLimit ThreadStackSize"
_MAIN = "KeepAlive KeepAliveTimeout MaxKeepAliveRequests Timeout HostnameLookups EnableSendfile EnableMMAP"
_MPM = re.compile(r"(?m)^Server MPM: +(\w{1,20})$")
_MPM_LIBRARY = "mod_mpm_"
_DEFLATE = f"{MODULES}/deflate.conf"
_HTTP2 = f"{MODULES}/http2.conf"
_HTTP2_SETTINGS = "Protocols H2MaxSessionStreams H2MinWorkers H2MaxWorkers"
_CACHES = ("disk", "socache")
_CACHE_FILE = "/etc/apache2/mods-available/cache_{}.conf"
_CACHE_ENABLED = re.compile(r"(?im)^[ \t]*CacheEnable[ \t]")


def _startup(process: Process, inventory: Inventory) -> Startup:
    """Find the configuration by -d and -f, else by the defaults that `apache2 -V` prints."""
    given = options(process.command[1:], _VALUE_OPTIONS)
    build = inventory.builds.get(process.program)
    built = dict(_BUILD_OPTION.findall(build or ""))
    if build is None:
        is_debian = process.name == "apache2"
        built = {"HTTPD_ROOT": "/etc/apache2" if is_debian else "/etc/httpd"}
        built["SERVER_CONFIG_FILE"] = "apache2.conf" if is_debian else "conf/httpd.conf"
    root = absolute(last(given, "d") or built.get("HTTPD_ROOT", ""), "")
    file = absolute(last(given, "f") or built.get("SERVER_CONFIG_FILE", "conf/httpd.conf"), root)
    if file in (_DEBIAN, _RED_HAT):
        test, reload = "apachectl -t", "apachectl graceful"
    elif _INSTANCE.fullmatch(root) and file == f"{root}/apache2.conf":
        test, reload = (f"APACHE_CONFDIR={root} apachectl {word}" for word in ("-t", "graceful"))
    else:
        flags = ["-d", root, "-f", file, *(f"-D{name}" for name in given.get("D", ()))]
        test, reload = (
            command(process.program or process.name, *flags, *words) for words in (("-t",), ("-k", "graceful"))
        )
    reason = uncertainty(process, file, not last(given, "f").startswith("/"), built=build is not None)
    conditions = known_conditions(_mpm(process, inventory), _libraries(process), given.get("D", ()))
    return Startup("apache", (file,) if file else (), root, test, reload, reason, conditions=conditions)


def _mpm(master: Process, inventory: Inventory) -> str:
    """Return the MPM of the loaded library, else the compiled default; "" if both are unknown."""
    built = _MPM.search(inventory.builds.get(master.program, ""))
    loaded = (name.removeprefix(_MPM_LIBRARY) for name in _libraries(master) if name.startswith(_MPM_LIBRARY))
    return next(loaded, built[1] if built else "")


def _libraries(master: Process) -> list[str]:
    """Return the loaded libraries of modules, such as mod_deflate."""
    return master.fact("library").split()


def _offer(master: Process, startup: Startup, inventory: Inventory) -> ServerOffer:
    return _debian(inventory, startup) if startup.file == _DEBIAN else _unpackaged(inventory, master, startup)


def _debian(inventory: Inventory, startup: Startup) -> ServerOffer:
    mpm = next((mpm for mpm in MPMS if f"{MODULES}/mpm_{mpm}.load" in inventory.files), "event")
    main = CandidateKnob.of_file(startup)
    mpm_file = main._replace(file=f"/etc/apache2/mods-available/mpm_{mpm}.conf")
    deflate, http2 = (main._replace(file=inventory.readable(file)) for file in (_DEFLATE, _HTTP2))
    candidates = (
        *_of_mpm(mpm_file, mpm),
        *_modules(inventory, startup.test),
        *main.directives(_MAIN, usual=False),
        *main.directives("AllowOverride", usual=False, section="Directory /var/www/"),
        *(deflate.directives("DeflateCompressionLevel", usual=False) if deflate.file else ()),
        *(http2.directives(_HTTP2_SETTINGS, usual=False) if http2.file else ()),
    )
    return ServerOffer(f"Apache ({mpm})", candidates, inventory.tails(_DEBIAN_LOG))


def _modules(inventory: Inventory, test: str) -> Iterator[CandidateKnob]:
    """Yield knobs that switch Debian's modules. mod_cache is offered if a file enables a cache for some URLs."""
    caches = [name for name in _CACHES if _CACHE_ENABLED.search(inventory.text(_CACHE_FILE.format(name)))]
    yield _module("MPM", [_option(mpm, f"mpm_{mpm}", *(f"mpm_{other}" for other in MPMS)) for mpm in MPMS], test)
    for module in ("deflate", "http2"):
        yield _module(f"mod_{module}", [_option("on", module), _option("off", "", module)], test)
    if caches:
        others = [f"cache_{name}" for name in _CACHES]
        options = [_option(name, f"cache_{name}", *others) for name in caches]
        yield _module("mod_cache", [*options, _option("none", "", *others, "cache")], test)


def _option(name: str, module: str, *others: str) -> CandidateOption:
    """Return the option that enables the module and disables the others. Without a module it disables all others."""
    off = [f"a2dismod -q -f {' '.join(other for other in others if other != module)}"] if others else []
    on = [f"a2enmod -q {module}"] if module else []
    enabled = " || ".join(f"[ -e {MODULES}/{name}.load ]" for name in ([module] if module else others))
    return CandidateOption(name, " && ".join((*off, *on)), enabled if module else f"! {{ {enabled}; }}")


def _module(name: str, options: list[CandidateOption], test: str) -> CandidateKnob:
    return CandidateKnob(name, "choice", test=test, reload="service apache2 restart", option=tuple(options))


def _of_mpm(file: CandidateKnob, mpm: str) -> Iterator[CandidateKnob]:
    yield from file.directives(_PREFORK if mpm == "prefork" else _THREADS, usual=True)
    yield from file.directives(_OPTIONAL if mpm == "prefork" else _OPTIONAL_THREADS, usual=False)
    if mpm == "event":
        yield from file.directives("AsyncRequestWorkerFactor", usual=False)


def _unpackaged(inventory: Inventory, master: Process, startup: Startup) -> ServerOffer:
    main = CandidateKnob.of_file(startup)
    mpm = _mpm(master, inventory)
    candidates = (
        *(_of_mpm(main, mpm) if mpm else main.directives("MaxRequestWorkers MaxConnectionsPerChild", usual=True)),
        *main.directives("KeepAlive", usual=True),
        *main.directives(_MAIN.removeprefix("KeepAlive "), usual=False),
        *main.directives("AllowOverride", usual=False, section='Directory "/var/www/html"'),
        *(main.directives(_HTTP2_SETTINGS, usual=False) if "mod_http2" in _libraries(master) else ()),
    )
    tails = inventory.tails(_RED_HAT_LOG) if startup.file == _RED_HAT else ()
    return ServerOffer(f"Apache ({master.name})", candidates, tails)


KIND = ServerKind(
    name="apache",
    processes=("apache2", "httpd"),
    startup=_startup,
    offer=_offer,
    files=(
        *(f"{MODULES}/mpm_{mpm}.load" for mpm in MPMS),
        _DEFLATE,
        _HTTP2,
        _RED_HAT,
        _DEBIAN_LOG,
        _RED_HAT_LOG,
    ),
    texts=tuple(map(_CACHE_FILE.format, _CACHES)),
    grammar=ApacheGrammar(),
    status=(STATUS,),
    pages=pages,
    error_logs=(_DEBIAN_LOG, _RED_HAT_LOG),
    # AH02155 (a user without a name) is no failure: the server runs.
    failure=r"\[\w*:(?:emerg|alert|crit)\](?>\s*(?:\[[^\]]*\]\s*)*)(?!AH02155:)(.*)",
    correction=r"AH\d{5}: .*",
    chatter=r"AH00558|AH00112|fully qualified domain name|Action '.*' failed|The Apache error log may",
    reload_replaces=("apache", "httpd"),
    settings=SETTINGS,
    access_log=parse_access,
    logged_request=combined_request,
    sites=sites,
    timed=timed,
    variables=(LOG_DIRECTORY,),
    version="-V",
    library="mod_[a-z0-9_]*",
    upstream=_UPSTREAM,
    own_log=_ERROR_LOG,
    # The workers of mod_jk are in a separate file.
    include=r"(?i)^\s*(?:Include(?:Optional)?|JkWorkersFile)\s+(.+?)\s*$",
)
