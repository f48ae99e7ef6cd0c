"""Discover the servers on a host and their settings. Nothing is changed there."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import PurePosixPath
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob, Option
from cockpit.servers import kernel, systemd
from cockpit.servers.editing import ConfigError
from cockpit.servers.inventory import Inventory, Process, foreign_programs
from cockpit.servers.kind import CandidateKnob, RunningServer
from cockpit.servers.registry import AT_START, running_servers
from cockpit.servers.sections import in_sections
from cockpit.servers.upstreams import Hop
from cockpit.tuning import files, plan
from cockpit.tuning.chain import follow, server_on_port
from cockpit.tuning.discovery.configuration import conditions_of
from cockpit.tuning.discovery.configuration import place as place_in_file
from cockpit.tuning.discovery.configuration import read as read_value
from cockpit.tuning.discovery.host_inventory import (
    Configuration,
    configuration,
    environment_files,
    owners,
    read_inventory,
    untrusted,
)
from cockpit.tuning.discovery.included import follow_includes
from cockpit.tuning.files import HostFile
from cockpit.tuning.remote import Remote
from cockpit.tuning.server_log import with_own_log
from cockpit.tuning.tuner import Tuner


class OfferedKnob(NamedTuple):
    """A readable knob with its value (None: not set), whether it is preselected (`usual`), and its server (None: the
    kernel). `refusal`: why its value is unknown although its file sets it, "" if it is known."""

    knob: Knob
    value: str | None
    usual: bool
    server: RunningServer | None
    refusal: str = ""


class DiscoveredHost(NamedTuple):
    """The servers of a host.

    `serving` is the server on the requested port, if known; `possible_servers` are the possible ones; if there is none,
    `unknown_listeners` are the names of the processes that listen on the port instead. `chain` are the steps from the
    serving server to the servers behind it. `refused` are knobs whose value is unknown although their file sets it.
    `configurations` are those that were read, by master; `addresses` the IP addresses of the host.
    """

    user: str
    servers: tuple[RunningServer, ...]
    serving: RunningServer | None
    possible_servers: tuple[RunningServer, ...]
    suggested: tuple[OfferedKnob, ...]
    unknown_listeners: tuple[str, ...] = ()
    chain: tuple[Hop, ...] = ()
    refused: tuple[OfferedKnob, ...] = ()
    configurations: Mapping[Process | None, Configuration] = {}
    addresses: frozenset[str] = frozenset()


async def discover(remote: Remote, host: str, port: int, answers: bool = False) -> DiscoveredHost:
    """Discover the servers and knobs of a host.

    `answers`: the target is on this host, so that only servers which may listen on its port are preselected. Raises
    HostError, ChangeRefused if no command can be run there.
    """
    inventory = await read_inventory(remote, host)
    configurations: dict[Process | None, Configuration] = {}

    async def read(server: RunningServer) -> Configuration:
        if server.master not in configurations:
            configurations[server.master] = await configuration(remote, server)
        return configurations[server.master]

    trusted = [await without_untrusted(remote, server) for server in running_servers(inventory)]
    servers = [await with_own_log(remote, server, read) for server in trusted]
    able = servers_on_port(inventory, servers, port) if answers else servers
    chosen = server_on_port(able, port)
    chain = (await follow(read, inventory, servers, chosen, port)).hops if chosen and answers else ()
    offered: list[OfferedKnob] = []
    reader = _CandidateReader(remote, host, {})
    picked = [chosen, *(hop.server for hop in chain)] if chosen else able
    rank = {id(server): place for place, server in reversed(list(enumerate(picked)))}
    # The serving server and the servers behind it are first, so that their knobs get the plain names.
    for server in sorted(servers, key=lambda server: rank.get(id(server), len(picked))):
        preselected, candidates = id(server) in rank, server.candidates
        if candidates:
            config = await read(server)
            candidates = (
                *await follow_includes(remote, host, server, config.read),
                *in_sections(server, config.texts),
            )
        written = await reader.knobs_of(candidates, preselected, server)
        in_unit = await reader.knobs_of(await _of_its_unit(remote, server), preselected, server)
        offered += _where_set(written, in_unit)
    offered += await reader.knobs_of(kernel.CANDIDATES)
    knobs = tuple(_uniquely_named(_unique((each for each in offered if not each.refusal), reader.known)))
    refused = tuple(each for each in offered if each.refusal)
    listening = {each.name for each in inventory.listening if each.port == port and answers and not able}
    strangers = tuple(sorted(listening))
    return DiscoveredHost(
        inventory.user,
        tuple(servers),
        chosen,
        tuple(able),
        knobs,
        strangers,
        chain,
        refused,
        configurations,
        inventory.addresses,
    )


async def _of_its_unit(remote: Remote, server: RunningServer) -> Iterable[CandidateKnob]:
    """Return the settings of the systemd unit that started a server, and of the unit's program."""
    if server.master is None or server.startup is None:
        return ()
    unit, overridden = server.master.unit, dict(server.startup.overridden)
    settings = AT_START.get(server.startup.kind, ())
    program = [
        setting for setting in settings if setting.name not in overridden or setting.given(server.master.command)
    ]
    variables = await environment_files(remote, unit) if program and unit else {}
    return systemd.candidates(server.master, program, variables)


def _where_set(written: Sequence[OfferedKnob], in_unit: Sequence[OfferedKnob]) -> Iterator[OfferedKnob]:
    """Yield each setting once: in the server's file if the file sets it or the unit lacks it, else in the unit."""
    in_file = {offer.knob.name for offer in written if offer.value is not None}
    names = {offer.knob.name for offer in in_unit}
    yield from (offer for offer in written if offer.value is not None or offer.knob.name not in names)
    yield from (offer for offer in in_unit if offer.knob.name not in in_file)


def _unique(offered: Iterable[OfferedKnob], known: Mapping[str, HostFile | None]) -> Iterable[OfferedKnob]:
    """Return the first knob of each value; two servers may read one file."""
    first: dict[tuple[str, str], OfferedKnob] = {}
    for offer in offered:
        file = known.get(offer.knob.file) if offer.knob.in_file else None
        place = place_in_file(offer.knob, file.real) if file else offer.knob.live_place()
        first.setdefault((place, offer.knob.get), offer)
    return first.values()


def _uniquely_named(offered: Iterable[OfferedKnob]) -> Iterator[OfferedKnob]:
    """Yield the knobs with unique names."""
    taken: dict[str, RunningServer | None] = {}
    for offer in offered:
        name = next(name for name in _names(offer, taken) if name not in taken)
        taken[name] = offer.server
        yield offer._replace(knob=replace(offer.knob, name=name))


def _names(offer: OfferedKnob, taken: Mapping[str, RunningServer | None]) -> Iterator[str]:
    """Yield possible names: the plain one, then with the port of another server, with the file, with a number."""
    name, file = offer.knob.name, PurePosixPath(offer.knob.file).stem
    yield name
    if offer.server and offer.server.ports and offer.server is not taken.get(name):
        yield f"{name}-{offer.server.ports[0]}"
    if file:
        yield f"{name}-{file}"
    yield from (f"{name}-{number}" for number in count(2))


async def without_untrusted(remote: Remote, server: RunningServer) -> RunningServer:
    """Return the server, without candidates if another user could replace a program that their commands run, else with
    the owners of its programs."""
    master, startup = server.master, server.startup
    if master is None or startup is None or master.origin == "container":
        return server
    # The command line may name a directory or an interpreter with programs that the test would run.
    programs_and_files = (*startup.files, master.program, *shlex.split(startup.test))
    paths = [path for path in dict.fromkeys(programs_and_files) if path.startswith("/")]
    if not (foreign := await untrusted(remote, paths)):
        words = foreign_programs(master.program, *shlex.split(startup.test))
        programs = [word for word in words if word not in (*startup.files, startup.root, startup.prefix)]
        return server._replace(programs=await owners(remote, programs) if programs else ())
    uncertainty = f"another user can replace {foreign[0]}: log in as that user"
    return server._replace(candidates=(), startup=startup._replace(uncertainty=uncertainty))


def servers_on_port(inventory: Inventory, servers: Sequence[RunningServer], port: int) -> list[RunningServer]:
    """Return the servers on the target's host that listen on its port; if no listener is known, those without ports."""
    if any(listener.port == port for listener in inventory.listening):
        return [server for server in servers if port in server.ports]
    return [server for server in servers if not server.ports]


def knob_of(candidate: CandidateKnob, host: str) -> Knob:
    fields = candidate._asdict()
    del fields["usual"]
    options = tuple(Option(**option._asdict()) for option in candidate.option)
    knob = Knob(host=host, **fields | {"option": options})
    form = knob.known.form if knob.known else None
    return replace(knob, values=form.choices) if form and not knob.values else knob


class _CandidateReader(NamedTuple):
    """Reads candidates on a host. `known`: the files that were read; None: a file cannot be read."""

    remote: Remote
    host: str
    known: dict[str, HostFile | None]

    async def knobs_of(
        self, candidates: Iterable[CandidateKnob], preselected: bool = False, server: RunningServer | None = None
    ) -> list[OfferedKnob]:
        """Return the knobs with their values or refusals, without those whose file or place does not exist."""
        offers = [await self._offer(candidate, preselected, server) for candidate in candidates]
        return [offer for offer in offers if offer is not None]

    async def _offer(
        self, candidate: CandidateKnob, preselected: bool, server: RunningServer | None
    ) -> OfferedKnob | None:
        knob, usual = knob_of(candidate, self.host), candidate.usual and preselected
        try:
            if not knob.in_file:
                return OfferedKnob(knob, await Tuner().read(self.remote, knob), usual, server)
            if knob.file not in self.known:
                self.known[knob.file] = None
                self.known[knob.file] = await files.read_of(self.remote, knob.host, knob)
            file = self.known[knob.file]
            if file is None:
                return None
            knob = _in_true_section(knob, file, server)
            value = read_value(knob, file.data)
            if server and server.startup and (unmet := server.startup.unmet(conditions_of(knob, file.data))):
                raise ConfigError(unmet, value.line)
            active = await Tuner().read(self.remote, knob) if knob.live else value.value
            return OfferedKnob(knob, active, usual, server)
        except ConfigError as error:
            return OfferedKnob(knob, None, False, server, f"{knob.file}: {error}") if error.line else None
        except ChangeRefused:
            return None


def _in_true_section(knob: Knob, file: HostFile, server: RunningServer | None) -> Knob:
    """Return the knob; if its place depends on conditions, in the section whose condition is true."""
    conditions = server.startup.conditions if server and server.startup and knob.section is None else ()
    holding = (header for header, holds in conditions if holds)
    places = (knob, *(replace(knob, section=header) for header in holding))
    return next((place for place in places if _is_set(place, file)), knob)


def _is_set(knob: Knob, file: HostFile) -> bool:
    try:
        return plan.value_in(file, knob).value is not None
    except ChangeRefused:
        return False
