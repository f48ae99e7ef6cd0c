"""The load workers of a generator, without a Dask worker."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest

from cockpit.cluster import generator_actor


async def test_load_workers_of_the_last_run_are_killed_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = [
        SimpleNamespace(assignment=SimpleNamespace(worker=0), line=asyncio.Event().wait, kill_and_wait=AsyncMock())
        for _ in range(2)
    ]
    monkeypatch.setattr(generator_actor, "get_worker", Mock())
    monkeypatch.setattr(generator_actor, "start_workers", AsyncMock(side_effect=[[one] for one in workers]))
    actor = generator_actor.GeneratorActor("topic", 0)
    for counts in ((0, 0), (1, 0)):
        assert await actor.begin(()) == ""
        assert tuple(one.kill_and_wait.await_count for one in workers) == counts
    await actor.end()
