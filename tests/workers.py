"""Load workers in forks of a process that has imported their modules, like `commands` for commands.

A worker started as by a user takes 0.2 s of CPU time before its first request.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from cockpit.load import workers
from cockpit.load.http.protocol import Assignment
from tests.commands import FORKS


class Forked:
    """A forked worker with the interface of asyncio.subprocess.Process that `workers.WorkerProcess` uses.

    `sentinel` is readable when the process has ended; then `collect` returns its exit code.
    """

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    def __init__(self, pid: int, sentinel: int, collect: Callable[[], int]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._sentinel, self._collect = sentinel, collect
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(sentinel, self._end)

    @classmethod
    async def start(cls, fork: Callable[..., Forked]) -> Forked:
        pipes = [FORKS.Pipe(duplex=False) for _ in range(3)]
        theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
        forked = fork(*theirs)
        for end in theirs:
            end.close()
        forked.stdin = await _writer(pipes[0][1])
        forked.stdout, forked.stderr = await _reader(pipes[1][0]), await _reader(pipes[2][0])
        return forked

    def _end(self) -> None:
        self._loop.remove_reader(self._sentinel)
        self.returncode = self._collect()
        self._ended.set_result(self.returncode)

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)


def _from_server(*theirs: Connection) -> Forked:
    """Fork the fork server of this process, which has no threads and a small heap."""
    process = FORKS.Process(target=_work, args=(dict(os.environ), *theirs))
    process.start()

    def collect() -> int:
        process.join()
        code = process.exitcode
        process.close()
        return cast(int, code)

    return Forked(cast(int, process.pid), process.sentinel, collect)


def _from_command(*theirs: Connection) -> Forked:
    """Fork this process, a command, whose other files the worker closes: locks on them end with the command."""
    sentinel, held = os.pipe()
    pid = os.fork()
    if pid == 0:
        _work_and_exit(held, theirs)
    os.close(held)

    def collect() -> int:
        os.close(sentinel)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    return Forked(pid, sentinel, collect)


def _work_and_exit(held: int, theirs: tuple[Connection, ...]) -> None:
    """Work as a new process would: default actions of signals, and no files but the pipes and `held`."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        beyond = 1 + max(int(path.name) for path in Path("/dev/fd").iterdir())
        kept = sorted((2, held, *(end.fileno() for end in theirs), beyond))
        for low, high in pairwise(kept):
            os.closerange(low + 1, high)
        _work(dict(os.environ), *theirs)
        code = 0
    except SystemExit as error:
        print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


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
    return await _started(assignment, _from_server)


async def fork_worker_of_command(assignment: Assignment) -> workers.WorkerProcess:
    """Like `fork_worker`, in the process of a command."""
    return await _started(assignment, _from_command)


async def _started(assignment: Assignment, fork: Callable[..., Forked]) -> workers.WorkerProcess:
    worker = workers.WorkerProcess(assignment, cast(asyncio.subprocess.Process, await Forked.start(fork)))
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
