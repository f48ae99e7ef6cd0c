"""Tomcat, as packaged by Debian: one package per version, options in /etc/default, connectors in server.xml."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.servers.editing import ConfigError, ConfigText
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, ServerKind, ServerOffer
from cockpit.servers.startup import Startup, absolute, uncertainty
from cockpit.servers.tomcat.editor import OF_EXECUTOR, TomcatGrammar, elements
from cockpit.servers.tomcat.settings import KEYS, SETTINGS
from cockpit.servers.tomcat.status import STATUS

_VERSIONS = (11, 10, 9, 8)
_LOGS = tuple(f"/var/log/tomcat{version}/catalina.out" for version in _VERSIONS)


# Runs as the server's user, so that no files of another owner are created. Ports in use are no error for configtest.
_TEST = (
    "runuser -u tomcat -- env CATALINA_HOME=/usr/share/tomcat{0} CATALINA_BASE=/var/lib/tomcat{0} CATALINA_TMPDIR=/tmp"
    " /usr/share/tomcat{0}/bin/catalina.sh configtest"
)


def _startup(process: Process, inventory: Inventory) -> Startup | None:
    """Find the configuration by the last -Dcatalina.base. Commands are known for the packaged Tomcat only."""
    bases = [word.partition("=")[2] for word in process.command if word.startswith("-Dcatalina.base=")]
    base = absolute(bases[-1], process.directory) if bases else ""
    if not base:
        return None
    version = _version(base)
    return Startup(
        kind="tomcat",
        files=(f"{base}/conf/server.xml",),
        root=base,
        test=_TEST.format(version) if version else "",
        reload=f"service tomcat{version} restart" if version else "",
        uncertainty=uncertainty(process, base, False),
        log=f"{base}/logs/catalina.out",
    )


def _version(base: str) -> int | None:
    return next((version for version in _VERSIONS if base == f"/var/lib/tomcat{version}"), None)


def _offer(process: Process, startup: Startup, inventory: Inventory) -> ServerOffer:
    version = _version(startup.root)
    candidates = _candidates(inventory, version, startup, inventory.ports_of(process.pid)) if version else ()
    return ServerOffer(f"Tomcat{version or ''}", candidates, inventory.tails(f"/var/log/tomcat{version}/catalina.out"))


def _candidates(
    inventory: Inventory, version: int, startup: Startup, ports: tuple[int, ...]
) -> Iterator[CandidateKnob]:
    """Yield JAVA_OPTS, and the settings of each listening Connector and each Executor."""
    options, file = f"/etc/default/tomcat{version}", f"/etc/tomcat{version}/server.xml"
    if options in inventory.files:
        yield CandidateKnob("JAVA_OPTS", "keyvalue", options, key="JAVA_OPTS", reload=startup.reload, usual=True)
    try:
        known_elements = elements(ConfigText(inventory.texts.get(file, "").encode()))
    except ConfigError:
        return
    main = CandidateKnob.of_file(startup, file=file)
    for element in known_elements:
        kind, _, name = element.section.partition(" ")
        if kind == "Connector" and name not in map(str, ports):
            continue
        # A Connector can have an Executor, which has some settings instead of it.
        in_executor = OF_EXECUTOR if "executor" in element.attributes else frozenset()
        relevant = OF_EXECUTOR if kind == "Executor" else SETTINGS.keys() - in_executor
        for setting in (known for known in SETTINGS if known in relevant):
            usual = setting in ("maxThreads", "acceptCount")
            yield from main.directives(setting, usual=usual, section=element.section, label=name)


KIND = ServerKind(
    name="tomcat",
    processes=("java",),
    startup=_startup,
    offer=_offer,
    has_unit=False,
    files=(*(f"/etc/default/tomcat{version}" for version in _VERSIONS), *_LOGS),
    texts=tuple(f"/etc/tomcat{version}/server.xml" for version in _VERSIONS),
    grammar=TomcatGrammar(),
    status=(STATUS,),
    settings=SETTINGS,
    keys=KEYS,
)
