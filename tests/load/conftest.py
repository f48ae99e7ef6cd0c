"""Most tests of load fork their workers; those that are about the processes, or measure, start them as a user's do."""

from __future__ import annotations

import pytest

from cockpit.load import workers
from tests.workers import fork_worker

# Folders and files that use no forked workers.
REAL = {"truth", "test_worker.py"}
_SPAWN = workers.WorkerProcess.spawn


@pytest.fixture(scope="module", autouse=True)
def forked_workers(request: pytest.FixtureRequest) -> None:
    if REAL.isdisjoint(request.path.parts):
        patch = pytest.MonkeyPatch()
        patch.setattr(workers.WorkerProcess, "spawn", fork_worker)
        request.addfinalizer(patch.undo)


@pytest.fixture
def real_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.WorkerProcess, "spawn", _SPAWN)
