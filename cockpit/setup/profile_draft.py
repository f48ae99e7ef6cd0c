"""Draft a new profile from a URL and host names, by discovering the servers and settings of each host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from cockpit.hosts.ssh.prompts import Keyring, Prompter
from cockpit.hosts.target_host import bare_host, is_on_host, port_of
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import CockpitError
from cockpit.model.host.samples import HostConfig, StatusPage
from cockpit.model.knobs import Knob
from cockpit.model.text import numbered
from cockpit.model.via import name_of, split_chain
from cockpit.profiles import catalogue
from cockpit.profiles.writing import Draft
from cockpit.servers.kind import RunningServer
from cockpit.servers.upstreams import Hop
from cockpit.setup.status_pages import CheckedPage, checked_pages
from cockpit.tuning.discovery.servers import DiscoveredHost, OfferedKnob, discover

# The destination of this machine, which needs no ssh.
HERE = "this machine"
# Programs that forward requests from a published port to a container.
_PORT_FORWARDERS = frozenset({"conmon", "docker-proxy", "rootlessport"})
# Characters that are replaced in a host name.
_INVALID = re.compile(r"[^A-Za-z0-9_-]+")


class HostSurvey(NamedTuple):
    """A host and the result of its discovery; None: failed, because of `problem`. `pages` are the status pages in the
    configurations of the servers to watch."""

    config: HostConfig
    discovered: DiscoveredHost | None
    problem: str = ""
    pages: Sequence[CheckedPage] = ()

    @property
    def server(self) -> RunningServer | None:
        """The server to watch: the target's server, else the candidate with the most processes."""
        if self.discovered is None:
            return None
        most = max(self.discovered.possible_servers, key=lambda server: server.processes, default=None)
        return self.discovered.serving or most

    @property
    def words(self) -> str:
        if self.discovered is None:
            return self.problem
        strangers = ", ".join(self.discovered.unknown_listeners)
        words = (
            [f"the target's port is served by {strangers}, {_stranger(self.discovered.unknown_listeners)}"]
            if strangers
            else []
        )
        if not self.discovered.servers:
            words.append("no known server runs there; the host can still be watched")
        elif self.discovered.serving is None and not self.discovered.possible_servers and not strangers:
            words.append("none of these servers listens on the target's port")
        words += [f"chain: {hop.words}{'' if hop.is_here else ', on another host'}" for hop in self.discovered.chain]
        serving = self.discovered.serving
        servers = sorted(self.discovered.servers, key=lambda server: server is not serving)
        words += [("on the target's port: " if server is serving else "") + _described(server) for server in servers]
        words += _left_out(self.discovered.refused)
        return f"as {self.discovered.user}: {'; '.join(words)}"

    def with_servers_behind(self, server: RunningServer) -> list[RunningServer]:
        """Return a server and those behind it; of another server than the target's, only itself."""
        return [server, *(hop.server for hop in self._chain_of(server) if hop.server)]

    def _chain_of(self, server: RunningServer) -> tuple[Hop, ...]:
        return self.discovered.chain if self.discovered and server is self.discovered.serving else ()

    def watched(self, server: RunningServer) -> HostConfig:
        """Return the host with the processes, logs and status pages of a server and of the servers behind it."""
        chain, servers = self._chain_of(server), self.with_servers_behind(server)
        names = [_literal(hop.name) for hop in chain if not hop.server and hop.name]
        pages = [StatusPage(kind=page.kind, url=page.url) for server in servers for page in server.status]
        pages += [checked.page for checked in self.pages if checked.page and checked.server in servers]
        return replace(
            self.config,
            processes=tuple(dict.fromkeys([*(server.pattern for server in servers), *names])),
            upstreams=tuple(dict.fromkeys(hop.upstream.words for hop in chain if hop.is_here)),
            tail=tuple(dict.fromkeys(tail for server in servers for tail in server.tail)),
            status=tuple(dict.fromkeys(pages)),
        )

    def server_of(self, knobs: Iterable[Knob]) -> RunningServer | None:
        """Return the server of the first offered knob among `knobs`; None: no server."""
        chosen = set(knobs)
        offered = self.discovered.suggested if self.discovered else ()
        return next((offer.server for offer in offered if offer.server and offer.knob in chosen), None)


def _left_out(refused: Iterable[OfferedKnob]) -> Iterator[str]:
    """Yield the names of refused knobs, once per reason."""
    names: dict[str, list[str]] = {}
    for offered in refused:
        names.setdefault(offered.refusal, []).append(offered.knob.name)
    yield from (f"left out: {', '.join(dict.fromkeys(knobs))} ({reason})" for reason, knobs in names.items())


def _stranger(strangers: Iterable[str]) -> str:
    if _PORT_FORWARDERS.isdisjoint(strangers):
        return "which is not a known server"
    return "which forwards requests to a container: also watch the container, as docker:NAME or podman:NAME"


def _described(server: RunningServer) -> str:
    ports = f", port {', '.join(map(str, server.ports))}" if server.ports else ""
    words = f"{server.title}, {server.processes} process{'' if server.processes == 1 else 'es'}{ports}"
    words += f", runs {' and '.join(server.programs)}" if server.programs else ""
    startup = server.startup
    if startup is None:
        return words
    known = startup.listed or "configuration unknown"
    if startup.overridden:
        known += "".join(f"; {name} set by {place}" for name, place in startup.overridden)
    if startup.uncertainty:
        return f"{words}, {known} (assumed: {startup.uncertainty})"
    if startup.read_only_reason:
        return f"{words}, {known}; {startup.read_only_reason}"
    return f"{words}, {known}" if startup.reload else f"{words}, {known}; its reload command is unknown"


def hosts_named(texts: Iterable[str]) -> list[HostConfig]:
    """Return a host per destination (`root@vm1`, an alias, `docker:web1`, `root@vm1/docker:web1`, HERE or `.`), each
    with a unique valid name."""
    hosts: dict[str, HostConfig] = {}
    for text in texts:
        destination = HERE if text == "." else text.strip().removeprefix("ssh://").removesuffix("/")
        if not destination:
            continue
        name = next(name for name in numbered(host_name(destination)) if name not in hosts)
        ssh, via = split_chain(destination)
        hosts[name] = HostConfig(name=name, ssh=None if ssh == HERE else ssh, via=via)
    return list(hosts.values())


def host_name(destination: str) -> str:
    """Return a short name: web1 for `root@web1.example.com:2222` and `root@vm1/docker:web1`. Of an IP address, `.` and
    `:` become `-`."""
    if destination == HERE:
        return "here"
    host = name_of(split_chain(destination)[1]) or bare_host(destination)
    short = host if re.fullmatch(r"[0-9a-fA-F:.]+", host) else host.partition(".")[0]
    return _INVALID.sub("-", short).strip("-_") or "host"


async def survey(
    config: HostConfig,
    url: str,
    ssh_config: Path | None = None,
    asker: Prompter | None = None,
    keyring: Keyring | None = None,
) -> HostSurvey:
    """Discover a host by read-only commands; an error becomes the `problem` of the result."""
    try:
        shell = await open_shell(config, ssh_config, asker, keyring)
    except CockpitError as error:
        return HostSurvey(config, None, error.problem)
    try:
        discovered = await discover(shell, config.name, port_of(url), is_on_host(url, config, ssh_config))
        result = HostSurvey(config, discovered)
        servers = result.with_servers_behind(result.server) if result.server else []
        return result._replace(pages=await checked_pages(shell, servers, discovered, url))
    except CockpitError as error:
        return HostSurvey(config, None, error.problem)
    finally:
        await shell.close()


def draft_of(
    url: str,
    surveyed: Sequence[HostSurvey],
    chosen: Iterable[tuple[str, str]] | None = None,
    **fields: Any,
) -> Draft:
    """Return the draft of a profile with the chosen knobs, by (host, name); None: the usual ones. The others are
    commented out. `fields` are further fields of the draft: its question and load."""
    selection = None if chosen is None else set(chosen)
    hosts: list[HostConfig] = []
    notes: dict[str, tuple[str, ...]] = {}
    knobs: list[Knob] = []
    others: list[tuple[Knob, str | None]] = []
    for host in surveyed:
        offered = host.discovered.suggested if host.discovered else ()
        selected = [offer.knob for offer in offered if _is_selected(offer, selection)]
        server = host.server or host.server_of(selected)
        config = host.config
        if server is not None:
            config = host.watched(server)
        elif host.discovered is not None and host.discovered.unknown_listeners:
            config = replace(config, processes=(_literal(host.discovered.unknown_listeners[0]),))
        hosts.append(config)
        notes[config.name] = _notes(host)
        knobs += selected
        others += [(offer.knob, offer.value) for offer in offered if offer.knob not in selected]
    return Draft(
        url=url,
        hosts=tuple(hosts),
        knobs=tuple(_with_unique_names(knobs)),
        others=tuple(others),
        notes=notes,
        **fields,
    )


def _literal(name: str) -> str:
    """Escape a name for use as a shell pattern."""
    return re.sub(r"[*?\[\\]", r"\\\g<0>", name)


def _is_selected(offered: OfferedKnob, selection: set[tuple[str, str]] | None) -> bool:
    return offered.usual if selection is None else (offered.knob.host, offered.knob.name) in selection


def _with_unique_names(knobs: Sequence[Knob]) -> Iterator[Knob]:
    """Append the host to the names of knobs that have the same name on several hosts."""
    names = [knob.name for knob in knobs]
    for knob in knobs:
        yield replace(knob, name=f"{knob.name}-{knob.host}") if names.count(knob.name) > 1 else knob


def _notes(host: HostSurvey) -> tuple[str, ...]:
    if host.discovered is None:
        return (f"{host.config.name} could not be inspected: {host.problem}",)
    notes = [f"discovered {host.words}", *(checked.note for checked in host.pages if checked.note)]
    if host.discovered.user not in ("root", ""):
        notes.append(f"if {host.discovered.user} cannot write the configuration: log in as root, or set sudo = true")
    return tuple(notes)


def place_for(url: str, surveyed: Sequence[HostSurvey]) -> Path:
    """Return an unused path for a new profile: in `profiles` of the working directory, else in the user's profiles."""
    here, shipped = Path("profiles"), catalogue.shipped_folder()
    is_shipped = shipped is not None and here.resolve() == shipped.resolve()
    folder = here if here.is_dir() and not is_shipped else catalogue.own_folder()
    base = surveyed[0].config.name if surveyed else host_name(urlsplit(url).hostname or "url")
    paths = (folder / f"{name}{catalogue.SUFFIX}" for name in numbered(base))
    return next(path for path in paths if not path.exists())
