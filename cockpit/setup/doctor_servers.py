"""Examines whether the target's server reads the files of a host's knobs."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob
from cockpit.model.text import neutral
from cockpit.setup.finding import Finding, good, note, wrong
from cockpit.tuning import files
from cockpit.tuning.evidence import FileState, state_of
from cockpit.tuning.remote import Remote
from cockpit.tuning.scripts import OWNER
from cockpit.tuning.server_check import ReadBy, read_by


async def examine_servers(remote: Remote, name: str, port: int | None, knobs: Sequence[Knob]) -> list[Finding]:
    """A finding per file. `port` is the target's if it is on this host. Raises HostError."""
    try:
        found = await read_by(remote, name, port, knobs)
    except ChangeRefused as error:
        return [wrong(name, error.problem, "a change would be refused: fix the file of this knob")]
    # On the target's own host the probe leaves them out.
    counted = found if port is None else []
    namesakes = {other.process.pid: neutral(other.words, 300) for one in counted for other in one.namesakes}
    mixed = f"processes of the same name belong to other servers: {'; '.join(namesakes.values())}"
    todo = "process metrics include them"
    return [
        *[finding for one in found for finding in await _of_file(remote, name, one, port)],
        *[each for one in found if one.unit and (each := await _writable(remote, name, one))],
        *([note(name, mixed, todo)] if namesakes else []),
    ]


async def _writable(remote: Remote, name: str, one: ReadBy) -> Finding | None:
    """An EnvironmentFile that another user than root, the login and the unit's own can replace."""
    done = await files.run(remote, OWNER, one.unit, one.file)
    match done.stdout.decode("utf-8", "replace").split():
        case [user, owner, mode]:
            file, unit = neutral(one.file, 200), neutral(one.unit, 200)
            facts = f"owner {neutral(owner, 80)}, mode {neutral(mode, 8)}"
            text = f"{file} ({facts}) or its folder can be written by others than root and the user of {unit}, {user}"
            todo = "a restart gives its variables to the unit: chown root and chmod go-w the file and its folders"
            return wrong(name, neutral(text, 600), todo)
    return None


async def _of_file(remote: Remote, name: str, one: ReadBy, port: int | None) -> list[Finding]:
    """Whether a server reads a file, and whether it has the values of it."""
    if one.wrong:
        return [_finding(name, one, port, FileState())]
    try:
        state = await state_of(remote, one, port)
    except ChangeRefused:  # the finding about its knob has the reason
        state = FileState()
    return [_finding(name, one, port, state), *_differences(name, one, state)]


def _differences(name: str, one: ReadBy, state: FileState) -> list[Finding]:
    file, reload = neutral(one.file, 200), next((knob.reload for knob in one.knobs if knob.reload), "")
    step = f"reload: {neutral(reload, 200)}" if reload else "reload the server"
    findings = []
    for shown in (each for each in state.shown if not each.agrees):
        text = f"{neutral(shown.words, 400)}, which is not the value in {file}"
        findings.append(note(name, text, "restart the server" if shown.knob.needs_restart else step))
    if state.awaiting:
        names = ", ".join(knob.name for knob in state.awaiting)
        text = f"{file} was edited after the start of the server, which reads {names} only then"
        findings.append(note(name, text, "restart the server"))
    if state.is_newer:
        text = f"{file} was edited after the last reload: the value in the file may not be the active one"
        findings.append(note(name, text, step))
    return findings


def _signs(state: FileState) -> str:
    """The signs that the server has the values of a file, and those that it does not show."""
    signs = []
    if equal := [each.knob.name for each in state.shown if each.agrees]:
        signs.append(f"the server shows its {', '.join(equal)}")
    if state.is_read:
        signs.append("the server read it after the last edit")
    if state.unseen:
        signs.append(f"the server does not show {', '.join(knob.name for knob in state.unseen)}")
    return "".join(f"; {sign}" for sign in signs)


def _finding(name: str, one: ReadBy, port: int | None, state: FileState) -> Finding:
    file, knobs = neutral(one.file, 200), ", ".join(knob.name for knob in one.knobs)
    if one.wrong:
        todo = "a change would be refused: correct the knobs, or write the profile again: cockpit new URL HOST"
        return wrong(name, f"{knobs}: {one.wrong}", todo)
    if one.doubt or one.instance is None:
        return note(name, f"{file} may not be read by the target's server: {one.doubt}", "compare it by hand")
    answers = f", which answers on port {port}" if port in one.instance.ports else ""
    return good(name, f"{file} is read by {neutral(one.instance.words, 300)}{answers}{_signs(state)}")
