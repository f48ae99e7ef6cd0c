"""Distinguishes the target's server from other servers with the same process name, by the port it listens on. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cockpit.model.host.samples import ProcessCounters, identity


class ServerFilter:
    """Leaves out the process trees of other servers.

    `excluded` is the number of their processes. None: several servers have the same name and the target's server is
    unknown, so all are counted; this happens behind a proxy with unknown upstream addresses, since only the proxy
    listens on the port.

    A process tree is classified once, for as long as it runs. While no process listens, e.g. during a restart, only new
    trees are added to the target's server.
    """

    def __init__(self) -> None:
        self.excluded: int | None = 0
        # Trees by (PID, start time) of their root.
        self._target_trees: set[tuple[int, int]] = set()
        self._other_trees: set[tuple[int, int]] = set()

    def select(self, known: Sequence[ProcessCounters], listeners: Collection[int]) -> list[ProcessCounters]:
        """Return the processes without those of other servers. `listeners` are the PIDs that listen on the target's
        port or on an upstream address."""
        roots = _roots(known)
        trees = {identity(root): root for root in roots.values()}
        if listening := {identity(roots[pid]) for pid in listeners if pid in roots}:
            self._target_trees = listening | (self._target_trees & trees.keys())
            names = {trees[tree].comm for tree in self._target_trees}
            self._other_trees = {tree for tree, root in trees.items() if root.comm in names} - self._target_trees
        counted = [process for process in known if identity(roots[process.pid]) not in self._other_trees]
        counted_trees = {identity(roots[process.pid]) for process in counted}
        unclassified = [trees[tree].comm for tree in counted_trees - self._target_trees]
        excluded = len(known) - len(counted)
        self.excluded = excluded if excluded or len(set(unclassified)) == len(unclassified) else None
        return counted


def _roots(known: Sequence[ProcessCounters]) -> dict[int, ProcessCounters]:
    """Return the topmost known ancestor of each process, by PID."""
    by_pid = {process.pid: process for process in known}
    roots: dict[int, ProcessCounters] = {}
    for process in known:
        path = [process.pid]
        # Limited in length, since a hostile host could report a cycle.
        while process.pid not in roots and process.ppid in by_pid and len(path) <= len(known):
            process = by_pid[process.ppid]
            path.append(process.pid)
        roots |= dict.fromkeys(path, roots.get(process.pid, process))
    return roots
