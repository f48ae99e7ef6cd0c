"""Values of secret knobs: in no command line, error, diff or history."""

from __future__ import annotations

import asyncio
import shlex
import sys

import pytest

from cockpit.model.errors import ChangeRefused, ChangeRolledBack, CockpitError
from cockpit.model.knobs import SECRET, Knob
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import FaultyShell, Server, until

OLD, NEW = "old-T0ken-5b1f", "new-T0ken-9c2e"
# Reads the command lines of all processes until the file is removed.
READER = """
import os, sys
from contextlib import suppress
while os.path.exists(sys.argv[1]):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            line = file.read()
        if b"T0k" + b"en" in line:
            print(line, flush=True)
    print("round", flush=True)
"""


def secret(server: Server, **changed: object) -> Knob:
    token = server.state / "token"
    if not token.exists():
        token.write_text(f"{OLD}\n")
    file = shlex.quote(str(token))
    # The command runs until the reader has completed another round.
    values: dict[str, object] = {
        "name": "Token",
        "host": "web1",
        "kind": "command",
        "secret": True,
        "get": f"cat {file}",
        "set": f'{wait_for_reader(server)}; printf "%s\\n" "$1" >{file}',
    }
    return Knob(**(values | changed))  # type: ignore[arg-type]


def wait_for_reader(server: Server) -> str:
    """A command that ends once the reader has read all processes twice."""
    log = shlex.quote(str(server.root / "read"))
    rounds = f"$(grep -c round {log} 2>/dev/null)"
    return f"[ ! -e {log} ] || {{ n={rounds}; until [ {rounds} -gt $((n + 2)) ]; do sleep 0.05; done; }}"


async def test_secret_value_is_in_no_command_line(server: Server, shell: FaultyShell) -> None:
    enabled, log = server.root / "going", server.root / "read"
    enabled.touch()
    with log.open("wb") as output:
        reader = await asyncio.create_subprocess_exec(sys.executable, "-c", READER, str(enabled), stdout=output)
    await until(lambda: b"round" in log.read_bytes())
    knob = secret(server)
    applied = await Tuner().apply(shell, "web1", [(knob, NEW)])
    assert (server.state / "token").read_text() == f"{NEW}\n"
    await Tuner().undo(shell, applied)
    with pytest.raises(ChangeRolledBack):
        await Tuner().apply(shell, "web1", [(secret(server, test=f"{wait_for_reader(server)}; exit 1"), NEW)])
    assert (server.state / "token").read_text() == f"{OLD}\n"
    enabled.unlink()
    await reader.wait()
    assert b"T0ken" not in log.read_bytes()
    assert not any("T0ken" in program for program, _ in shell.commands)


@pytest.mark.parametrize(
    "changed",
    [
        {"values": (OLD, "other")},
        {"set": 'echo "cannot set $1" >&2; exit 3'},
        {"set": "true"},
        {"test": f"echo 'bad value {NEW}' >&2; exit 1"},
        {"reload": f"echo 'bad value {NEW}' >&2; exit 1"},
    ],
)
async def test_secret_value_is_in_no_error(server: Server, shell: FaultyShell, changed: dict[str, object]) -> None:
    with pytest.raises(CockpitError) as failed:
        await Tuner().apply(shell, "web1", [(secret(server, **changed), NEW)])
    assert "T0ken" not in str(failed.value) and "Token" in str(failed.value)


async def test_foreign_secret_value_is_in_no_error(server: Server, shell: FaultyShell) -> None:
    applied = await Tuner().apply(shell, "web1", [(secret(server), NEW)])
    (server.state / "token").write_text("third-T0ken\n")
    with pytest.raises(ChangeRefused, match="somebody else changed it since") as failed:
        await Tuner().undo(shell, applied)
    assert "T0ken" not in str(failed.value)


async def test_history_and_diff_hide_secret_value(server: Server, shell: FaultyShell) -> None:
    in_file = server.keep_alive(secret=True)
    plan = await Tuner().prepare(shell, "web1", [(secret(server), NEW), (in_file, "${S0me_T0ken}")])
    assert "T0ken" not in plan.diff and SECRET in plan.diff
    applied = await Tuner().apply(shell, "web1", [(secret(server), NEW), (in_file, "${S0me_T0ken}")])
    (past,) = await Tuner().history(shell, "web1")
    assert {(s.old, s.new) for s in past.facts.settings} == {(SECRET, SECRET)}
    (change,) = server.changes()
    assert "T0ken" not in (change / "facts").read_text() + (change / "owner").read_text()
    assert "T0ken" not in " ".join(map(str, applied.notes))
