"""Check that the server on the target's port reads the files of the knobs. Nothing is changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob
from cockpit.model.text import sanitize
from cockpit.servers import kernel, systemd
from cockpit.servers.inventory import Inventory
from cockpit.servers.registry import AT_START, DIRECTIVES, instances, running_servers
from cockpit.servers.startup import Instance, Startup
from cockpit.tuning import files
from cockpit.tuning.chain import follow, server_on_port
from cockpit.tuning.discovery import configuration, host_inventory
from cockpit.tuning.discovery.host_inventory import (
    ConfigurationFiles,
    configuration_files,
    environment_files,
    read_inventory,
    untrusted,
)
from cockpit.tuning.remote import Remote
from cockpit.tuning.scripts import SAME_FILE
from cockpit.tuning.signals import signalled

_SINGLE_FILE_MOUNT = (
    "{} is mounted as a single file into a container, which keeps the old file until it is restarted; set a reload "
    "that restarts the container, or mount the directory"
)
_KEYVALUE = "keyvalue"


class FileReader(NamedTuple):
    """The server that reads the file of some knobs.

    `instance` is None if no such server was found. `uncertainty` is the reason for uncertainty, "" if certain. `wrong`
    is the reason why a change would not have an effect, such as another answering server. `same_named` are other
    servers whose processes have the same name. `unit` is the systemd unit, if the file is its EnvironmentFile.
    `inactive`: it is wrong because the server does not use the values that the knobs have in the file.
    """

    knobs: tuple[Knob, ...]
    file: str
    instance: Instance | None
    uncertainty: str = ""
    wrong: str = ""
    same_named: tuple[Instance, ...] = ()
    unit: str = ""
    inactive: bool = False


class _Answering(NamedTuple):
    """The servers of the host that take part in responses of the target.

    `port` is the target's, None if the target is on another host. `every` are all servers of the host, `target` the
    servers on the port, `upstream` the servers to which they pass requests; `uncertainty` is the reason why `upstream`
    may be incomplete. `stranger` is the name of an unknown program that listens on the port.
    """

    port: int | None
    every: Sequence[Instance]
    target: Sequence[Instance]
    stranger: str
    upstream: Sequence[Instance] = ()
    uncertainty: str = ""

    def able(self, kind: str) -> tuple[Instance, ...]:
        """Return the servers of a kind that take part in responses, () if none is known."""
        return tuple(instance for instance in (*self.target, *self.upstream) if instance.startup.kind == kind)


async def read_by(
    remote: Remote, host: str, port: int | None, knobs: Iterable[Knob], others: frozenset[int] = frozenset()
) -> list[FileReader]:
    """Find the server that reads each file of the knobs.

    `port` is the target's port if the target is on this host. `others` are PIDs of servers known to read none of the
    files. Raises HostError, ChangeRefused if no command can be run there.
    """
    by_file: dict[tuple[str, str], list[Knob]] = {}
    for knob in knobs:
        if knob.kind in (*DIRECTIVES, _KEYVALUE) or (knob.kind == systemd.KIND and systemd.unit_of(knob.file)):
            by_file.setdefault((knob.kind, knob.file), []).append(knob)
    if not by_file:
        return []
    inventory = await read_inventory(remote, host)
    answering = await _with_chain(remote, _answering(inventory, port, others), inventory, {kind for kind, _ in by_file})
    read: dict[int, ConfigurationFiles] = {}
    readers = []
    for (kind, file), group in by_file.items():
        if kind == systemd.KIND:
            readers.append(_of_unit(answering, tuple(group), file, systemd.unit_of(file)))
            continue
        if kind == _KEYVALUE:
            readers += await _of_environment(remote, answering, group, file)
            continue
        for instance in answering.every:
            if instance.startup.kind == kind and instance.process.pid not in read:
                read[instance.process.pid] = await configuration_files(remote, instance)
        now = await files.read(remote, host, file)
        real = now.real
        reader = await _container(remote, answering, read, tuple(group), real)
        reader = reader or _reader(answering, read, tuple(group), kind, file, real)
        if reader.instance is not None and not reader.wrong:
            reader = reader._replace(wrong=await _acts_on_another(remote, host, reader, inventory, answering.every))
        readers += _without_effect(reader, now.data)
    return readers


def _without_effect(reader: FileReader, text: bytes) -> Iterator[FileReader]:
    """Yield the knobs whose value in the file is not active, one by one, then the others together: the server's command
    line or environment overrides it, or it is in a section whose condition is false."""
    rest = []
    for knob in reader.knobs:
        if reader.instance and not reader.wrong and (why := _reason(reader.instance.startup, knob, text)):
            wrong = f"{sanitize(f'{why} {reader.file}', 400)}: {sanitize(reader.instance.words, 300)}"
            yield reader._replace(knobs=(knob,), wrong=wrong, inactive=True)
        else:
            rest.append(knob)
    if rest:
        yield reader._replace(knobs=tuple(rest))


def _reason(startup: Startup, knob: Knob, text: bytes) -> str:
    """Return why a value in the file is not active; "" if no reason is known."""
    if place := dict(startup.overridden).get(knob.directive):
        return f"{place} overrides"
    unmet = startup.unmet(configuration.conditions_of(knob, text))
    return f"line {configuration.read(knob, text).line}: {unmet} in" if unmet else ""


async def runs_another(remote: Remote, instance: Instance) -> bool:
    """Return whether a server reports a running configuration that differs from its files."""
    startup, process = instance.startup, instance.process
    if process.origin != "host" and await untrusted(remote, [*startup.files, process.program]):
        return False
    return (await files.run(remote, startup.compare)).stdout.strip() == b"no"


async def limits_at_listen(remote: Remote, host: str, knobs: Iterable[Knob]) -> list[str]:
    """Return a note about accept queues of running servers, if a knob limits only new listeners.

    Raises HostError.
    """
    if all(knob.kind != "sysctl" or knob.key.replace("/", ".") != kernel.AT_LISTEN for knob in knobs):
        return []
    note = kernel.accept_queues(await read_inventory(remote, host))
    return [sanitize(note, 600)] if note else []


def require_target_server(readers: Iterable[FileReader], host: str) -> None:
    """Raise ChangeRefused for a file that the answering server does not read."""
    for reader in readers:
        if reader.wrong:
            raise ChangeRefused(f"{reader.wrong}; nothing was changed", subject=f"{reader.knobs[0].name}: {host}")


def certain_servers(readers: Iterable[FileReader]) -> dict[str, Instance]:
    """Return the servers that certainly read the knobs' files, by knob name."""
    return {
        knob.name: reader.instance
        for reader in readers
        if reader.instance and not reader.uncertainty and not reader.wrong
        for knob in reader.knobs
    }


async def successors(
    remote: Remote, host: str, servers: Mapping[str, Instance], others: frozenset[int]
) -> dict[str, Instance]:
    """Return the servers that were started since with the same main configuration files, by knob name.

    Only unique ones. They might not read a knob's file any more, for instance after a change of Apache's MPM. `others`
    are PIDs of servers that ran before. Raises HostError, ChangeRefused.
    """
    running = instances(await read_inventory(remote, host)) if servers else ()
    new = [each for each in running if each.process.pid not in others and not each.startup.uncertainty]
    started = {}
    for name, server in servers.items():
        startup = server.startup
        same = [each for each in new if (each.startup.kind, each.startup.file) == (startup.kind, startup.file)]
        if len(same) == 1:
            started[name] = same[0]
    return started


def _answering(inventory: Inventory, port: int | None, others: frozenset[int]) -> _Answering:
    every = [instance for instance in instances(inventory) if instance.process.pid not in others]
    target = [instance for instance in every if port is not None and port in instance.ports]
    names = sorted({listener.name for listener in inventory.listening if listener.port == port})
    return _Answering(port, every, target, "" if target else ", ".join(names))


async def _with_chain(
    remote: Remote, answering: _Answering, inventory: Inventory, kinds: Collection[str]
) -> _Answering:
    """Add the servers behind the target's, if servers of these kinds exist that do not listen on its port."""
    port = answering.port
    others = [instance for instance in answering.every if instance not in answering.target]
    of_units = not {systemd.KIND, _KEYVALUE}.isdisjoint(kinds)
    if (
        port is None
        or not answering.target
        or not any(of_units or instance.startup.kind in kinds for instance in others)
    ):
        return answering
    servers = running_servers(inventory)
    front = server_on_port([server for server in servers if port in server.ports], port)
    if front is None:
        return answering
    chain = await follow(partial(host_inventory.configuration, remote), inventory, servers, front, port)
    masters = {server.master for server in chain.servers}
    upstream = [instance for instance in others if instance.process in masters]
    return answering._replace(upstream=upstream, uncertainty=chain.uncertainty)


async def _of_environment(remote: Remote, answering: _Answering, knobs: Sequence[Knob], file: str) -> list[FileReader]:
    """Return the server whose unit has the file as an EnvironmentFile; () if no unit has it."""
    units = dict.fromkeys(each.process.unit for each in answering.every if AT_START.get(each.startup.kind))
    for unit in filter(None, units):
        variables = await environment_files(remote, unit)
        if file not in variables.values():
            continue
        reader = _of_unit(answering, tuple(knobs), file, unit)._replace(unit=unit)
        later = {knob.key: variables[knob.key] for knob in knobs if variables.get(knob.key, file) != file}
        words = "; ".join(f"{sanitize(path, 200)} sets {key} later" for key, path in later.items())
        return [reader._replace(wrong=reader.wrong or words)]
    return []


def _of_unit(answering: _Answering, knobs: tuple[Knob, ...], file: str, unit: str) -> FileReader:
    """Return the server in the unit of a file; `wrong` if another server of its kind answers on the target's port."""
    every = [instance for instance in answering.every if instance.process.unit == unit]
    if not every:
        return FileReader(knobs, file, None, uncertainty=f"no known server runs in {sanitize(unit, 200)}")
    able = (*answering.target, *answering.upstream)
    instance = next((candidate for candidate in every if candidate in able), every[0])
    rivals = answering.able(instance.startup.kind)
    reader = FileReader(knobs, file, instance)
    if not rivals or instance in rivals:
        return reader
    where = _where(answering, rivals)
    wrong = f"{sanitize(unit, 200)} is not the unit of the server that answers {where}: {_words(rivals)}"
    return _mismatch(reader, answering, rivals, wrong)


def _mismatch(reader: FileReader, answering: _Answering, rivals: Sequence[Instance], wrong: str) -> FileReader:
    """Return the reader of a file that is `wrong`, as the `rivals` respond; it is uncertain if these may not be all."""
    if answering.uncertainty and rivals and not any(rival in answering.target for rival in rivals):
        return reader._replace(uncertainty=f"{wrong}; {sanitize(answering.uncertainty, 200)}")
    return reader._replace(wrong=wrong)


async def _container(
    remote: Remote,
    answering: _Answering,
    read: Mapping[int, ConfigurationFiles],
    knobs: tuple[Knob, ...],
    real: str,
) -> FileReader | None:
    """Return the server in a container that has the same file in its configuration; None without one."""
    for instance in answering.every:
        if instance.startup.kind != knobs[0].kind or instance.process.origin != "container":
            continue
        seen = read[instance.process.pid].files.values()
        done = await files.run(remote, SAME_FILE, real, str(instance.process.pid), *seen)
        if done.stdout.startswith(b"same"):
            return FileReader(knobs, real, instance)
        if done.stdout.startswith(b"mounted"):
            restarts = all(knob.effective_cost == "restart" for knob in knobs)
            wrong = "" if restarts else _SINGLE_FILE_MOUNT.format(sanitize(real, 200))
            return FileReader(knobs, real, instance, wrong=wrong)
    return None


def _reader(
    answering: _Answering,
    read: dict[int, ConfigurationFiles],
    knobs: tuple[Knob, ...],
    kind: str,
    file: str,
    real: str,
) -> FileReader:
    answer = answering.able(kind)
    able = answer or [instance for instance in answering.every if instance.startup.kind == kind]
    reading = [instance for instance in able if read[instance.process.pid].has(file, real)]
    unknown = [instance for instance in able if read[instance.process.pid].gaps]
    nobody = FileReader(knobs, file, None)
    if not able:
        return nobody._replace(uncertainty=f"no running {kind} was found on this host")
    if not reading:
        if unknown:
            why = sanitize(read[unknown[0].process.pid].gaps[0], 200)
            return nobody._replace(uncertainty=f"whether {_words(able)} reads it is unknown: {why}")
        if answering.stranger:
            stranger = sanitize(answering.stranger, 80)
            return nobody._replace(uncertainty=f"{stranger} listens on port {answering.port}")
        where = _where(answering, answer) if answer else "on this host"
        wrong = f"{sanitize(file, 200)} is not read by the {kind} {where}: {_words(able)}"
        return _mismatch(nobody, answering, answer, wrong)
    instance = reading[0]
    if file in read[instance.process.pid].foreign:
        return FileReader(knobs, file, instance, wrong=f"{_words([instance])} runs in a container with another {file}")
    uncertainty = instance.startup.uncertainty
    if not uncertainty and len(reading) > 1:
        uncertainty = f"{len(reading)} running {kind} servers read it: {_words(reading)}"
    if not uncertainty and answering.port is not None and not answer and len(able) > 1:
        verb = "is behind" if answering.target else "answers on"
        uncertainty = f"which of {len(able)} running {kind} servers {verb} port {answering.port} is unknown"
    others = (each for each in answering.every if each is not instance)
    same_named = tuple(each for each in others if each.process.name == instance.process.name)
    return FileReader(knobs, file, instance, uncertainty=uncertainty, same_named=same_named)


def _words(servers: Iterable[Instance]) -> str:
    return "; ".join(sanitize(server.words, 300) for server in servers)


def _where(answering: _Answering, able: Sequence[Instance]) -> str:
    """Return `on port N`, `behind port N` or `on port N or behind it`."""
    port = f"port {answering.port}"
    if all(instance in answering.target for instance in able):
        return f"on {port}"
    return f"on {port} or behind it" if any(instance in answering.target for instance in able) else f"behind {port}"


async def _acts_on_another(
    remote: Remote, host: str, reader: FileReader, inventory: Inventory, every: Sequence[Instance]
) -> str:
    """Return a problem if a reload command acts on another running server; "" if none does."""
    own = inventory.tree(reader.instance.process.pid) if reader.instance else frozenset()
    for command in dict.fromkeys(knob.reload for knob in reader.knobs if knob.reload):
        reached: set[int] = set()
        for receivers in signalled(command):
            reached |= {*receivers.pids, *[await _pid_in(remote, host, file) for file in receivers.files]}
            reached |= inventory.pids_named(receivers.names, receivers.exact)
        others = [each for each in every if each is not reader.instance and each.process.pid not in own]
        if signals := [each for each in others if reached & inventory.tree(each.process.pid)]:
            verb = "also signals" if reached & own else "signals"
            return f"{sanitize(command, 200)!r} {verb} {_words(signals)}{_better(reader.instance)}"
        if reader.instance and not reached & own and (wrong := _reloads_another(command, reader.instance, others)):
            return wrong
    return ""


async def _pid_in(remote: Remote, host: str, file: str) -> int:
    """Return the PID in a file; 0 without one."""
    try:
        text = (await files.read(remote, host, file)).data.strip()
    except ChangeRefused:
        return 0
    return int(text) if text.isdigit() and len(text) < 10 else 0


def _better(instance: Instance | None) -> str:
    """Return the next step: the server to reload, and its command."""
    if instance is None:
        return ""
    reload = instance.startup.reload
    return f"; the target's server is {instance.words}{f'; set reload = {reload!r}' if reload else ''}"


def _reloads_another(command: str, instance: Instance, others: Iterable[Instance]) -> str:
    """Return a problem if a command reloads, or may reload, another server; "" if not."""
    rival = next((each for each in others if command == each.startup.reload and _shares(each, instance)), None)
    if rival is None:
        return ""
    words = sanitize(rival.words, 300)
    if command != instance.startup.reload:
        return f"{sanitize(command, 200)!r} reloads {words}{_better(instance)}"
    # pkill selects by age, a service script by its PID file.
    return (
        f"{sanitize(command, 200)!r} may reload {words} instead of {sanitize(instance.words, 300)}; set another reload"
    )


def _shares(rival: Instance, instance: Instance) -> bool:
    """Return whether one command can reach both servers, which a container may prevent."""
    return rival.process.origin != "container" or instance.process.origin == "container"
