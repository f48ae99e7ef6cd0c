"""The log in which a server without new workers at a reload confirms that it has read its files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cockpit.model.knobs import Knob
from cockpit.servers.registry import ERROR_LOGS, RELOADED
from cockpit.tuning import files
from cockpit.tuning.change_options import Failure
from cockpit.tuning.effect import EffectWatch
from cockpit.tuning.pending import PendingChange
from cockpit.tuning.plan import Plan
from cockpit.tuning.remote import Remote
from cockpit.tuning.scripts import LOGGED


class ReloadLog(NamedTuple):
    """A server's log, "" if unknown; `read_at` is the time (epoch s) of its last start or reload, 0 if unknown."""

    file: str = ""
    read_at: int = 0


async def last(remote: Remote, knobs: Iterable[Knob], kind: str, pid: str) -> ReloadLog:
    """Find the log that a knob names, or that the server with this PID has open. Raises HostError."""
    logs = dict.fromkeys(knob.log for knob in knobs if knob.log)
    for file in (*logs, *ERROR_LOGS.get(kind, ())):
        done = await files.run(remote, LOGGED, file, pid, RELOADED[kind].pattern)
        words = done.stdout.decode("ascii", "replace").split()
        if done.exit_status == 0 and (file in logs or "log" in words):
            return ReloadLog(file, next((int(word) for word in words if word.isdecimal() and len(word) < 12), 0))
    return ReloadLog()


async def confirm(change: PendingChange, plan: Plan, effect: EffectWatch) -> str:
    """Wait for the log line about the reload, if the server writes one; return the sign that it has read its files.

    Raises Failure without that line, HostError.
    """
    reloaded = next((knob for knob in plan.knobs if knob.reload and knob.kind in RELOADED), None)
    if reloaded is None:
        return "its workers started after the file was written" if effect.sees_workers else "its reload succeeded"
    kind, server = reloaded.kind, plan.servers.get(reloaded.name)
    log = (await last(change.shell, plan.knobs, kind, str(server.process.pid if server else 0))).file
    if not log or log != effect.log:
        return "its reload is not confirmed, because its log cannot be read; set `log` of its knobs"
    if not await effect.logs(RELOADED[kind]):
        raise Failure(f"no reload in {log} within {change.timeouts.effect:g} s")
    return f"its reload is in {log}"
