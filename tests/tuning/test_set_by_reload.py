"""Values of a file that a reload makes active and a command reads: active at once, late, never, and corrected."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cockpit.model.errors import ChangeUndone
from cockpit.model.knobs import Knob, Setting
from cockpit.tuning.change_options import Patience
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import Interfering, Server

TEXT = "WORKERS=2\n"


@pytest.fixture
def knob(server: Server) -> Knob:
    """The running server has what a reload read last."""
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


async def test_a_reload_makes_it_active_and_an_undo_puts_it_back(knob: Knob, shell: Interfering) -> None:
    tuner = Tuner()
    applied = await tuner.apply(shell, "web1", [(knob, "8")])
    assert await tuner.read(shell, knob) == "8" and applied.outcome == "applied"
    assert applied.settings == (Setting(knob="workers", old="2", new="8"),)
    await tuner.undo(shell, applied)
    assert text_of(knob) == TEXT
    assert await tuner.read(shell, knob) == "2"


async def test_it_may_become_active_after_the_reload(knob: Knob, server: Server, shell: Interfering) -> None:
    late = shlex.quote(str(server.state / "late"))
    old = f"if [ -e {late} ]; then rm {late}; echo 2; else {knob.get}; fi"
    late_knob = with_commands(knob, get=old, reload=f"{knob.reload}; touch {late}")
    assert (await Tuner().apply(shell, "web1", [(late_knob, "8")])).outcome == "applied"
    assert not (server.state / "late").exists()


async def test_one_that_stays_as_it_was_is_rolled_back(knob: Knob, shell: Interfering) -> None:
    with pytest.raises(ChangeUndone, match="workers: it still is 2: the host ignored 8"):
        await Tuner(patience=Patience(effect=0.5)).apply(shell, "web1", [(with_commands(knob, reload="true"), "8")])
    assert text_of(knob) == TEXT


async def test_a_correction_is_reported(knob: Knob, shell: Interfering) -> None:
    at_most_4 = with_commands(knob, reload=knob.reload.replace("s/WORKERS=//p", "'s/WORKERS=.*/4/p'"))
    applied = await Tuner().apply(shell, "web1", [(at_most_4, "8")])
    assert applied.notes == ("web1 made 4 of workers 8",)
