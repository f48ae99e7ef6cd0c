"""Tomcat, as Debian packages it: one package per version, its options in /etc/default."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, RunningServer, ServerKind
from cockpit.servers.startup import Startup, absolute, doubt
from cockpit.servers.tomcat.settings import SETTINGS
from cockpit.servers.tomcat.status import STATUS

_VERSIONS = (11, 10, 9, 8)
_LOGS = tuple(f"/var/log/tomcat{version}/catalina.out" for version in _VERSIONS)


def _discover(inventory: Inventory) -> Iterator[RunningServer]:
    """A Tomcat is known by its -Dcatalina.base; options are only in /etc/default for the packaged one."""
    for process in inventory.processes:
        base = _base(process) if process.name == "java" else ""
        if not base:
            continue
        version = next((v for v in _VERSIONS if base == f"/var/lib/tomcat{v}"), None)
        file, reload = (f"/etc/default/tomcat{version}", f"service tomcat{version} restart") if version else ("", "")
        options = CandidateKnob("JAVA_OPTS", "keyvalue", file, key="JAVA_OPTS", reload=reload, usual=True)
        startup = Startup(
            kind="tomcat",
            files=(f"{base}/conf/server.xml",),
            root=base,
            reload=reload,
            doubt=doubt(process, base, False),
            log=f"{base}/logs/catalina.out",
        )
        yield RunningServer(
            title=f"Tomcat{version or ''}",
            pattern="java",
            processes=1,
            ports=inventory.ports_of(process.pid),
            candidates=(options,) if file in inventory.files else (),
            tail=inventory.tails(f"/var/log/tomcat{version}/catalina.out"),
            startup=startup,
        )


def _base(process: Process) -> str:
    """The directory of an instance, by the last option that names it; "" for another program."""
    named = [word.partition("=")[2] for word in process.command if word.startswith("-Dcatalina.base=")]
    return absolute(named[-1], process.directory) if named else ""


KIND = ServerKind(
    name="tomcat",
    processes=("java",),
    discover=_discover,
    files=(*(f"/etc/default/tomcat{version}" for version in _VERSIONS), *_LOGS),
    status=(STATUS,),
    settings=SETTINGS,
)
