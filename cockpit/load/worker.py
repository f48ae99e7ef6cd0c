"""A load worker: `python -m cockpit.load.worker`. See `protocol` for its messages.

The process does nothing but load, so that the rest of cockpit cannot disturb the measurement.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from time import monotonic

import msgspec

from cockpit.load.closed_load import ClosedLoad
from cockpit.load.duet import DuetLoad
from cockpit.load.engine import Engine, Hooks
from cockpit.load.file_limit import raise_file_limit
from cockpit.load.http.protocol import (
    Adjust,
    Assignment,
    Done,
    Extend,
    Ready,
    Reassign,
    Start,
    Stop,
    WorkerCommand,
    connections_of,
    decode_assignment,
    decode_command,
    encode,
    most_connections,
)
from cockpit.load.open_load import OpenLoad
from cockpit.load.poller import Poller, best_poller
from cockpit.load.think_time import ThinkTimeLoad


class Outbox:
    """Buffered lines to stdout. Does not block on a slow reader while load runs."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._unwritten = b""
        os.set_blocking(fd, False)

    def flushed(self) -> bool:
        """Write as much as possible without blocking; return whether the buffer is empty."""
        try:
            while self._unwritten:
                self._unwritten = self._unwritten[os.write(self._fd, self._unwritten) :]
        except BlockingIOError:
            return False
        return True

    def put(self, line: bytes) -> None:
        self._unwritten += line + b"\n"
        self.flushed()

    def finish(self) -> None:
        """Write the rest; block until it is written."""
        os.set_blocking(self._fd, True)
        self.flushed()


def engine_for(assignment: Assignment, poller: Poller, hooks: Hooks) -> Engine | DuetLoad:
    """Return the engine for an assignment."""
    plan = assignment.plan
    engine = OpenLoad if plan.open else ThinkTimeLoad if plan.think_time else ClosedLoad
    return DuetLoad(assignment, poller, hooks, engine) if plan.variants else engine(assignment, poller, hooks)


class LoadWorker:
    """Connects an engine to the two pipes. If the reader is too slow, a tick is merged into the next one."""

    def __init__(self, assignment: Assignment, commands: Commands, outbox: Outbox) -> None:
        self._commands = commands
        self._outbox = outbox
        poller = best_poller()
        self._engine = engine_for(assignment, poller, Hooks(self._tick, self._cut))
        self._engine.handlers[commands.fd] = self._on_command
        poller.watch_control(commands.fd)
        self._since = 0.0

    def run(self, at: float) -> None:
        """Run the load from `at` on; then send the last tick and Done."""
        self._since = at
        self._engine.run(at)
        self._outbox.flushed()
        self._send(monotonic())
        self._outbox.put(encode(Done(self._engine.reason)))
        self._outbox.finish()

    def _tick(self) -> None:
        if self._outbox.flushed():
            self._send(monotonic())

    def _cut(self) -> None:
        self._send(monotonic())

    def _send(self, now: float) -> None:
        self._outbox.put(encode(self._engine.make_tick(self._since, now)))
        self._since = now

    def _on_command(self, mask: int, now: float) -> None:
        for command in self._commands.read():
            if command is None or isinstance(command, Stop):
                self._engine.stop()
            elif isinstance(command, Adjust):
                self._engine.adjust(command.load)
            elif isinstance(command, Reassign):
                plan = self._engine.assignment.plan
                raise_file_limit(len(plan.parts) * most_connections(plan))
                self._engine.reassign(command.place, command.workers, command.more)
            elif isinstance(command, Extend):
                self._engine.extend(command.until)


class Commands:
    """Commands from stdin. The end of stdin stops the load: cockpit has exited."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._partial = b""

    def line(self, at_a_time: int) -> bytes:
        """Return the next line; b"" at the end. Blocks, so it is for use before the load only.

        With `at_a_time` 1 (bytes per read), data after the line stays in the pipe, and wakes up the poller.
        """
        pieces = [self._partial]
        while b"\n" not in pieces[-1]:
            pieces.append(os.read(self.fd, at_a_time))
            if not pieces[-1]:
                return b""
        line, _, self._partial = b"".join(pieces).partition(b"\n")
        return line

    def read(self) -> list[WorkerCommand | None]:
        """Return the commands that have arrived; None for the end of stdin."""
        data = os.read(self.fd, 65536)
        *lines, self._partial = (self._partial + data).split(b"\n")
        commands: list[WorkerCommand | None] = [decode_command.decode(line) for line in lines]
        return commands if data else [*commands, None]


def _prepare_process(assignment: Assignment) -> None:
    """Set the CPU affinity and the limit of open files, and turn the garbage collector off.

    The loop creates no reference cycles, and pauses of the collector would be measured as latency of the server.
    """
    if assignment.cpu is not None and sys.platform == "linux":
        os.sched_setaffinity(0, {assignment.cpu})
    raise_file_limit(connections_of(assignment))
    gc.collect()
    gc.freeze()
    gc.disable()


def main() -> None:
    # Ctrl-C is handled by cockpit, which then stops this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    commands = Commands(sys.stdin.fileno())
    line = commands.line(1 << 20)
    if not line:
        return
    try:
        assignment = decode_assignment(line)
    except msgspec.MsgspecError as error:
        sys.exit(f"invalid assignment: {error}")
    # A broken pipe: cockpit has exited.
    with contextlib.suppress(BrokenPipeError):
        _prepare_process(assignment)
        outbox = Outbox(sys.stdout.fileno())
        worker = LoadWorker(assignment, commands, outbox)
        outbox.put(encode(Ready()))
        line = commands.line(1)
        if not line:
            return
        command = decode_command.decode(line)
        worker.run(command.at if isinstance(command, Start) else monotonic())


if __name__ == "__main__":
    main()
