"""The history of checks on the start screen."""

import numpy as np
from textual.widgets import OptionList, Static

from cockpit.document.model import Document
from cockpit.model.errors import UsageError
from cockpit.recording.check_history import CheckedTarget
from cockpit.report.history import history_document, history_of
from cockpit.tui.start.app import StartApp
from cockpit.tui.start.history import HistoryReader, HistoryScreen, document_lines
from cockpit.tui.start.screen import StartScreen
from cockpit.tui.terminal.styled_line import length
from tests.cli.test_history import months
from tests.tui.driving import until
from tests.tui.test_start import start_choices, wait_listed

CHECKS = months(np.random.default_rng(1))
DOCUMENT = history_document(history_of("shop", CHECKS, 1))


def documents(target: str) -> Document:
    if target != "shop":
        raise UsageError("gone: no check yet")
    return DOCUMENT


async def test_history_of_the_selected_profile_is_shown() -> None:
    targets = [CheckedTarget("shop\x1b[2J", 40, CHECKS[-1]), CheckedTarget("gone", 1, CHECKS[0])]
    reader = HistoryReader(lambda: targets, lambda name: documents(name.partition("\x1b")[0]))
    app = StartApp(StartScreen(start_choices), history=reader)
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_listed(pilot)
        await pilot.press("X")
        await until(pilot, lambda: isinstance(app.screen, HistoryScreen))
        screen = app.screen
        assert isinstance(screen, HistoryScreen)
        shown = screen.query_one("#text", Static)
        await until(pilot, lambda: "checks of shop" in str(shown.render()))
        row = str(screen.query_one(OptionList).get_option_at_index(0).prompt)
        assert row.startswith("shop") and "40 checks  v2" in row and "\x1b" not in row
        await pilot.press("down")
        await until(pilot, lambda: "gone: no check yet" in str(shown.render()))


async def test_without_checks_the_command_is_named() -> None:
    app = StartApp(StartScreen(start_choices))
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_listed(pilot)
        await pilot.press("X")
        await until(
            pilot, lambda: "No checks yet. cockpit check" in str(app.screen.query_one("#text", Static).render())
        )


def test_changed_metric_is_first_with_its_release_below_the_change() -> None:
    for width in (40, 75, 103):
        lines = [*document_lines(DOCUMENT, width)]
        assert all(length(line) <= width for line in lines)
        texts = ["".join(piece for piece, _ in line) for line in lines]
        first = texts.index("metrics over time") + 1
        assert texts[first].startswith("p99 ")
        chart, sign = texts[first + 1 : first + 4], texts[first + 4]
        place = sign.index("▲")
        assert sign.strip("▲ ").startswith("1970-01-26 v2") and "\x1b" not in sign
        assert abs(place - width * 25 / 40) <= 1
        # The top row of the chart shows the values after the change.
        before, after = chart[0][:place], chart[0][place:]
        assert before.count(" ") > 0.8 * len(before) and after.count(" ") < 0.2 * len(after)
        assert any(text.startswith("failed.share") and text.endswith("always 0%") for text in texts)
    roles = {role for line in document_lines(DOCUMENT, 103) for piece, role in line if "%" in piece}
    assert "worse_value" in roles
