"""The offer of `cockpit watch` to add durations to an access log, before the screen starts."""

from __future__ import annotations

import sys

from cockpit.cli.terminal import typed_line
from cockpit.model.errors import ChangeRefused
from cockpit.model.text import sanitize
from cockpit.tuning.applied import name_of
from cockpit.tuning.discovery.access_logs import LoggingServer
from cockpit.tuning.remote import Remote
from cockpit.tuning.tuner import Tuner


async def with_durations(remote: Remote, host: str, server: LoggingServer, undo: str) -> LoggingServer:
    """Offer the change that adds durations to the log of a server; return the server with its log afterwards. Without a
    terminal nothing is offered. `undo`: a command that undoes the change whose name follows. Raises ChangeRolledBack,
    ChangeFailed, HostError."""
    if server.change is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return server
    tuner, values = Tuner(), server.change.values
    try:
        planned = await tuner.prepare(remote, host, values)
    except ChangeRefused as error:
        _print(f"{host}: {error}")
        return server
    _print(f"{host}: {server.title} logs no durations to {server.log.file}, so there is no latency. To log them:")
    for line in planned.diff.splitlines():
        _print(f"  {line}")
    question = "Test and reload the configuration with this change? It is rolled back if that fails. y, or Enter: no "
    print(question, end="", file=sys.stderr, flush=True)
    if await typed_line() not in ("y", "yes"):
        return server
    applied = await tuner.apply(remote, host, values)
    _print(f"{host}: durations are logged; to undo it: {undo} {name_of(applied.change)}")
    return server._replace(log=server.change.log, change=None)


def _print(text: str) -> None:
    print(f"cockpit: {sanitize(text)}", file=sys.stderr)
