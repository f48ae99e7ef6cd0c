"""Check whether the target's server reads the files of a host's knobs."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob
from cockpit.model.text import sanitize
from cockpit.setup.finding import Finding, note, passed, problem
from cockpit.tuning import files
from cockpit.tuning.evidence import FileState, state_of
from cockpit.tuning.remote import Remote
from cockpit.tuning.scripts import OWNER
from cockpit.tuning.server_check import FileReader, read_by


async def diagnose_servers(remote: Remote, name: str, port: int | None, knobs: Sequence[Knob]) -> list[Finding]:
    """Return a finding per file. `port` is the target's port if the target is on this host. Raises HostError."""
    try:
        readers = await read_by(remote, name, port, knobs)
    except ChangeRefused as error:
        return [problem(name, error.problem, "changes are refused: fix the file of this knob")]
    # On the target's host, the probe excludes processes of other servers.
    included = readers if port is None else []
    same_named = {other.process.pid: sanitize(other.words, 300) for read in included for other in read.same_named}
    text = f"processes of other servers have the same name: {'; '.join(same_named.values())}"
    fix = "process metrics include these servers"
    return [
        *[finding for read in readers for finding in await _of_file(remote, name, read, port)],
        *[finding for read in readers if read.unit and (finding := await _writable(remote, name, read))],
        *([note(name, text, fix)] if same_named else []),
    ]


async def _writable(remote: Remote, name: str, read: FileReader) -> Finding | None:
    """Report an EnvironmentFile that users other than root, the login and the user of the unit can replace."""
    done = await files.run(remote, OWNER, read.unit, read.file)
    match done.stdout.decode("utf-8", "replace").split():
        case [user, owner, mode]:
            file, unit = sanitize(read.file, 200), sanitize(read.unit, 200)
            facts = f"owner {sanitize(owner, 80)}, mode {sanitize(mode, 8)}"
            text = f"{file} ({facts}) or its folder is writable by users other than root and {user}, the user of {unit}"
            fix = "a restart passes its variables to the unit: chown root and chmod go-w the file and its folders"
            return problem(name, sanitize(text, 600), fix)
    return None


async def _of_file(remote: Remote, name: str, read: FileReader, port: int | None) -> list[Finding]:
    """Check whether a server reads a file, and whether the values in the file are active."""
    if read.wrong:
        return [_finding(name, read, port, FileState())]
    try:
        state = await state_of(remote, read, port)
    except ChangeRefused:  # the finding about the knob contains the reason
        state = FileState()
    return [_finding(name, read, port, state), *_differences(name, read, state)]


def _differences(name: str, read: FileReader, state: FileState) -> list[Finding]:
    file, reload = sanitize(read.file, 200), next((knob.reload for knob in read.knobs if knob.reload), "")
    step = f"reload: {sanitize(reload, 200)}" if reload else "reload the server"
    findings = []
    for shown in (shown for shown in state.shown if not shown.agrees):
        text = f"{sanitize(shown.words, 400)}, which differs from the value in {file}"
        findings.append(note(name, text, "restart the server" if shown.knob.needs_restart else step))
    if state.awaiting:
        names = ", ".join(knob.name for knob in state.awaiting)
        text = f"{file} was edited after the start of the server, which reads {names} only at startup"
        findings.append(note(name, text, "restart the server"))
    if state.is_newer:
        text = f"{file} was edited after the last reload: the value in the file might not be active"
        findings.append(note(name, text, step))
    return findings


def _confirmation(state: FileState) -> str:
    """Return how the active values were confirmed, and which settings the server does not show."""
    parts = []
    if equal := [shown.knob.name for shown in state.shown if shown.agrees]:
        parts.append(f"the server shows the same {', '.join(equal)}")
    if state.is_read:
        parts.append("the server read it after the last edit")
    if state.unseen:
        parts.append(f"the server does not show {', '.join(knob.name for knob in state.unseen)}")
    return "".join(f"; {part}" for part in parts)


def _finding(name: str, read: FileReader, port: int | None, state: FileState) -> Finding:
    file, knobs = sanitize(read.file, 200), ", ".join(knob.name for knob in read.knobs)
    if read.wrong:
        fix = "changes are refused: fix the knobs, or write a new profile: cockpit new URL --host HOST"
        return problem(name, f"{knobs}: {read.wrong}", fix)
    if read.uncertainty or read.instance is None:
        fix = "check the server's configuration by hand"
        return note(name, f"the target's server might not read {file}: {read.uncertainty}", fix)
    answers = f", which answers on port {port}" if port in read.instance.ports else ""
    return passed(name, f"{file} is read by {sanitize(read.instance.words, 300)}{answers}{_confirmation(state)}")
