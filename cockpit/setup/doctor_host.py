"""Check one host: can it be reached, read, and changed as the profile requires?"""

from __future__ import annotations

import asyncio
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from cockpit.hosts.probe.probe import Probe
from cockpit.hosts.shell import Shell
from cockpit.hosts.ssh.settings import Destination, read_settings
from cockpit.hosts.status.feed import read_page
from cockpit.hosts.target_host import port_here
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import AuthRefused, ChangeRefused, CockpitError, HostError, HostKeyChanged, HostKeyUnknown
from cockpit.model.host.samples import HostConfig, HostReading, StatusPage
from cockpit.model.knobs import Knob
from cockpit.model.text import count_text, sanitize
from cockpit.model.via import command_of
from cockpit.profiles.profile import Profile
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.setup.finding import Finding, failed, note, passed, problem
from cockpit.tuning import files, plan
from cockpit.tuning.history import state_words, unfinished
from cockpit.tuning.reason import useful_line
from cockpit.tuning.remote import Remote, privileged
from cockpit.tuning.scripts import DETACH, HEAD
from cockpit.tuning.tuner import Tuner

# Timeouts (s) of the probe's readings and of a configuration test; interval (s) of the two readings.
_READ_TIMEOUT, _TEST_TIMEOUT, _READ_INTERVAL = 20.0, 60.0, 0.3
# Clock offsets of a host above this (s) are reported: the times in its logs do not match the timeline.
_MAX_CLOCK_OFFSET = 2.0
_TOOLS = ("timeout", "sha256sum", "mktemp", "readlink", "stat", "head", "tail", "cut")
# Prints `yes` or `no` for each KIND:NAME. A `command` of the profile must be in the PATH of the login, a `tool` in
# cockpit's. For `write`, the directory of the file must be writable, too: files are replaced by a rename.
_EXIST = (
    HEAD
    + """
for each; do
    kind=${each%%:*} name=${each#*:} found=no
    case $kind in
        command) as_login sh -c 'command -v -- "$1"' sh "$name" >/dev/null 2>&1 </dev/null && found=yes ;;
        tool) command -v -- "$name" >/dev/null 2>&1 && found=yes ;;
        read) [ -r "$name" ] && found=yes ;;
        write) [ -w "$name" ] && [ -w "$(dirname -- "$name")" ] && found=yes ;;
    esac
    printf '%s\\n' "$found"
done
"""
)
# Words that the restorer prints: its kind, whether logind kills it, how backups are flushed to the disk.
_FACTS = 3
# Shell keywords and builtins, which are not looked up in the PATH.
_SHELL = frozenset({"if", "while", "for", "case", "until", "{", "(", "!", "test", "[", ":", "."})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


async def diagnose_host(
    profile: Profile, config: HostConfig, ssh_config: Path | None, *, execute: bool = True
) -> list[Finding]:
    """Check a host. Without `execute` no command of the profile runs, only whether they exist is checked."""
    name = config.name
    try:
        shell = await open_shell(config, ssh_config)
    except CockpitError as error:
        return [failed(name, error, _login_fix(error, config))]
    try:
        notes = await asyncio.to_thread(_ssh_notes, config, ssh_config)
        return [*notes, *await _check(profile, config, shell, ssh_config, execute)]
    except HostError as error:
        return [failed(name, error, "the connection was lost; try again")]
    finally:
        await shell.close()


def _ssh_notes(config: HostConfig, ssh_config: Path | None) -> list[Finding]:
    if config.ssh is None:
        return []
    settings = read_settings(Destination.parse(config.ssh), ssh_config)
    return [note(config.name, f"ssh_config: {option}", fix) for option, fix in settings.unsupported]


def _login_fix(error: CockpitError, config: HostConfig) -> str:
    if isinstance(error, HostKeyChanged):
        return "find out first why its key changed"
    if isinstance(error, HostKeyUnknown):
        return "log in once by ssh and compare its key"
    if isinstance(error, AuthRefused):
        return f"make `ssh {config.ssh}` work without a prompt: a key in its authorized_keys, or an agent"
    if config.via:
        return f"does `{command_of(config.via)} sh` work on {'this machine' if config.ssh is None else config.ssh}?"
    return f"does `ssh {config.ssh}` work? set its options in ssh_config"


async def _check(
    profile: Profile, config: HostConfig, shell: Shell, ssh_config: Path | None, execute: bool
) -> list[Finding]:
    port = port_here(profile.plan, config, ssh_config)
    findings = await _readable(config, shell, port)
    findings += [await _status(config.name, shell, page) for page in config.status]
    findings += await _tails(config, shell)
    knobs = [knob for knob in profile.knobs if knob.host == config.name]
    actions = [action.command for action in profile.actions if action.host == config.name]
    if knobs or actions:
        changed = await open_shell(config.outside, ssh_config) if config.changes_outside else shell
        try:
            remote = privileged(config, changed)
            findings += await _changeable(config, remote, knobs, actions, execute)
            read = knobs if execute else [replace(knob, get="") for knob in knobs]
            findings += await diagnose_servers(remote, config.name, port, read)
        finally:
            if changed is not shell:
                await changed.close()
    return findings


async def _readable(config: HostConfig, shell: Shell, port: int | None) -> list[Finding]:
    name = config.name
    try:
        probe = await Probe.start(shell, config, port)
    except HostError as error:
        return [failed(name, error)]
    try:
        async with asyncio.timeout(_READ_TIMEOUT):
            await probe.read()
            await asyncio.sleep(_READ_INTERVAL)
            reading = await probe.read()
    except TimeoutError:
        return [problem(name, "the probe started but does not answer", exit_code=3)]
    finally:
        probe.close()
    facts = probe.facts
    who = (await shell.run("id -un")).stdout.decode("utf-8", "replace").strip()
    kernel = f"{sanitize(facts.kernel)}, {count_text(facts.cpus, 'CPU')}"
    place = f"{sanitize(config.place)} as {sanitize(who)}: {kernel}; /proc is readable, nothing to install"
    return [passed(name, place), _clock(name, facts.clock_offset), *_processes(config, reading)]


def _clock(name: str, offset: float | None) -> Finding:
    if offset is None:
        return note(name, "its clock cannot be read", "times in its logs are shown unchanged")
    if abs(offset) > _MAX_CLOCK_OFFSET:
        which = "ahead" if offset > 0 else "behind"
        return note(
            name,
            f"its clock is {abs(offset):.1f} s {which}; the times of metrics are corrected",
            "times in its log lines are not corrected; synchronise the clock by NTP",
        )
    return passed(name, f"clock within {max(abs(offset), 0.001):.3f} s of this machine's")


def _processes(config: HostConfig, reading: HostReading) -> Iterable[Finding]:
    if reading.hidden:
        yield note(
            config.name,
            "/proc hides processes of other users from this user (hidepid)",
            "log in as root, or add the user to the group in the gid= mount option of /proc",
        )
    if not config.processes:
        return
    count = len(reading.processes)
    if not count and not reading.hidden:
        yield note(
            config.name,
            f"no process is named {config.watched!r}",
            "is the server up? the name must match /proc/PID/comm (ps -o comm); patterns such as php-fpm* are allowed",
        )
    elif count:
        others = f", excluding {reading.excluded} of other servers of that name" if reading.excluded else ""
        yield passed(config.name, f"{count} process{'' if count == 1 else 'es'} {config.watched!r}{others}")
    if reading.excluded is None:
        yield note(
            config.name,
            "several servers have this name, and the target's server is unknown",
            "process metrics include all of them; log in as root, or set `upstreams` to the addresses behind the proxy",
        )


async def _status(name: str, shell: Shell, page: StatusPage) -> Finding:
    try:
        metrics = await read_page(shell, page)
    except HostError as error:
        return note(name, f"status page {page.url}: {error.problem}", "metrics of this page will be missing")
    return passed(name, f"status page {page.url}: {len(metrics.values)} metrics")


async def _tails(config: HostConfig, shell: Shell) -> list[Finding]:
    """Check whether the commands and files of the tails exist."""
    required = [f"tool:{word}" for tail in config.tail for word in _first_words([tail])]
    required += [f"read:{path}" for tail in config.tail for path in _paths(tail)]
    findings = []
    for missing in await _missing(shell, required):
        kind, _, name = missing.partition(":")
        text, fix = f"tail: {name} cannot be read", "is the path correct, can this user read it?"
        if kind == "tool":
            text, fix = f"tail: command {name!r} not found", "install it there, or remove the tail"
        findings.append(note(config.name, text, fix))
    return findings


async def _changeable(
    config: HostConfig, remote: Remote, knobs: list[Knob], actions: list[str], execute: bool
) -> list[Finding]:
    """Check whether each knob can be read, written, tested and reloaded."""
    name = config.name
    if config.sudo:
        try:
            await remote.run("true")
        except CockpitError as error:
            return [failed(name, error)]
    findings = await diagnose_changes(remote, name)
    fix = "changes need it: install coreutils or busybox"
    tools = await _missing(remote, [f"tool:{tool}" for tool in _TOOLS])
    findings += [problem(name, f"command {tool.partition(':')[2]} not found", fix) for tool in tools]
    real: dict[str, str] = {}
    for knob in knobs:
        readable = execute or not (knob.get or knob.option)
        if readable or knob.in_file:
            findings.append(await _value(remote, knob, real, readable))
    fix = "log in as root, or set sudo = true in [[host]] (with NOPASSWD in the sudoers file)"
    files_there = await _missing(remote, [f"write:{path}" for path in dict.fromkeys(real.values())])
    findings += [problem(name, f"{file.partition(':')[2]} or its folder is not writable", fix) for file in files_there]
    commands = [*(knob.test for knob in knobs), *(knob.reload for knob in knobs), *actions]
    absent = await _missing(remote, [f"command:{word}" for word in _first_words(commands)])
    fix = "a test, reload or action starts with it; install it, or use its absolute path"
    findings += [
        problem(name, f"command {word.partition(':')[2]!r} not found in the login's PATH", fix) for word in absent
    ]
    for test in dict.fromkeys(knob.test for knob in knobs if knob.test and execute):
        if f"command:{next(_first_words([test]), '')}" not in absent:
            findings.append(await _tested(name, remote, test))
    return findings


async def _value(remote: Remote, knob: Knob, real: dict[str, str], live: bool) -> Finding:
    """Check the knob's value; add the real path of its file to `real`. Without `live` only its file is read."""
    try:
        if knob.in_file:
            file = await files.read_of(remote, knob.host, knob)
            real[knob.file] = file.real
            value = plan.value_in(file, knob).value
        if knob.live and live:
            value = await Tuner().read(remote, knob)
    except CockpitError as error:
        return problem(knob.host, f"{knob.name}: {error.problem}", "fix the file, section or command of this knob")
    shown = "is not set" if value is None else "(secret)" if knob.secret else f"= {sanitize(value, 60)}"
    if knob.written_only:
        shown += f"; changes are written, but not activated: {knob.activation}"
    return passed(knob.host, f"{knob.name} {shown}  ({sanitize(knob.place, 80)})")


async def _tested(name: str, remote: Remote, test: str) -> Finding:
    done = await files.run(remote, f'{HEAD}\nas_login sh -c "$1" </dev/null', test, seconds=_TEST_TIMEOUT)
    if done.exit_status == 0:
        return passed(name, f"`{sanitize(test, 200)}` passes")
    why = useful_line(done.stderr, done.stdout) or f"exit status {done.exit_status}"
    return problem(name, f"`{sanitize(test, 200)}` fails: {why}", "all changes are refused: fix the configuration")


async def _missing(remote: Remote, required: Iterable[str]) -> list[str]:
    names = list(dict.fromkeys(required))
    if not names:
        return []
    answers = (await files.run(remote, _EXIST, *names)).stdout.decode("ascii", "replace").split()
    return [name for name, exists in zip(names, answers, strict=False) if exists != "yes"]


def _first_words(commands: Iterable[str]) -> Iterator[str]:
    """Yield the first program of each command, if it is a plain word."""
    for command in commands:
        try:
            words = shlex.split(command.replace("\n", " "), posix=True)
        except ValueError:
            continue
        word = next(iter(words), "").rstrip(";")
        if word and word not in _SHELL and not _ASSIGNMENT.match(word) and not set(word) & set("$`|&<>("):
            yield word


def _paths(command: str) -> Iterable[str]:
    """Yield the absolute paths among the arguments of a command."""
    try:
        words = shlex.split(command)[1:]
    except ValueError:
        return
    for word in words:
        if posixpath.isabs(word) and not set(word) & set("*?["):
            yield word


async def diagnose_changes(remote: Remote, name: str) -> list[Finding]:
    """Check whether the restorer survives a logout, backups reach the disk, and no change is unfinished."""
    done = await files.run(remote, f"{HEAD}{DETACH}outlives")
    facts = done.stdout.decode("ascii", "replace").split()
    if len(facts) != _FACTS:
        return [note(name, f"the restorer of changes cannot be checked: {files.error_reason(done)}")]
    place, kills, flushes = facts
    findings = [_restorer(name, place, kills)]
    how = "" if flushes == "files" else ", by a sync of all disks (this sync(1) cannot sync single files)"
    findings.append(passed(name, f"backups are flushed to the disk before a file is replaced{how}"))
    try:
        past = await Tuner().history(remote, name)
    except ChangeRefused as error:
        return [*findings, problem(name, str(error), "changes need a directory for their backups")]
    changes = unfinished(past)
    for change in changes:
        knobs = ", ".join(setting.knob for setting in change.facts.settings)
        text = f"change {change.name} of {change.facts.who} ({knobs}) is {state_words(change)}"
        findings.append(problem(name, text, f"cockpit tune PROFILE undo {change.name} rolls it back"))
    return findings if changes else [*findings, passed(name, "no unfinished changes")]


def _restorer(name: str, place: str, kills: str) -> Finding:
    if place == "unit":
        return passed(name, "the restorer of a change survives a logout: it runs in a separate systemd unit")
    if kills == "yes":
        return problem(
            name,
            "the restorer of a change is killed at logout (KillUserProcesses=yes): no automatic rollback",
            "loginctl enable-linger for this user, log in as root, or set sudo = true in [[host]]",
        )
    return passed(name, "the restorer of a change survives a logout: it runs in a separate session")
