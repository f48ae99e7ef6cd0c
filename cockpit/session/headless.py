"""One run without a screen: wait for the hosts, load, wait for the last figures."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from cockpit.model.errors import HostError
from cockpit.model.state import State
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session

# How long a host may take until its first reading, and its last one after the run (s).
HOST_READY = 20.0
LAST_READING = 3.0


async def run_once(
    session: Session, source: LiveSource, limit: float | None = None, stop_when: Callable[[State], bool] | None = None
) -> State:
    """Runs the profile's plan once in a session that is being run: at most `limit` seconds, and until `stop_when`.

    Raises HostError, TargetError.
    """
    await hosts_ready(session, source)
    await source.load.over()
    await source.load.start()
    run = source.load.runs
    over = session.until(
        lambda state: (state.runs >= run and state.running is None) or (stop_when is not None and stop_when(state))
    )
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(over, limit)
    if session.state.running is not None or session.state.runs < run:
        await source.load.stop()
    await _hosts_read_again(session)
    return session.state


async def hosts_ready(session: Session, source: LiveSource) -> None:
    """Returns once every host has been read. Raises HostError for one that cannot be reached."""
    names = [config.name for config in source.profile.hosts]

    def settled(state: State) -> bool:
        hosts = [state.hosts.get(name) for name in names]
        return all(host is not None and (len(host.points) >= 1 or _gone(state, host.config.name)) for host in hosts)

    try:
        state = await asyncio.wait_for(session.until(settled), HOST_READY)
    except TimeoutError:
        state = session.state
    for name in names:
        host = state.hosts[name]
        if not host.points:
            detail = host.detail.removeprefix(f"{name}: ") or f"gave no reading within {HOST_READY:.0f} s"
            raise HostError(f"{name}: {detail}")


def _gone(state: State, name: str) -> bool:
    return state.hosts[name].condition in ("lost", "refused")


async def _hosts_read_again(session: Session) -> None:
    """One more reading of each host, so that its averages cover the whole run."""
    segment = session.state.segment
    if segment is None or segment.end is None:
        return
    end = segment.end

    def covered(state: State) -> bool:
        return all(host.condition != "up" or (host.seen or 0.0) >= end for host in state.hosts.values())

    try:
        await asyncio.wait_for(session.until(covered), LAST_READING)
    except TimeoutError:
        return
