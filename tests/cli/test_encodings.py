"""Output in locales whose encodings lack some characters: no command fails, and no result is lost."""

import io
import json
import sys
from pathlib import Path

import pytest

from cockpit.cli import main
from cockpit.cli.pager import page
from cockpit.cli.terminal import prepare_streams, raw

ENCODINGS = ("iso8859-2", "euc_jp", "shift_jis", "gb2312", "koi8-r", "ascii")
RECORDING = str(Path(__file__).parents[1] / "recordings/under-load.cockpit")
# A command, and a word of its result.
COMMANDS = (
    (("report", RECORDING), "completed"),
    (("compare", f"{RECORDING}#1", f"{RECORDING}#1"), "rate"),
    (("recordings", "list"), "hello.html"),
    (("check", RECORDING), "5999.8 req/s"),
    (("help", "settings"), "settings"),
    (("completion", "zsh"), "compdef"),
    (("export", RECORDING, "--format", "csv"), "run"),
)


pytestmark = pytest.mark.parametrize("encoding", ENCODINGS)


@pytest.fixture(autouse=True)
def recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "webcockpit/recordings"
    folder.mkdir(parents=True)
    (folder / "żó💥.cockpit").write_bytes(Path(RECORDING).read_bytes())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def streams(encoding: str, monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """Replace stdout and stderr; return the bytes that are written to them."""
    written = io.BytesIO()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(written, encoding=encoding, write_through=True))
    prepare_streams()
    return written


def test_every_command_prints_in_every_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = streams(encoding, monkeypatch)
    for command, word in COMMANDS:
        stdout.seek(0)
        stdout.truncate()
        assert main(command) == 0, (command, stdout.getvalue())
        assert word in stdout.getvalue().decode(raw(sys.stdout).encoding), command


def test_errors_are_printed_in_every_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = streams(encoding, monkeypatch)
    assert main(["report", "/nowhere/żó💥….cockpit"]) == 2
    assert stdout.getvalue().startswith(b"cockpit: /nowhere/")


def test_formatted_texts_are_printed_in_every_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = streams(encoding, monkeypatch)
    monkeypatch.setenv("PAGER", "")
    page("\x1b[1mżó💥 … ▁▂▃\x1b[0m\n")
    assert stdout.getvalue().startswith(b"\x1b[1m") and stdout.getvalue().endswith(b"\x1b[0m\n")


def test_json_is_utf8_in_every_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = streams(encoding, monkeypatch)
    assert main(["recordings", "list", "--json"]) == 0
    [found] = json.loads(stdout.getvalue().decode("utf-8"))
    assert found["name"] == "żó💥"
