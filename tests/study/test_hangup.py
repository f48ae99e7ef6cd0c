"""The terminal of a study closes: the study continues or stops, as configured, and rolls its settings back."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.cli.terminals import on_terminal
from tests.study.conftest import DemoStudy, until

SHORT = 'duration = "{duration}"\nrate = 20\nrounds = 1\nvariants = ["more"]'


@pytest.mark.parametrize(
    ("hangup", "controlling", "duration", "code"),
    [("continue", True, "2s", 0), ("stop", False, "10m", 130)],
    ids=["continue, by SIGHUP", "stop, without SIGHUP"],
)
async def test_study_continues_or_stops_when_terminal_closes(
    demo_study: DemoStudy, hangup: str, controlling: bool, duration: str, code: int
) -> None:
    demo_study.write(short=SHORT.format(duration=duration))
    command = [sys.executable, "-m", "cockpit", *demo_study.command("--on-hangup", hangup)]
    with on_terminal(command, controlling=controlling) as screen:
        reading = asyncio.create_task(asyncio.to_thread(screen.until, b"req/s"))
        await until(lambda: demo_study.has_value("7"), "the variant's value")
        await reading
        screen.close()
        await until(lambda: screen.process.poll() is not None, "the end of the study")
        assert screen.process.returncode == code
    assert demo_study.is_original() and not demo_study.journal().touched
    assert demo_study.journal().finished == (hangup == "continue")
