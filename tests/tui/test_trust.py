"""The start screen asks before it opens or checks an untrusted profile."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from textual.widgets import Static

from cockpit.profiles import catalogue
from cockpit.profiles.reader import read_profile
from cockpit.profiles.trust import is_trusted
from cockpit.tui.start.choices import Choice, StartChoices
from cockpit.tui.start.doctor import DoctorScreen
from cockpit.tui.start.trust import TrustScreen
from tests.tui.driving import press, text_of, until
from tests.tui.test_start import exit_choice, running_start_app, widget_text

HOSTILE = "[bold red]echo[/] [@click=app.bell]x[/] \x1b[2J\u202e"


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "hostile.toml"
    tails = "".join(f'[[host]]\nname = "h{at}"\ntail = ["echo {at}"]\n' for at in range(40))
    path.write_text(
        '[target]\nurl = "http://127.0.0.1:1/"\n'
        + tails
        + f'[[action]]\nname = "a"\nhost = "h0"\ncommand = "{HOSTILE!a}"\n'.replace("'", "").replace("\\x1b", "\\u001b")
    )
    return path


def choices_of(path: Path) -> StartChoices:
    return StartChoices([catalogue._read(path, "here")])


async def test_untrusted_profile_opens_only_after_y(hostile: Path) -> None:
    at = Choice("profile", str(hostile))
    async with running_start_app(choices_of(hostile), at=at, size=(80, 24)) as (pilot, app):
        await press(pilot, "enter")
        assert isinstance(app.screen, TrustScreen)
        lines = text_of(app.screen.query_one("#uses", Static)).splitlines()
        assert "  runs      [bold red]echo[/] [@click=app.bell]x[/] ·[2J·   (action a)" in lines
        assert "  runs      echo 39   (tail)" in lines
        await press(pilot, "end")
        assert app.screen.query_one("VerticalScroll").scroll_offset.y > 0
        await press(pilot, "escape")
        assert "hostile: not trusted; nothing was run" in widget_text(pilot, "#message")
        assert not is_trusted(read_profile(hostile))
        await press(pilot, "enter")
        await pilot.press("y")
        assert await exit_choice(pilot, app) == at
    assert is_trusted(read_profile(hostile))
    async with running_start_app(choices_of(hostile), at=at) as (pilot, app):
        await pilot.press("enter")
        assert await exit_choice(pilot, app) == at, "opens at once"


async def test_doctor_checks_untrusted_profile_only_after_y(hostile: Path) -> None:
    before = children()
    async with running_start_app(choices_of(hostile), at=Choice("profile", str(hostile))) as (pilot, app):
        await press(pilot, "h")
        assert isinstance(app.screen, TrustScreen)
        await press(pilot, "escape")
        assert not any(isinstance(screen, DoctorScreen) for screen in app.screen_stack)
        await press(pilot, "h")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, DoctorScreen))
        doctor = app.screen
        assert isinstance(doctor, DoctorScreen)
        await until(pilot, lambda: bool(children() - before) or doctor.over)
    assert children() <= before, "closing the doctor ends the shells of all hosts"


def children() -> set[int]:
    """Return the PIDs of child processes that were not reaped."""
    return {child.pid for child in psutil.Process().children()}
