"""From a URL and the names of hosts to a new profile: each host is looked at, and what was found makes the draft."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from cockpit.hosts.prompts import Asker, Keyring
from cockpit.hosts.target_host import bare_host, leads_to, port_of
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import CockpitError
from cockpit.model.hosts import HostConfig, StatusPage
from cockpit.model.knobs import Knob
from cockpit.model.via import name_of, split_chain
from cockpit.profiles import catalogue
from cockpit.profiles.writing import Draft
from cockpit.servers.kind import RunningServer
from cockpit.tuning.server_discovery import DiscoveredHost, Offered, discover

# The destination of a host without ssh.
HERE = "this machine"
# Programs that pass the requests to a published port on to a container.
_TO_CONTAINERS = frozenset({"conmon", "docker-proxy", "rootlessport"})
_ODD = re.compile(r"[^A-Za-z0-9_-]+")


class Surveyed(NamedTuple):
    """A host and its discovery; `problem` says why it failed."""

    config: HostConfig
    found: DiscoveredHost | None
    problem: str = ""

    @property
    def server(self) -> RunningServer | None:
        """The server to watch: the one that answers, else the possible one with most processes."""
        if self.found is None:
            return None
        most = max(self.found.able, key=lambda server: server.processes, default=None)
        return self.found.serving or most

    @property
    def words(self) -> str:
        if self.found is None:
            return self.problem
        strangers = ", ".join(self.found.strangers)
        words = [f"the target's port is served by {strangers}, {_who(self.found.strangers)}"] if strangers else []
        if not self.found.servers:
            words.append("no known server runs there; the host can still be watched")
        elif self.found.serving is None and not self.found.able and not strangers:
            words.append("none of these servers listens on the target's port")
        words += [f"chain: {hop.words}{'' if hop.is_here else ', on another host'}" for hop in self.found.chain]
        serving = self.found.serving
        servers = sorted(self.found.servers, key=lambda server: server is not serving)
        words += [("on the target's port: " if server is serving else "") + _described(server) for server in servers]
        return f"as {self.found.user}: {'; '.join(words)}"

    def watched(self, server: RunningServer) -> HostConfig:
        """The host with the processes, logs and status pages of a server and of those behind it."""
        chain = self.found.chain if self.found and server is self.found.serving else ()
        servers = [server, *(hop.server for hop in chain if hop.server)]
        names = [_literal(hop.name) for hop in chain if not hop.server and hop.name]
        pages = [StatusPage(kind=page.kind, url=page.url) for each in servers for page in each.status]
        return replace(
            self.config,
            processes=tuple(dict.fromkeys([*(each.pattern for each in servers), *names])),
            behind=tuple(dict.fromkeys(hop.upstream.words for hop in chain if hop.is_here)),
            tail=tuple(dict.fromkeys(tail for each in servers for tail in each.tail)),
            status=tuple(dict.fromkeys(pages)),
        )

    def server_of(self, knobs: Iterable[Knob]) -> RunningServer | None:
        wanted = set(knobs)
        offered = self.found.offered if self.found else ()
        return next((one.server for one in offered if one.server and one.knob in wanted), None)


def _who(strangers: Iterable[str]) -> str:
    if _TO_CONTAINERS.isdisjoint(strangers):
        return "which is no known server"
    return "which passes requests to a container: watch that as well, as docker:NAME or podman:NAME"


def _described(server: RunningServer) -> str:
    ports = f", port {', '.join(map(str, server.ports))}" if server.ports else ""
    words = f"{server.title}, {server.processes} process{'' if server.processes == 1 else 'es'}{ports}"
    startup = server.startup
    if startup is None:
        return words
    known = startup.listed or "configuration unknown"
    if startup.overridden:
        known += "".join(f"; {name} by {place}" for name, place in startup.overridden)
    if startup.doubt:
        return f"{words}, {known} is only assumed: {startup.doubt}"
    if startup.fixed:
        return f"{words}, {known}; {startup.fixed}"
    return f"{words}, {known}" if startup.reload else f"{words}, {known}; no command is known that reloads it"


def hosts_named(texts: Iterable[str]) -> list[HostConfig]:
    """A host per destination (`root@vm1`, an alias, `docker:web1`, `root@vm1/docker:web1`, HERE), each with a unique
    valid name."""
    made: dict[str, HostConfig] = {}
    for text in texts:
        destination = text.strip()
        if not destination:
            continue
        name = host_name(destination)
        number = 2
        while name in made:
            name, number = f"{host_name(destination)}-{number}", number + 1
        ssh, via = split_chain(destination)
        made[name] = HostConfig(name=name, ssh=None if ssh == HERE else ssh, via=via)
    return list(made.values())


def host_name(destination: str) -> str:
    """A short name: web1 for `root@web1.example.com:2222` and `root@vm1/docker:web1`, the digits of an address."""
    if destination == HERE:
        return "here"
    host = name_of(split_chain(destination)[1]) or bare_host(destination)
    short = host if re.fullmatch(r"[0-9a-fA-F:.]+", host) else host.partition(".")[0]
    return _ODD.sub("-", short).strip("-_") or "host"


async def survey(
    config: HostConfig,
    url: str,
    ssh_config: Path | None = None,
    asker: Asker | None = None,
    keyring: Keyring | None = None,
) -> Surveyed:
    """Discover a host with commands that only read; an error becomes its problem."""
    try:
        shell = await open_shell(config, ssh_config, asker, keyring)
    except CockpitError as error:
        return Surveyed(config, None, error.problem)
    try:
        return Surveyed(config, await discover(shell, config.name, port_of(url), leads_to(url, config, ssh_config)))
    except CockpitError as error:
        return Surveyed(config, None, error.problem)
    finally:
        await shell.close()


def draft_of(
    url: str,
    surveyed: Sequence[Surveyed],
    chosen: Iterable[tuple[str, str]] | None = None,
    *,
    question: str = "",
    concurrency: int = 20,
    duration: str = "30s",
    keepalive: bool = True,
) -> Draft:
    """The profile with the chosen knobs, by (host, name); None: the usual ones."""
    wanted = None if chosen is None else set(chosen)
    hosts: list[HostConfig] = []
    notes: dict[str, tuple[str, ...]] = {}
    knobs: list[Knob] = []
    for one in surveyed:
        picked = [each.knob for each in one.found.offered if _picked(each, wanted)] if one.found else []
        server = one.server or one.server_of(picked)
        config = one.config
        if server is not None:
            config = one.watched(server)
        elif one.found is not None and one.found.strangers:
            config = replace(config, processes=(_literal(one.found.strangers[0]),))
        hosts.append(config)
        notes[config.name] = _notes(one)
        knobs += picked
    return Draft(
        url=url,
        question=question,
        concurrency=concurrency,
        duration=duration,
        keepalive=keepalive,
        hosts=tuple(hosts),
        knobs=tuple(_apart(knobs)),
        notes=notes,
    )


def _literal(name: str) -> str:
    """The shell pattern of exactly this name."""
    return re.sub(r"[*?\[\\]", r"\\\g<0>", name)


def _picked(offered: Offered, wanted: set[tuple[str, str]] | None) -> bool:
    return offered.usual if wanted is None else (offered.knob.host, offered.knob.name) in wanted


def _apart(knobs: Sequence[Knob]) -> Iterator[Knob]:
    """Add the host to the names of knobs with one name on two hosts."""
    names = [knob.name for knob in knobs]
    for knob in knobs:
        yield replace(knob, name=f"{knob.name}-{knob.host}") if names.count(knob.name) > 1 else knob


def _notes(one: Surveyed) -> tuple[str, ...]:
    if one.found is None:
        return (f"{one.config.name} could not be inspected: {one.problem}",)
    notes = [f"found there: {one.words}"]
    if one.found.user not in ("root", ""):
        notes.append(f"if {one.found.user} may not write its configuration: log in as root, or sudo = true")
    return tuple(notes)


def place_for(url: str, surveyed: Sequence[Surveyed]) -> Path:
    """A free path for a new profile: in the profiles of the working directory, else in the user's own."""
    here, shipped = Path("profiles"), catalogue.shipped_folder()
    is_shipped = shipped is not None and here.resolve() == shipped.resolve()
    folder = here if here.is_dir() and not is_shipped else catalogue.own_folder()
    base = surveyed[0].config.name if surveyed else host_name(urlsplit(url).hostname or "url")
    name, number = base, 2
    while (folder / f"{name}{catalogue.SUFFIX}").exists():
        name, number = f"{base}-{number}", number + 1
    return folder / f"{name}{catalogue.SUFFIX}"
