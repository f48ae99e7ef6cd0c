"""Markers for restarts of servers, which are detected by their parent process or their status page. Pure.

A parent is a watched process with watched children whose own parent is not watched. A new parent that replaces an
exited one is a restart. If all workers are replaced under the same parent, that alone is no reload: workers that
started together also reach their maximum number of requests together. A status page with generations shows a reload.
A restart caused by a change of this session gets no marker besides the change's.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.host.samples import HostReading, ProcessCounters, identity
from cockpit.model.host.state import HostState, ParentProcess, StatusPane
from cockpit.model.markers import RestartMarker
from cockpit.model.state import State, mark, with_host
from cockpit.servers.registry import STATUS_PAGES

# Minimum age of a parent (s): a server that daemonizes has a short-lived first process with children.
MIN_AGE = 1.0
# Maximum number of exited parents that are kept until a successor appears.
MOST_GONE = 16


class _ParentUpdate(msgspec.Struct, frozen=True):
    """The known `parents` after a reading, and the `restarts` since the previous one: (old, new) parent."""

    parents: tuple[ParentProcess, ...]
    restarts: tuple[tuple[ParentProcess, ParentProcess], ...]


def mark_restarts(state: State, event: ev.HostSample) -> State:
    host = state.hosts[event.host]
    if host.facts is None:
        return state
    update = _update_parents(host, event.reading, host.facts.hz)
    if update.parents != host.parents:
        state = with_host(state, replace(host, parents=update.parents))
    for old, new in update.restarts:
        began = event.t - (event.reading.uptime - new.start / host.facts.hz)
        if _changed_between(state, event.host, began, began):
            continue
        pids = {"old": old.pid, "new": new.pid}
        state = mark(state, RestartMarker(t=max(0.0, began), host=event.host, server=new.comm, shown_by="pid", **pids))
    return state


def mark_reload(state: State, event: ev.StatusRead, before: StatusPane) -> State:
    """Mark a reload if the page shows a new generation."""
    generation = STATUS_PAGES[before.page.kind].generation
    old, new = before.values.get(generation), event.values.get(generation)
    if old is None or new is None or new <= old or before.t is None:
        return state
    if _changed_between(state, event.host, before.t, event.t):
        return state
    reload = RestartMarker(
        t=event.t, host=event.host, server=before.page.kind, shown_by="generation", old=round(old), new=round(new)
    )
    return mark(state, reload)


def _changed_between(state: State, host: str, since: float, until: float) -> bool:
    """Return whether a change of this session was in progress on the host: its marker covers the restart."""
    return any(
        change.host == host and change.begun <= until and (change.ended is None or change.ended >= since - MIN_AGE)
        for change in state.changes
    )


def _update_parents(host: HostState, reading: HostReading, hz: int) -> _ParentUpdate:
    present = set(map(identity, reading.processes))
    known = {(parent.pid, parent.start) for parent in host.parents}
    parents = [replace(parent, gone=(parent.pid, parent.start) not in present) for parent in host.parents]
    restarts = []
    for process in _parents(reading):
        if (process.pid, process.start) in known or reading.uptime - process.start / hz < MIN_AGE:
            continue
        new = ParentProcess(pid=process.pid, start=process.start, comm=process.comm)
        old = next((parent for parent in reversed(parents) if parent.gone and parent.comm == new.comm), None)
        if old is not None:
            parents.remove(old)
            restarts.append((old, new))
        parents.append(new)
    gone = [parent for parent in parents if parent.gone]
    forgotten = gone[: max(0, len(gone) - MOST_GONE)]
    return _ParentUpdate(tuple(parent for parent in parents if parent not in forgotten), tuple(restarts))


def _parents(reading: HostReading) -> list[ProcessCounters]:
    with_children = {process.ppid for process in reading.processes}
    processes = [process for process in reading.processes if process.pid in with_children and process.stat[:1] != "Z"]
    pids = {process.pid for process in reading.processes} if processes else set()
    return [process for process in processes if process.ppid not in pids]
