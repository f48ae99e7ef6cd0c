"""The terminal of a study goes away: it goes on to its end or stops, as was asked for, and puts its settings back."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.cli.terminals import on_terminal
from tests.study.conftest import Studied, until

# Long enough for the terminal to go away in.
SLOW = 'duration = "2s"\nconcurrency = 2\nrounds = 1\nvariants = ["more"]'


@pytest.mark.parametrize("controlling", [True, False], ids=["told by SIGHUP", "found by itself"])
@pytest.mark.parametrize(("hangup", "code"), [("continue", 0), ("stop", 130)])
async def test_a_terminal_that_goes_away(studied: Studied, hangup: str, code: int, controlling: bool) -> None:
    studied.write(short=SLOW)
    command = [
        sys.executable,
        "-m",
        "cockpit",
        "study",
        "--trust",
        str(studied.profile),
        "--short",
        "--on-hangup",
        hangup,
    ]
    command += ["--ssh-config", str(studied.world.ssh_config), "-o", str(studied.folder)]
    with on_terminal(command, controlling=controlling) as screen:
        reading = asyncio.create_task(asyncio.to_thread(screen.until, b"req/s"))
        await until(lambda: studied.set_to("7"), "the variant's value")
        await reading
        screen.close()
        await until(lambda: screen.process.poll() is not None, "the end of the study")
        assert screen.process.returncode == code
    assert studied.as_it_was() and not studied.journal().touched
    assert studied.journal().finished == (hangup == "continue")
