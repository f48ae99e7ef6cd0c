"""Help topics on a terminal: formatted, and paged if longer than the terminal."""

from __future__ import annotations

import pytest

from tests.cli.terminals import TerminalProcess, on_terminal
from tests.cli.test_headless import COCKPIT
from tests.commands import cockpit

PAGER = "sh -c 'grep -c . >/dev/null && echo the pager was here'"


def output_of(terminal: TerminalProcess) -> str:
    """Return all output of a command that succeeds."""
    assert terminal.end() == 0
    while terminal.read():
        pass
    return terminal.shown.decode()


def test_long_topic_uses_pager() -> None:
    with on_terminal([*COCKPIT, "help", "load"], size=(80, 24), environment={"PAGER": PAGER, "LINES": "0"}) as terminal:
        shown = output_of(terminal)
    assert "the pager was here" in shown and "closed load" not in shown


@pytest.mark.parametrize(
    ("pager", "size"), [("/nowhere/pager", (80, 24)), ("'unclosed", (80, 24)), ("", (80, 24)), (PAGER, (80, 500))]
)
def test_topic_is_printed_without_pager_or_if_it_fits(pager: str, size: tuple[int, int]) -> None:
    with on_terminal([*COCKPIT, "help", "load"], size=size, environment={"PAGER": pager, "LINES": "0"}) as terminal:
        shown = output_of(terminal)
    assert "closed load" in shown and "the pager was here" not in shown
    assert "# load:" not in shown, "formatted, not Markdown"


def test_topic_is_plain_markdown_in_pipe() -> None:
    done = cockpit("help", "load")
    assert done.returncode == 0 and done.stdout.startswith("# load:") and "\x1b" not in done.stdout
