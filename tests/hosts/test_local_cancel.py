"""Commands cancelled during their start: no hang, no leftover process or task."""

import asyncio
from pathlib import Path

import pytest

from cockpit.hosts.local import LocalShell
from cockpit.model.errors import HostError
from tests.waiting import until


async def test_run_can_be_cancelled_while_starting() -> None:
    shell = LocalShell()
    for steps in range(12):
        running = asyncio.create_task(shell.run("cat", input=b"x"))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        done, _ = await asyncio.wait([running], timeout=120)
        assert done
        with pytest.raises(asyncio.CancelledError):
            await running
    await shell.close()


def use_as_sh(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace `sh` with this script for LocalShell."""
    (folder / "sh").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "sh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


async def test_cancelled_open_leaves_no_process_or_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = tmp_path / "started"
    use_as_sh(f"mkdir {started}; exec sleep 1000", tmp_path, monkeypatch)
    tasks = asyncio.all_tasks()
    opening = asyncio.create_task(LocalShell().open("cat"))
    await until(started.exists)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert asyncio.all_tasks() == tasks


async def test_failed_open_leaves_no_process_or_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_as_sh("exit 1", tmp_path, monkeypatch)
    tasks = asyncio.all_tasks()
    with pytest.raises(HostError, match="the login shell ended before `sh -s` started"):
        await LocalShell().open("cat")
    assert asyncio.all_tasks() == tasks
