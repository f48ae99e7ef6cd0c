"""Most load tests fork their workers; tests of processes and measurements start workers as in production."""

from __future__ import annotations

import pytest

from cockpit.load import workers
from tests.workers import fork_worker

# Folders and files without forked workers.
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
