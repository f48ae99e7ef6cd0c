"""The terminal of a study goes away: it goes on to its end or stops, as was asked for, and puts its settings back."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.cli.terminals import on_terminal
from tests.study.conftest import Studied, until

SHORT = 'duration = "{duration}"\nrate = 20\nrounds = 1\nvariants = ["more"]'


@pytest.mark.parametrize(
    ("hangup", "controlling", "duration", "code"),
    [("continue", True, "2s", 0), ("stop", False, "10m", 130)],
    ids=["continue, told by SIGHUP", "stop, found by itself"],
)
async def test_a_terminal_that_goes_away(
    studied: Studied, hangup: str, controlling: bool, duration: str, code: int
) -> None:
    studied.write(short=SHORT.format(duration=duration))
    command = [sys.executable, "-m", "cockpit", *studied.command("--on-hangup", hangup)]
    with on_terminal(command, controlling=controlling) as screen:
        reading = asyncio.create_task(asyncio.to_thread(screen.until, b"req/s"))
        await until(lambda: studied.set_to("7"), "the variant's value")
        await reading
        screen.close()
        await until(lambda: screen.process.poll() is not None, "the end of the study")
        assert screen.process.returncode == code
    assert studied.as_it_was() and not studied.journal().touched
    assert studied.journal().finished == (hangup == "continue")
