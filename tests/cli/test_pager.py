"""Help topics on a terminal: laid out, and paged if they are longer than it."""

from __future__ import annotations

import pytest

from tests.cli.terminals import OnTerminal, on_terminal
from tests.cli.test_headless import COCKPIT
from tests.commands import cockpit

PAGER = "sh -c 'grep -c . >/dev/null && echo the pager was here'"


def whole(terminal: OnTerminal) -> str:
    """All output of a command that ends well."""
    assert terminal.end() == 0
    while terminal.read():
        pass
    return terminal.shown.decode()


def test_a_long_topic_goes_through_the_users_pager() -> None:
    with on_terminal([*COCKPIT, "help", "load"], size=(80, 24), environment={"PAGER": PAGER, "LINES": "0"}) as terminal:
        shown = whole(terminal)
    assert "the pager was here" in shown and "closed load" not in shown


@pytest.mark.parametrize(
    ("pager", "size"), [("/nowhere/pager", (80, 24)), ("'unclosed", (80, 24)), ("", (80, 24)), (PAGER, (80, 500))]
)
def test_without_a_pager_or_with_room_for_all_it_is_printed(pager: str, size: tuple[int, int]) -> None:
    with on_terminal([*COCKPIT, "help", "load"], size=size, environment={"PAGER": pager, "LINES": "0"}) as terminal:
        shown = whole(terminal)
    assert "closed load" in shown and "the pager was here" not in shown
    assert "# load:" not in shown, "it is laid out, not Markdown"


def test_in_a_pipe_it_is_plain_markdown() -> None:
    done = cockpit("help", "load")
    assert done.returncode == 0 and done.stdout.startswith("# load:") and "\x1b" not in done.stdout
