"""The progress of a study on a terminal: a single line that is updated, narrower than the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len

from tests.cli.terminals import on_terminal
from tests.cli.test_headless import COCKPIT
from tests.servers import http_server

COLUMNS = 50
PROFILE = """
[target]
url = "{url}"
[load]
duration = "1s"
[study]
rounds = 1
metrics = ["rate"]
[[study.variant]]
name = "a new connection for each of the requests"
keepalive = false
[[study.variant]]
name = "kept connections for all of the requests"
"""


def test_no_progress_line_wraps(tmp_path: Path) -> None:
    with http_server() as url:
        profile = tmp_path / "two.toml"
        profile.write_text(PROFILE.format(url=url))
        environment = {"XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
        flags = ["--no-tui", "--trust", "-o", str(tmp_path / "study")]
        with on_terminal([*COCKPIT, "study", str(profile), *flags], (COLUMNS, 20), environment) as terminal:
            assert terminal.end() == 0
            while terminal.read():
                pass
    lines = [text.partition("\r\n")[0] for text in terminal.shown.decode().split("\r\x1b[K")[1:]]
    progress = [line for line in lines if line.startswith("round 1 of 1 · step")]
    assert len(progress) > 2 and any(cell_len(line) == COLUMNS - 1 for line in progress)
    assert all(cell_len(line) < COLUMNS for line in progress)
