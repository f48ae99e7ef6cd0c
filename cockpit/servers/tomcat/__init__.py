"""Tomcat, as Debian packages it: one package per version, its options in /etc/default."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import CandidateKnob, RunningServer, ServerKind
from cockpit.servers.tomcat.status import STATUS

_VERSIONS = (11, 10, 9, 8)
_LOGS = tuple(f"/var/log/tomcat{version}/catalina.out" for version in _VERSIONS)


def _discover(inventory: Inventory) -> Iterator[RunningServer]:
    machines = [process for process in inventory.processes if process.name == "java"]
    if not any("catalina" in word for process in machines for word in process.command):
        return
    version = next((v for v in _VERSIONS if f"/etc/default/tomcat{v}" in inventory.files), None)
    candidates: tuple[CandidateKnob, ...] = ()
    if version is not None:
        file, reload = f"/etc/default/tomcat{version}", f"service tomcat{version} restart"
        options = CandidateKnob("JAVA_OPTS", "keyvalue", file, key="JAVA_OPTS", reload=reload, usual=True)
        candidates = (options,)
    ports, tails = inventory.ports("java"), inventory.tails(*_LOGS)
    yield RunningServer(f"Tomcat{version or ''}", "java", len(machines), ports, candidates, tails)


KIND = ServerKind(
    name="tomcat",
    processes=("java",),
    discover=_discover,
    files=(*(f"/etc/default/tomcat{version}" for version in _VERSIONS), *_LOGS),
    status=(STATUS,),
)
