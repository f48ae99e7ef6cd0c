"""The completion scripts, in the shells that they are for."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cockpit.cli.completion import SHELLS
from cockpit.cli.help import topics

ROOT = Path(__file__).parents[2]
# What is typed, and what it is completed to.
CASES = [
    ("cockpit repl", {"replay"}),
    ("cockpit help ex", {"exit-codes", "expressions"}),
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
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")
BASH = """
source "$SCRIPT"
function=$(complete -p cockpit | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
while IFS= read -r line; do
  read -ra COMP_WORDS <<<"$line"
  case $line in *' ') COMP_WORDS+=('') ;; esac
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
  "$function" cockpit "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  echo "${COMPREPLY[*]}"
done
"""
FISH = """
source $SCRIPT
while read -l line
  complete -C "$line" | string replace -r '\\t.*' '' | string join ' '
end
exit 0
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A library with two recordings, and a profile of the user's own."""
    own = tmp_path / "config" / "cockpit" / "profiles"
    own.mkdir(parents=True)
    (own / "mine.toml").touch()
    library = tmp_path / "state" / "cockpit" / "recordings"
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
    command = [sys.executable, "-m", "cockpit", "completion", shell]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    path = folder / f"cockpit.{shell}"
    path.write_text(done.stdout)
    return path


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is missing")


@pytest.mark.parametrize(("shell", "program"), [("bash", BASH), ("fish", FISH)])
def test_what_is_completed(shell: str, program: str, tmp_path: Path, environment: dict[str, str]) -> None:
    needs(shell)
    done = subprocess.run(
        [shell, "-c", program],
        input="".join(f"{typed}\n" for typed, _ in CASES),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**environment, "SCRIPT": str(script(shell, tmp_path, environment))},
    )
    found = [set(line.split()) for line in done.stdout.splitlines()]
    assert done.stderr == ""
    for (typed, wanted), offered in zip(CASES, found, strict=True):
        assert wanted <= offered, (typed, offered)
        if typed[-1] != " " and "spare" not in typed and "night" not in typed:
            assert wanted == offered, (typed, offered)


def test_zsh_completes_what_is_typed(tmp_path: Path, environment: dict[str, str]) -> None:
    """In a terminal of its own: zsh completes nowhere else."""
    needs("zsh")
    path = script("zsh", tmp_path, environment)
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(ROOT)
        os.execvpe("zsh", ["zsh", "-f", "-i"], environment)
    try:
        load = f"eval \"$(<'{path}')\""
        answer(terminal, f"PS1='ready'; autoload -U compinit; compinit -D; {load}; echo lo''aded\n", "loaded")
        for typed, wanted in CASES:
            if len(wanted) == 1:
                (word,) = wanted
                answer(terminal, f"{typed}\t", f"{word} ")
            else:
                answer(terminal, f"{typed}\t\t", *wanted)
            answer(terminal, "\x15echo do''ne\n", "done")
    finally:
        os.close(terminal)
        os.waitpid(process, 0)


def answer(terminal: int, typed: str, *wanted: str) -> None:
    """Wait until the terminal shows all that is wanted."""
    os.write(terminal, typed.encode())
    said, end = "", time.monotonic() + 60
    while not all(word in _ESCAPES.sub("", said) for word in wanted):
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"{typed!r} brought {said!r}"
        said += os.read(terminal, 1 << 16).decode(errors="replace")


def test_there_is_one_for_each_shell_that_is_named() -> None:
    assert SHELLS == ("bash", "zsh", "fish")
