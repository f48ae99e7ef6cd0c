"""A host that is lost during a study: the step is repeated when the host is back, and the result lists it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from cockpit.model.errors import HostError
from cockpit.model.state import State
from cockpit.report.study import rounds_lines
from cockpit.session.live_session import LiveSession
from cockpit.study import runner as runner_module
from cockpit.study.collecting import collect
from cockpit.study.runner import Runner
from tests.hosts.line import Line
from tests.study.conftest import Studied, until


class Wire:
    """The line to the demo's host, which can be lost: connections end, and there are no new ones."""

    def __init__(self, line: Line, sshd: int) -> None:
        self._line = line
        self._sshd = sshd

    async def lose(self) -> None:
        await self._line.stop()

    async def restore(self) -> None:
        await self._line.start(self._sshd)


def _behind(line: Line, studied: Studied, directory: Path) -> int:
    """Give the study an ssh_config that leads through the line; return the port of the demo's sshd."""
    known = studied.world.ssh_config.read_text()
    found = re.search(r"Port (\d+)", known)
    file = re.search(r'UserKnownHostsFile "(.+)"', known)
    assert found and file
    keys = directory / "known_hosts"
    keys.write_text(Path(file[1]).read_text().replace(f"]:{found[1]}", f"]:{line.port}"))
    studied.ssh_config = directory / "ssh_config"
    studied.ssh_config.write_text(known.replace(f"Port {found[1]}", f"Port {line.port}").replace(file[1], str(keys)))
    return int(found[1])


@pytest_asyncio.fixture
async def wire(studied: Studied, tmp_path: Path) -> AsyncIterator[Wire]:
    line = await Line().start(0)
    sshd = _behind(line, studied, tmp_path)
    await line.stop()
    yield Wire(await line.start(sshd), sshd)
    await line.stop()


def study_of(studied: Studied) -> tuple[LiveSession, Runner]:
    studied.write(short='variants = ["more"]\nrounds = 1\nduration = "2s"\nconcurrency = 2')
    return studied.in_process()


def in_a_run(state: State) -> bool:
    return state.running is not None


def in_a_change(state: State) -> bool:
    return bool(state.changes) and not state.changes[-1].outcome


@pytest.mark.parametrize("when", [in_a_run, in_a_change])
async def test_a_lost_step_is_repeated(studied: Studied, wire: Wire, when: Callable[[State], bool]) -> None:
    live, runner = study_of(studied)
    async with live:
        running = asyncio.create_task(runner.run())
        await until(lambda: running.done() or when(live.state), "the moment to lose it")
        await wire.lose()
        await until(lambda: running.done() or lost_steps(live.state) > 0, "the loss")
        assert not running.done(), running.exception()
        assert "waiting for a host" in runner.progress.now
        await wire.restore()
        await running
        state = live.state
    assert state.study and state.study.ended and len(state.study.done) == 1
    result = collect([state], "demo")
    assert result and len(result.repeated) == len(state.study.lost) == 1
    assert [run.counted for cell in result.cells for run in cell.runs][-1]
    assert any(line.startswith("a step was repeated: ") for line in rounds_lines(result))
    assert studied.as_it_was() and not studied.journal().touched


async def test_a_host_that_stays_away_ends_the_study(
    studied: Studied, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "LOST_FOR", 1.0)
    live, runner = study_of(studied)
    async with live:
        running = asyncio.create_task(runner.run())
        await until(lambda: running.done() or in_a_run(live.state), "a run")
        await wire.lose()
        with pytest.raises(HostError):
            await running
    assert studied.journal().touched
    await wire.restore()
    await until(studied.as_it_was, "the keeper")


def lost_steps(state: State) -> int:
    return len(state.study.lost) if state.study else 0
