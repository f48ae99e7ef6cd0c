"""A command that is cancelled while it is being started must not hold anybody up."""

import asyncio

import pytest

from cockpit.hosts.local import LocalShell


async def test_cancelled_while_it_starts() -> None:
    shell = LocalShell()
    for turns in range(12):
        running = asyncio.create_task(shell.run("cat", input=b"x"))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        done, _ = await asyncio.wait([running], timeout=120)
        assert done
        with pytest.raises(asyncio.CancelledError):
            await running
    await shell.close()
