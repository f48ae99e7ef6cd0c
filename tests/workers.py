"""Load workers in forks of a process that has imported their modules, like `commands` for commands.

A worker started as by a user takes 0.2 s of CPU time before its first request.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from multiprocessing.connection import Connection
from typing import Any, cast

from cockpit.load import workers
from cockpit.load.protocol import Assignment
from tests.commands import FORKS


class Forked:
    """A forked worker with the interface of asyncio.subprocess.Process that `workers.WorkerProcess` uses."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    def __init__(self, process: Any) -> None:
        self._process = process
        self.pid = cast(int, process.pid)
        self.returncode: int | None = None
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(process.sentinel, self._end)

    @classmethod
    async def start(cls) -> Forked:
        pipes = [FORKS.Pipe(duplex=False) for _ in range(3)]
        theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
        process = FORKS.Process(target=_work, args=(dict(os.environ), *theirs))
        process.start()
        for end in theirs:
            end.close()
        forked = cls(process)
        forked.stdin = await _writer(pipes[0][1])
        forked.stdout, forked.stderr = await _reader(pipes[1][0]), await _reader(pipes[2][0])
        return forked

    def _end(self) -> None:
        self._loop.remove_reader(self._process.sentinel)
        self._process.join()
        code = self.returncode = cast(int, self._process.exitcode)
        self._process.close()
        self._ended.set_result(code)

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)


async def _reader(end: Connection) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=workers.LINE_LIMIT)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), _file(end, "rb"))
    return reader


async def _writer(end: Connection) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), _file(end, "wb")
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _file(end: Connection, mode: str) -> Any:
    file = os.fdopen(os.dup(end.fileno()), mode, buffering=0)
    end.close()
    return file


async def fork_worker(assignment: Assignment) -> workers.WorkerProcess:
    """Start a worker by a fork, in place of `workers.WorkerProcess.spawn`."""
    worker = workers.WorkerProcess(assignment, cast(asyncio.subprocess.Process, await Forked.start()))
    worker.send(assignment)
    return worker


def _work(env: dict[str, str], commands: Connection, out: Connection, err: Connection) -> None:
    """Turn this process into a worker: environment, session, pipes, and a heap excluded from garbage collection."""
    from cockpit.load import worker

    os.environ.clear()
    os.environ.update(env)
    os.setsid()
    for descriptor, end in enumerate((commands, out, err)):
        os.dup2(end.fileno(), descriptor)
        end.close()
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, closefd=False) for number, mode in enumerate("rww"))
    gc.freeze()
    worker.main()
