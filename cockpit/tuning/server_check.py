"""Whether the server that answers on the target's port reads the files of the knobs. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob
from cockpit.model.text import neutral
from cockpit.servers import kernel, systemd
from cockpit.servers.inventory import Inventory
from cockpit.servers.registry import DIRECTIVES, RELOAD_REPLACES, instances
from cockpit.servers.startup import Instance
from cockpit.tuning import files
from cockpit.tuning.host_inventory import ConfigurationFiles, configuration_files, take_inventory, untrusted
from cockpit.tuning.remote import Remote
from cockpit.tuning.scripts import SAME_FILE, STARTED
from cockpit.tuning.signals import signalled

_ALONE = (
    "{} is mounted on its own into a container, which keeps the old one until it is restarted; set a reload that "
    "restarts the container, or mount the directory"
)
# Seconds by which a file must be newer than a worker: starts are read in whole seconds of an adjusted clock.
_APART = 2


class ReadBy(NamedTuple):
    """The server that reads the files of some knobs. `doubt` says why it is not certain, "" if it is; `wrong` says that
    another server answers, which does not read them. `instance` is None if no such server was found. `namesakes` are
    other servers whose processes have the same name."""

    knobs: tuple[Knob, ...]
    file: str
    instance: Instance | None
    doubt: str = ""
    wrong: str = ""
    namesakes: tuple[Instance, ...] = ()


class _Answering(NamedTuple):
    """Servers of the host. `target` are those on the target's port; `port` is None if the target is elsewhere;
    `stranger` is the name of an unknown program that listens there."""

    port: int | None
    every: Sequence[Instance]
    target: Sequence[Instance]
    stranger: str


async def read_by(remote: Remote, host: str, port: int | None, knobs: Iterable[Knob]) -> list[ReadBy]:
    """For each file of a server's directives, which server reads it. `port` is the target's if it is on this host.

    Raises HostError, ChangeRefused if no command can be run there."""
    by_file: dict[tuple[str, str], list[Knob]] = {}
    for knob in knobs:
        if knob.kind in DIRECTIVES or (knob.kind == systemd.KIND and systemd.unit_of(knob.file)):
            by_file.setdefault((knob.kind, knob.file), []).append(knob)
    if not by_file:
        return []
    inventory = await take_inventory(remote, host)
    answering = _answering(inventory, port)
    read: dict[int, ConfigurationFiles] = {}
    found = []
    for (kind, file), group in by_file.items():
        if kind == systemd.KIND:
            found.append(_of_unit(answering, tuple(group), file))
            continue
        for instance in answering.every:
            if instance.startup.kind == kind and instance.process.pid not in read:
                read[instance.process.pid] = await configuration_files(remote, instance)
        real = (await files.read(remote, host, file)).real
        one = await _container(remote, answering, read, tuple(group), real)
        one = one or _reader(answering, read, tuple(group), kind, file, real)
        if one.instance is not None and not one.wrong:
            one = one._replace(wrong=await _signals_another(remote, host, one, inventory, answering.every))
        found.append(one)
    return found


async def edited_after_start(remote: Remote, one: ReadBy) -> bool:
    """Whether a file was edited after the workers that would have read it were started, or the server runs another
    configuration. Raises HostError."""
    if one.instance and one.instance.startup.compare:
        return await _runs_another(remote, one.instance)
    if one.instance is None or one.instance.startup.kind not in RELOAD_REPLACES or not one.instance.workers:
        return False
    if one.knobs[0].kind == systemd.KIND:
        return False  # its values are asked of the unit
    done = await files.run(remote, STARTED, one.file, *map(str, one.instance.workers))
    times = [int(line) for line in done.stdout.splitlines() if line.isdigit() and len(line) < 12]
    return len(times) > 1 and times[0] > min(times[1:]) + _APART


async def _runs_another(remote: Remote, instance: Instance) -> bool:
    """Whether a server says that it runs another configuration than that of its files."""
    startup, process = instance.startup, instance.process
    if process.origin != "host" and await untrusted(remote, [*startup.files, process.program]):
        return False
    return (await files.run(remote, startup.compare)).stdout.strip() == b"no"


async def limits_at_listen(remote: Remote, host: str, knobs: Iterable[Knob]) -> list[str]:
    """A note about the accept queues of running servers, if a knob limits those of new listeners. Raises HostError."""
    if all(knob.kind != "sysctl" or knob.key.replace("/", ".") != kernel.AT_LISTEN for knob in knobs):
        return []
    note = kernel.accept_queues(await take_inventory(remote, host))
    return [neutral(note, 600)] if note else []


def refuse_wrong(found: Iterable[ReadBy], host: str) -> None:
    """Raises ChangeRefused for a file that the answering server does not read."""
    for one in found:
        if one.wrong:
            raise ChangeRefused(f"{one.wrong}; nothing was changed", subject=f"{one.knobs[0].name}: {host}")


def _answering(inventory: Inventory, port: int | None) -> _Answering:
    every = instances(inventory)
    target = [instance for instance in every if port is not None and port in instance.ports]
    names = sorted({listener.name for listener in inventory.listening if listener.port == port})
    return _Answering(port, every, target, "" if target else ", ".join(names))


def _of_unit(answering: _Answering, knobs: tuple[Knob, ...], file: str) -> ReadBy:
    """The server in the unit of a file, unless another server of its kind answers on the target's port."""
    unit = systemd.unit_of(file)
    every = [instance for instance in answering.every if instance.process.unit == unit]
    if not every:
        return ReadBy(knobs, file, None, doubt=f"no known server runs in {neutral(unit, 200)}")
    instance = next((one for one in every if one in answering.target), every[0])
    rivals = [one for one in answering.target if one.startup.kind == instance.startup.kind]
    if not rivals or instance in rivals:
        return ReadBy(knobs, file, instance)
    others = "; ".join(neutral(one.words, 300) for one in rivals)
    wrong = f"{neutral(unit, 200)} is not the unit of the server that answers on port {answering.port}: {others}"
    return ReadBy(knobs, file, instance, wrong=wrong)


async def _container(
    remote: Remote,
    answering: _Answering,
    read: Mapping[int, ConfigurationFiles],
    knobs: tuple[Knob, ...],
    real: str,
) -> ReadBy | None:
    """The server in a container that has this very file in its configuration; None: there is none."""
    for instance in answering.every:
        if instance.startup.kind != knobs[0].kind or instance.process.origin != "container":
            continue
        seen = read[instance.process.pid].files.values()
        done = await files.run(remote, SAME_FILE, real, str(instance.process.pid), *seen)
        if done.stdout.startswith(b"same"):
            return ReadBy(knobs, real, instance)
        if done.stdout.startswith(b"mounted"):
            restarts = all(knob.price == "restart" for knob in knobs)
            return ReadBy(knobs, real, instance, wrong="" if restarts else _ALONE.format(neutral(real, 200)))
    return None


def _reader(
    answering: _Answering,
    read: dict[int, ConfigurationFiles],
    knobs: tuple[Knob, ...],
    kind: str,
    file: str,
    real: str,
) -> ReadBy:
    on_port = [instance for instance in answering.target if instance.startup.kind == kind]
    able = on_port or [instance for instance in answering.every if instance.startup.kind == kind]
    reading = [instance for instance in able if read[instance.process.pid].has(file, real)]
    unknown = [instance for instance in able if read[instance.process.pid].gaps]
    where = f"port {answering.port}" if on_port else "this host"
    if not able:
        return ReadBy(knobs, file, None, doubt=f"no running {kind} was found on this host")
    if not reading:
        others = "; ".join(neutral(instance.words, 300) for instance in able)
        if unknown:
            why = read[unknown[0].process.pid].gaps[0]
            return ReadBy(knobs, file, None, doubt=f"whether {others} reads it is unknown: {neutral(why, 200)}")
        if answering.stranger:
            return ReadBy(
                knobs, file, None, doubt=f"{neutral(answering.stranger, 80)} listens on port {answering.port}"
            )
        return ReadBy(knobs, file, None, wrong=f"{neutral(file, 200)} is not read by the {kind} on {where}: {others}")
    instance = reading[0]
    if file in read[instance.process.pid].foreign:
        return ReadBy(
            knobs, file, instance, wrong=f"{neutral(instance.words, 300)} has another {file}: it runs in a container"
        )
    if other := _reloads_another(knobs, instance, answering.every):
        return ReadBy(knobs, file, instance, wrong=other)
    doubt = instance.startup.doubt
    if answering.port is not None and not answering.target and len(able) > 1:
        doubt = doubt or f"which of {len(able)} running {kind} servers answers on port {answering.port} cannot be seen"
    name = instance.process.name
    namesakes = tuple(one for one in answering.every if one is not instance and one.process.name == name)
    return ReadBy(knobs, file, instance, doubt=doubt, namesakes=namesakes)


async def _signals_another(
    remote: Remote, host: str, one: ReadBy, inventory: Inventory, every: Sequence[Instance]
) -> str:
    """A reload command that sends its signal to the processes of another running server; "" without any."""
    own = inventory.tree(one.instance.process.pid) if one.instance else frozenset()
    for command in dict.fromkeys(knob.reload for knob in one.knobs if knob.reload):
        for receivers in signalled(command):
            pids = {*receivers.pids, *[await _pid_in(remote, host, file) for file in receivers.files]}
            pids |= inventory.named(receivers.names, receivers.exact)
            reached = [each for each in every if each is not one.instance and pids & inventory.tree(each.process.pid)]
            if reached := [each for each in reached if each.process.pid not in own]:
                verb = "also signals" if pids & own else "signals"
                others = "; ".join(neutral(each.words, 300) for each in reached)
                return f"{neutral(command, 200)!r} {verb} {others}{_better(one.instance)}"
    return ""


async def _pid_in(remote: Remote, host: str, file: str) -> int:
    """The pid in a file; 0 if it has none."""
    try:
        text = (await files.read(remote, host, file)).data.strip()
    except ChangeRefused:
        return 0
    return int(text) if text.isdigit() and len(text) < 10 else 0


def _better(instance: Instance | None) -> str:
    """The server to reload and its command, as a next step."""
    if instance is None:
        return ""
    reload = instance.startup.reload
    return f"; the target's server is {instance.words}{f'; set reload = {reload!r}' if reload else ''}"


def _reloads_another(knobs: Iterable[Knob], instance: Instance, every: Iterable[Instance]) -> str:
    """A reload command that acts on another running server; "" without any."""
    for knob in knobs:
        for other in every:
            # Of two masters with one command line, pkill chooses by their age.
            is_shared = knob.reload != instance.startup.reload or knob.reload.startswith("pkill ")
            if knob.reload and other is not instance and knob.reload == other.startup.reload and is_shared:
                return f"{neutral(knob.reload, 200)!r} reloads {neutral(other.words, 300)}{_better(instance)}"
    return ""
