"""A server for commands, commands in this process, a recorded session, and sections of profiles."""

import io
import json
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import jsonschema
import pytest

from cockpit.cli import main
from cockpit.cli.command_flags import SCHEMAS
from cockpit.cli.commands.schema import schema_of
from tests.recording.test_recording import recorded
from tests.servers import http_server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield base


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of a recorded small session; baselines are saved in the test's folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return str(recorded(tmp_path / "small.cockpit"))


def is_output(command: str, word: str) -> bool:
    """Return whether the words are a command and its subcommand that prints JSON."""
    return f"{command}-{word}" in SCHEMAS


def in_process(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which costs less than a fork: for commands that use no terminal. The output of
    --json must match its schema."""
    words = [*map(str, arguments)]
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            code = main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
    if "--json" in words and out.getvalue():
        name = (
            words[0]
            if words[0] in SCHEMAS
            else next(f"{words[0]}-{word}" for word in words if is_output(words[0], word))
        )
        jsonschema.Draft202012Validator(schema_of(name)).validate(json.loads(out.getvalue()))
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def keyvalue(name: str, file: Path | str, active: str = 'reload = "true"', host: str = "web1") -> str:
    """Return the profile section of a knob in a file of KEY=VALUE lines; `active` is how its values become active."""
    return f'[[knob]]\nname = "{name}"\nhost = "{host}"\nkind = "keyvalue"\nfile = "{file}"\nkey = "{name}"\n{active}\n'
