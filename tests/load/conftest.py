"""Load tests fork their workers; tests of processes and measurements start workers as in production."""

import time

import pytest

from cockpit.load import workers
from tests.commands import FORKS
from tests.workers import fork_worker

_SPAWN = workers.WorkerProcess.spawn


@pytest.fixture(scope="session")
def fork_server() -> None:
    """Wait for the imports of the fork server, which would block an event loop until other tasks time out."""
    process = FORKS.Process(target=time.time)
    process.start()
    process.join()


@pytest.fixture(scope="module", autouse=True)
def forked_workers(fork_server: None, request: pytest.FixtureRequest) -> None:
    patch = pytest.MonkeyPatch()
    patch.setattr(workers.WorkerProcess, "spawn", fork_worker)
    request.addfinalizer(patch.undo)


@pytest.fixture
def real_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.WorkerProcess, "spawn", _SPAWN)
