"""A host that is lost during a study: the step is repeated when the host is back, and the result lists it."""

import asyncio
import re
import shutil
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
from cockpit.study.runner import StudyRunner
from cockpit.tuning.pending import Timeouts
from tests.hosts.link import Link
from tests.study.conftest import DEADLINE, DemoStudy
from tests.waiting import until


class HostLink:
    """The link to the demo's host, which can be lost: connections end, and new connections are refused."""

    def __init__(self, link: Link, sshd: int) -> None:
        self.lose = link.stop
        self._link, self._sshd = link, sshd

    async def restore(self) -> None:
        await self._link.start(self._sshd)


@pytest_asyncio.fixture
async def host_link(demo_study: DemoStudy, tmp_path: Path) -> AsyncIterator[HostLink]:
    """Give the study an ssh_config that connects through a link."""
    link = await Link().start(0)
    known = demo_study.world.ssh_config.read_text()
    found = re.search(r"Port (\d+)", known)
    file = re.search(r'UserKnownHostsFile "(.+)"', known)
    assert found and file
    keys = tmp_path / "known_hosts"
    shutil.copy(file[1], keys)
    keys.write_text(keys.read_text().replace(f"]:{found[1]}", f"]:{link.port}"))
    demo_study.ssh_config = tmp_path / "ssh_config"
    demo_study.ssh_config.write_text(known.replace(f"Port {found[1]}", f"Port {link.port}").replace(file[1], str(keys)))
    await link.stop()
    yield HostLink(await link.start(int(found[1])), int(found[1]))
    await link.stop()


def study_of(demo_study: DemoStudy) -> tuple[LiveSession, StudyRunner]:
    demo_study.write(short='variants = ["more"]\nrounds = 1\nduration = "2s"\nrate = 20')
    return demo_study.in_process()


def is_running(state: State) -> bool:
    return state.running is not None


def is_changing(state: State) -> bool:
    return bool(state.changes) and not state.changes[-1].outcome


def is_armed(state: State) -> bool:
    return bool(state.changes) and "armed" in state.changes[-1].stages


@pytest.mark.parametrize("when", [is_running, is_changing, is_armed])
async def test_lost_step_is_repeated(demo_study: DemoStudy, host_link: HostLink, when: Callable[[State], bool]) -> None:
    live, runner = study_of(demo_study)
    tuner = live.source.tuning._tuner
    # The host is lost for longer than a rollback is tried.
    tuner._options = tuner._options._replace(timeouts=Timeouts(reach=0.05, lease=5))
    async with live:
        running = asyncio.create_task(runner.run())
        await until(lambda: running.done() or when(live.state), DEADLINE)
        await host_link.lose()
        await until(lambda: running.done() or lost_steps(live.state) > 0, DEADLINE)
        assert not running.done(), running.exception()
        assert "waiting for a host" in runner.progress.now
        await host_link.restore()
        await running
        state = live.state
    assert state.study and state.study.ended and len(state.study.done) == 1
    result = collect([state], "demo")
    assert result and len(result.repeated) == len(state.study.lost) == 1
    assert [run.counted for cell in result.cells for run in cell.runs][-1]
    assert any(text.startswith("a step was repeated: ") for text in rounds_lines(result))
    assert demo_study.is_original() and not demo_study.journal().touched


async def test_permanent_loss_of_host_ends_study(
    demo_study: DemoStudy, host_link: HostLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "LOST_FOR", 1.0)
    live, runner = study_of(demo_study)
    async with live:
        running = asyncio.create_task(runner.run())
        await until(lambda: running.done() or is_running(live.state), DEADLINE)
        await host_link.lose()
        with pytest.raises(HostError):
            await running
    assert demo_study.journal().touched and demo_study.journal().since > 0
    await host_link.restore()
    # Until the restorer has ended: losing the host again would let it retry for minutes.
    await until(lambda: not demo_study.journal().touched, DEADLINE)
    assert demo_study.is_original()


def lost_steps(state: State) -> int:
    return len(state.study.lost) if state.study else 0
