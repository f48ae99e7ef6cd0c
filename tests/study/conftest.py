"""A study of the demo's web server, run as a separate command that can be killed."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from cockpit.demo.servers import DemoServers
from cockpit.profiles.reader import read_profile
from cockpit.session.live_session import LiveSession
from cockpit.study.journal import Journal, read_journal
from cockpit.study.runner import StudyRunner
from tests.cli.terminals import ForkedCommand, running
from tests.commands import cockpit
from tests.data import data_of

DATA = data_of(__file__)

# Seconds; far longer than any step. On a busy machine each change may use up its time limit.
DEADLINE = 400.0

STUDY = DATA["study"]


class DemoStudy:
    """A demo world with a profile that has a study, and the command that runs the study."""

    def __init__(self, world: DemoServers, folder: Path) -> None:
        self.world = world
        self.folder = folder / "out"
        self.profile = folder / "demo.toml"
        self.noticed = folder / "noticed"
        self.ssh_config = world.ssh_config
        self.original = world.config_file.read_bytes()

    def write(self, *, rule: str = "runs = 1", short: str = "requests = 40\nconcurrency = 2", more: str = "7") -> None:
        # Without ranges, so that the server itself refuses a value.
        known = re.sub(r"(?m)^(min|max) = \d+\n", "", self.world.profile_toml())
        text = known + STUDY.format(rule=rule, short=short, more=more, noticed=self.noticed)
        self.profile.write_text(text)

    def command(self, *flags: str) -> list[str]:
        """Return the arguments of the study's command."""
        options = ("--ssh-config", str(self.ssh_config), "-o", str(self.folder))
        return ["study", "--trust", str(self.profile), "--short", *options, *flags]

    @contextmanager
    def start(self) -> Iterator[ForkedCommand]:
        """Run the study in a process that can be killed."""
        with running(*self.command("--no-tui"), folder=self.profile.parent) as command:
            yield command

    async def run(self, *flags: str) -> tuple[int, str, str]:
        """Run the study; return exit code, stdout and stderr."""
        done = await asyncio.to_thread(cockpit, *self.command("--no-tui", *flags), timeout=DEADLINE)
        return done.returncode, done.stdout, done.stderr

    def in_process(self) -> tuple[LiveSession, StudyRunner]:
        """Return the session and the runner of the short study in this process, not yet started."""
        profile = read_profile(self.profile)
        assert profile.short_study is not None
        live = LiveSession(profile, ssh_config=self.ssh_config)
        self.folder.mkdir()
        journal = Journal(
            name="demo",
            fingerprint=profile.short_study.fingerprint,
            hosts=profile.hosts,
            knobs=tuple(knob for knob in profile.knobs if knob.name in profile.short_study.knobs),
            ssh_config=str(self.ssh_config),
        )
        return live, StudyRunner(live, profile.short_study, self.folder, journal)

    def has_value(self, value: str) -> bool:
        """Return whether the server's file has this number of spare servers."""
        return re.search(rf"MinSpareServers +{value}\b", self.world.config_file.read_text()) is not None

    def is_original(self) -> bool:
        return self.world.config_file.read_bytes() == self.original

    def journal(self) -> Journal:
        found = read_journal(self.folder)
        assert found is not None
        return found

    def restorer(self, study: int) -> psutil.Process:
        """Return the process that rolls settings back if the study is killed."""
        children = psutil.Process(study).children()
        return next(child for child in children if "cockpit.study.standby" in child.cmdline())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[DemoServers]:
    async with DemoServers() as world:
        yield world


@pytest.fixture
def demo_study(world: DemoServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DemoStudy:
    """The demo world with its original settings, which each test leaves active."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return DemoStudy(world, tmp_path)
