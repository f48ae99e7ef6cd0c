"""Completion scripts in their shells."""

import os
import subprocess
from pathlib import Path

import pytest

from cockpit.cli.commands.completion import SHELLS
from cockpit.cli.commands.help import topics
from tests.cli.terminals import on_terminal
from tests.commands import cockpit
from tests.data import data_of

DATA = data_of(__file__)

# Typed text and its completions.
CASES = [
    ("cockpit repl", {"replay"}),
    ("cockpit help exp", {"expressions"}),
    ("cockpit help ", set(topics())),
    ("cockpit run spare", {"spare-servers"}),
    ("cockpit study min", {"mine"}),
    ("cockpit run --max", {"--max-in-flight"}),
    ("cockpit check --ord", {"--order"}),
    ("cockpit run --order ", {"sequence", "shuffle", "once"}),
    ("cockpit recordings del", {"delete"}),
    ("cockpit recordings delete ", {"night-1", "night-2"}),
    ("cockpit replay night-2", {"night-2"}),
    ("cockpit report --format h", {"html"}),
    ("cockpit completion f", {"fish"}),
    ("cockpit tune spare-servers hist", {"history"}),
]
BASH = DATA["bash"]
FISH = DATA["fish"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment with two recordings in the library and a user profile."""
    profiles = tmp_path / "config" / "webcockpit" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "mine.toml").touch()
    library = tmp_path / "state" / "webcockpit" / "recordings"
    library.mkdir(parents=True)
    for name in ("night-1", "night-2"):
        (library / f"{name}.cockpit").touch()
    return {
        **os.environ,
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "HOME": str(tmp_path),
        "TERM": "xterm",
    }


def script(shell: str, folder: Path, environment: dict[str, str]) -> Path:
    done = cockpit("completion", shell, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    path = folder / f"cockpit.{shell}"
    path.write_text(done.stdout)
    return path


@pytest.mark.parametrize(("shell", "program"), [("bash", BASH), pytest.param("fish", FISH, marks=pytest.mark.lab)])
def test_bash_and_fish_completion(shell: str, program: str, tmp_path: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [shell, "-c", program],
        input="".join(f"{typed}\n" for typed, _ in CASES),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**environment, "SCRIPT": str(script(shell, tmp_path, environment))},
    )
    found = [set(line.split()) for line in done.stdout.splitlines()]
    assert done.stderr == ""
    for (typed, expected), completed in zip(CASES, found, strict=True):
        assert completed == expected, typed


@pytest.mark.lab
def test_zsh_completion(tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """zsh completes only on a terminal."""
    monkeypatch.chdir(tmp_path)
    load = f"eval \"$(<'{script('zsh', tmp_path, environment)}')\""
    with on_terminal(["zsh", "-f", "-i"], environment=environment) as terminal:

        def type_and_wait(typed: str, *expected: str) -> None:
            terminal.type(typed.encode())
            terminal.until_words(*expected)

        type_and_wait(f"PS1='ready'; autoload -U compinit; compinit -D; {load}; echo lo''aded\n", "loaded")
        for typed, expected in CASES:
            word, *others = expected
            type_and_wait(f"{typed}\t\t" if others else f"{typed}\t", *((word, *others) if others else (f"{word} ",)))
            type_and_wait("\x15echo do''ne\n", "done")


HOSTILE = ("a$(touch pwned)", "b`touch pwned`", "c;touch pwned", "d\ntouch pwned")
START = {
    "bash": ("bash", "--norc", "-i"),
    "zsh": ("zsh", "-f", "-i"),
    "fish": ("fish", "--no-config", "--private"),
}


@pytest.mark.lab
@pytest.mark.parametrize("shell", SHELLS)
def test_a_completed_name_of_a_file_runs_no_command(
    shell: str, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path / "state/webcockpit/recordings", tmp_path):
        for name in HOSTILE:
            (folder / f"{name}.cockpit").touch()
            (tmp_path / "config/webcockpit/profiles" / f"{name}.toml").touch()
    monkeypatch.chdir(tmp_path)
    load = {"bash": "source", "zsh": "PS1='ready'; autoload -U compinit; compinit -D; source", "fish": "source"}[shell]
    stub = "function cockpit; echo got; end" if shell == "fish" else "cockpit() { echo got; }"
    with on_terminal(START[shell], environment=environment) as terminal:
        terminal.type(f"{load} {script(shell, tmp_path, environment)}; {stub}; echo lo''aded\n".encode())
        terminal.until_words("loaded")
        for command in ("replay", "run", "report"):
            for name in HOSTILE:
                terminal.type(f"cockpit {command} {name[0]}\t\necho do''ne {command} {name[0]}\n".encode())
                terminal.until_words(f"done {command} {name[0]}")
    assert not (tmp_path / "pwned").exists()


def test_every_shell_has_a_script_and_others_are_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    scripts = {script(shell, tmp_path, environment).read_text() for shell in SHELLS}
    assert len(scripts) == len(SHELLS) == 3 and all(" webcockpit" in text for text in scripts)
    done = cockpit("completion", "ksh")
    assert (done.returncode, done.stdout) == (2, "")
    assert "argument shell: invalid choice: 'ksh'" in done.stderr
    usage = cockpit("completion", "--help").stdout
    assert all(shell in usage for shell in SHELLS)
