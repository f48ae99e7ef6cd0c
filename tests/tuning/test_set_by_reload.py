"""File values that a reload activates and a command reads: active at once, late, never, or corrected."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cockpit.model.errors import ChangeRolledBack
from cockpit.model.knobs import Knob, Setting
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import FaultyShell, Server

TEXT = "WORKERS=2\n"


@pytest.fixture
def knob(server: Server) -> Knob:
    """The running server has the value of the last reload."""
    file, level = server.directory / "service.env", server.state / "level"
    file.write_text(TEXT)
    level.write_text("2\n")
    return Knob(
        name="workers",
        host="web1",
        kind="keyvalue",
        file=str(file),
        key="WORKERS",
        get=f"cat {shlex.quote(str(level))}",
        reload=f"sed -n s/WORKERS=//p {shlex.quote(str(file))} >{shlex.quote(str(level))}",
    )


def text_of(knob: Knob) -> str:
    return Path(knob.file).read_text()


def with_commands(knob: Knob, **changed: str) -> Knob:
    values = {name: getattr(knob, name) for name in knob.__struct_fields__} | changed
    return Knob(**values)


async def test_value_is_active_after_reload_and_can_be_undone(knob: Knob, shell: FaultyShell) -> None:
    tuner = Tuner()
    applied = await tuner.apply(shell, "web1", [(knob, "8")])
    assert await tuner.read(shell, knob) == "8" and applied.outcome == "applied"
    assert applied.settings == (Setting(knob="workers", old="2", new="8"),)
    await tuner.undo(shell, applied)
    assert text_of(knob) == TEXT
    assert await tuner.read(shell, knob) == "2"


async def test_value_may_become_active_after_reload(knob: Knob, server: Server, shell: FaultyShell) -> None:
    late = shlex.quote(str(server.state / "late"))
    delayed_get = f"if [ -e {late} ]; then rm {late}; echo 2; else {knob.get}; fi"
    late_knob = with_commands(knob, get=delayed_get, reload=f"{knob.reload}; touch {late}")
    assert (await Tuner().apply(shell, "web1", [(late_knob, "8")])).outcome == "applied"
    assert not (server.state / "late").exists()


async def test_ignored_value_is_rolled_back(knob: Knob, shell: FaultyShell) -> None:
    with pytest.raises(ChangeRolledBack, match="workers: it is still 2: the host ignored 8"):
        await Tuner(timeouts=Timeouts(effect=0.5)).apply(shell, "web1", [(with_commands(knob, reload="true"), "8")])
    assert text_of(knob) == TEXT


async def test_corrected_value_is_reported(knob: Knob, shell: FaultyShell) -> None:
    capped_at_4 = with_commands(knob, reload=knob.reload.replace("s/WORKERS=//p", "'s/WORKERS=.*/4/p'"))
    applied = await Tuner().apply(shell, "web1", [(capped_at_4, "8")])
    assert applied.notes == ("web1 corrected workers 8 to 4",)
